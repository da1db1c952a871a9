"""How a file of ours is recognized: its application id, version and checksum of
statements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from spack_cache_db.schema.full_text import NAMES

APPLICATION_ID = 0x53504442
"""`PRAGMA application_id` of a database: the bytes of "SPDB"."""

SCHEMA_VERSION = 26
"""`PRAGMA user_version`; raised by one whenever a public table, column or view
changes.
"""

STATEMENTS_SHA256 = "33f3647bd9344a0b3bc1aa99720719550a5a3451c979ebcaee0f014cff5012b5"
"""The checksum (`statements_sha256`) of a database of this schema version. After a
change of the schema, the next build fails and names the new value.
"""

PATHS, LEFT_OUT = "paths", "left out"
"""The row of `origin` in a database that was built without the paths of installed
specs.
"""

AS_OF = "as_of"
"""The name of the row of `origin` with the newest date of a source."""

COUNTED = {
    "pages": "SELECT count(*) FROM pages",
    "indexes": "SELECT count(*) FROM mirrors",
    # Counting the rows of the view would join all ranges with their mirrors.
    "records": "SELECT coalesce(sum(record_count), 0) FROM mirrors",
    "listings": "SELECT count(*) FROM listings",
    "specs": "SELECT count(*) FROM specs WHERE release_count > 0 AND NOT is_gone",
    "configurations": "SELECT count(*) FROM configurations WHERE spec_count > 0",
    "dependencies": "SELECT count(*) FROM dependencies",
    "packages": "SELECT count(*) FROM packages WHERE spec_count > 0",
    "releases": "SELECT count(*) FROM releases",
    "stacks": "SELECT count(*) FROM stacks WHERE NOT is_root",
    "problems": "SELECT count(*) FROM problems",
    "known_packages": "SELECT count(*) FROM known_packages",
}
"""The counts of a database, as SQL statements; the website counts the same by the same
names.
Specs that no release lists, and binaries that the mirror has lost, are not counted. An
installation lists its externals, which count as it does.
"""

PAGE_SIZE = 4096
"""Bytes in a page of the file: fixed, because the same input must give the same
bytes.
"""


def statements_sha256(statements: Iterable[tuple[str, str]]) -> str:
    """Return a checksum of a database's schema.

    Args:
        statements: the columns `name` and `sql` of `sqlite_master`; names that are not
            in `NAMES` are ignored.
    """
    sorted_statements = sorted(
        statement for statement in statements if statement[0] in NAMES
    )
    return hashlib.sha256(repr(sorted_statements).encode()).hexdigest()
