"""The command `behind`: packages whose newest binary is older than Spack's latest
version.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.databases import file_argument, opened
from spack_cache_db.cli.forms import say_notes
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.tables import print_rows
from spack_cache_db.errors import counted
from spack_cache_db.query.rows import Rows

_TABLE_COLUMNS = (
    *("name", "newest_version", "latest_version", "versions_behind", "spec_count"),
)
"""The columns of the table; JSON and CSV have all fields of `PackageStatus`."""


@click.command()
@file_argument
@shared_options(
    *("release", "stack", "maintainer", "tag", "json", "csv", "markdown", "all")
)
def behind(
    file: Path,
    release: str | None,
    stack: str | None,
    maintainer: str | None,
    tag: str | None,
    **options: Any,
) -> None:
    """List packages with binaries older than Spack's latest version.

    FILE must be built with package data. Deprecated versions and branches do not count.

    Exit status: 0 if no package is behind, 1 if some are or none has a binary, 2 for an
    error.

    Example: spack-cache-db behind dist/spack-cache.db --stack e4s
    """
    from spack_cache_db.query.answers.behind import compared_with_spack
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.names.spellings import read_spellings
    from spack_cache_db.query.stored.package_data import PackageStatus

    with opened(file) as lookups:
        names = [
            ("release", release),
            ("stack", stack),
            ("maintainer", maintainer),
            ("tag", tag),
        ]
        say_notes(read_spellings(lookups).notes(names))
        scope = Scope(release=release, stack=stack)
        statuses = compared_with_spack(lookups, scope, maintainer, tag)

    # A package without a binary has no newest version.
    compared = [status for status in statuses if status.newest_version is not None]
    if compared:
        count = counted(len(compared), "package")
        nothing = f"no package is behind: {count} compared with Spack's versions"
    else:
        nothing = (
            "no package has both a binary and package data, so none can be compared"
        )

    records = [status._asdict() for status in statuses if status.versions_behind]
    rows = Rows(PackageStatus._fields, records)
    is_any = print_rows(rows, options, nothing, columns=_TABLE_COLUMNS)
    sys.exit(1 if is_any or not compared else 0)
