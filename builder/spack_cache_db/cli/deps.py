"""The commands `deps` and `dependents`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from spack_cache_db.cli.options import file_argument, opened, shared_options
from spack_cache_db.cli.tables import print_rows
from spack_cache_db.query.rows import Rows

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@shared_options("json", "csv", "all")
def deps(dag_hash: str, file: Path, **options: Any) -> None:
    """List what a spec depends on.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors.
    Direct dependencies come first, with their types; indirect link and run dependencies
    follow, without types.

    Exit status: 0 if there is a dependency, 1 if there is none or no data, 2 for an
    error.

    Example: spack-cache-db deps 2feova4 dist/spack-cache.db
    """
    _print_edges(dag_hash, file, options, is_reversed=False)


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@shared_options("json", "csv", "all")
def dependents(dag_hash: str, file: Path, **options: Any) -> None:
    """List what depends on a spec.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors.
    Direct dependents come first, with their types; specs that link or run it indirectly
    follow, without types.

    Exit status: 0 if there is a dependent, 1 if there is none or no data, 2 for an
    error.

    Example: spack-cache-db dependents 2feova4 dist/spack-cache.db
    """
    _print_edges(dag_hash, file, options, is_reversed=True)


def _print_edges(
    dag_hash: str, file: Path, options: Any, *, is_reversed: bool
) -> NoReturn:
    """Print the dependencies of a spec or its dependents, direct ones first, and
    end.
    """
    from spack_cache_db.query.names.known import spec_of_hash
    from spack_cache_db.query.open.lookups import has_records
    from spack_cache_db.query.stored.graph import (
        read_dependencies,
        read_dependents,
        read_nodes,
        recorded_specs,
    )

    rows = []
    with opened(file) as lookups:
        conn, spec = lookups.conn, spec_of_hash(lookups, dag_hash)
        name, has_data = f"/{dag_hash.removeprefix('/')}", has_records(conn)
        edges = (read_dependents if is_reversed else read_dependencies)(conn, spec)
        for other, node in read_nodes(conn, edges).items():
            uses = (",".join(names) for names in (edges[other] or ((), (), ()))[1:])
            rows.append((node.package, node.version, node.hash, *uses, node.kind))
        is_known = has_data if is_reversed else bool(recorded_specs(conn, [spec]))
    if is_known:
        nothing = f"{name} has no dependencies"
        nothing = (
            f"nothing in this database depends on {name}" if is_reversed else nothing
        )
    else:
        why = "the database has no dependency data; build it from indexes or mirrors"
        why = (
            "no index or mirror in this database has a record of it"
            if has_data
            else why
        )
        kind = "dependents" if is_reversed else "dependencies"
        nothing = f"the {kind} of {name} are not known: {why}"
    rows.sort(key=lambda row: (not row[3], row))
    columns = ("package", "version", "hash", "types", "virtuals", "kind")
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    sys.exit(0 if print_rows(Rows(columns, records), options, nothing) else 1)
