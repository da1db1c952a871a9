"""A summary of a database: its content, sources and schema."""

from __future__ import annotations

from typing import Any

from spack_cache_db.arguments import checked
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.inspect_file import looked_at
from spack_cache_db.query.open.sql import connected, select
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.schema import identity

BESIDE_SPACK = """
SELECT
  (SELECT count(*) FROM package_status WHERE versions_behind > 0) AS packages_behind,
  (SELECT count(*) FROM package_status WHERE spec_count = 0) AS packages_missing,
  count(CASE WHEN status = 'deprecated' THEN 1 END) AS versions_deprecated,
  count(CASE WHEN status = 'unknown' THEN 1 END) AS versions_unknown
FROM dropped_versions
"""


class Info(dict[str, Any], NotebookTable):
    """The content and origin of a database, as plain values by name."""

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `info --json` prints."""
        return dict(self)

    @property
    def rows(self) -> Rows:
        """A row for each value."""
        records = [{"name": name, "value": value} for name, value in self.items()]
        return Rows(("name", "value"), records)


@checked
def info(file: AnyPath) -> Info:
    """Return the content and origin of a database, as plain values.

    Raises:
        ArgumentError: the file is not a path.
        DatabaseError: see `open_database`; or the database is damaged.
    """
    path = checked_file("file", file)
    with connected(path) as conn:
        # Count the rows of the main tables, and the sources of each format.
        counts = {}
        for name, sql in identity.COUNTED.items():
            ((count,),) = select(conn, sql)
            counts[name] = count
        formats = {}
        for name, table in (("pages", "pages"), ("indexes", "mirrors")):
            sql = f"SELECT format, count(*) FROM {table} GROUP BY 1 ORDER BY 1"
            formats[f"{name}_by_format"] = dict(select(conn, sql))

        # Without package data, there is nothing to compare with.
        beside_spack = {}
        if counts["known_packages"]:
            cursor = conn.execute(BESIDE_SPACK)
            columns = [column[0] for column in cursor.description]
            (row,) = cursor
            beside_spack = dict(zip(columns, row, strict=True))

        # Read what the releases are, and where the database is from.
        kinds = dict(select(conn, "SELECT kind, count(*) FROM releases GROUP BY kind"))
        ((first, last),) = select(conn, "SELECT min(date), max(date) FROM releases")
        origin = dict(select(conn, "SELECT name, value FROM origin ORDER BY name"))
    return Info(
        file=str(path),
        size=path.stat().st_size,
        schema_version=identity.SCHEMA_VERSION,
        **counts,
        **formats,
        compared_with_spack=beside_spack,
        releases_by_kind=kinds,
        first_snapshot=first,
        last_snapshot=last,
        as_of=origin.pop(identity.AS_OF, None),
        looked_at=looked_at(path),
        origin=origin,
    )
