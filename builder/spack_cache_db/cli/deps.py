"""The command `deps`: what a spec needs; and what needs it, for `dependents`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from spack_cache_db.cli.databases import file_argument, opened
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.tables import print_rows
from spack_cache_db.query.rows import Rows

_COLUMNS = ("package", "version", "hash", "types", "virtuals", "kind")


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
    print_edges(dag_hash, file, options, is_reversed=False)


def print_edges(
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

    records = []
    with opened(file) as lookups:
        spec = spec_of_hash(lookups, dag_hash)
        # A database of pages has no dependencies, and one of several sources may have
        # those of some specs only.
        has_data = has_records(lookups.conn)
        # An edge for each other spec, by its id; None for an indirect dependency.
        if is_reversed:
            is_known = has_data
            edges = read_dependents(lookups.conn, spec)
        else:
            is_known = bool(recorded_specs(lookups.conn, [spec]))
            edges = read_dependencies(lookups.conn, spec)
        for other, node in read_nodes(lookups.conn, edges).items():
            edge = edges[other]
            record = {
                "package": node.package,
                "version": node.version,
                "hash": node.hash,
                "types": "" if edge is None else ",".join(edge.types),
                "virtuals": "" if edge is None else ",".join(edge.virtuals),
                "kind": node.kind,
            }
            records.append(record)

    # Direct ones first, which have types; then by package, version and hash.
    records.sort(key=lambda record: (not record["types"], *record.values()))
    name = f"/{dag_hash.removeprefix('/')}"
    nothing = _nothing(name, is_reversed, is_known, has_data)
    is_any = print_rows(Rows(_COLUMNS, records), options, nothing)
    sys.exit(0 if is_any else 1)


def _nothing(name: str, is_reversed: bool, is_known: bool, has_data: bool) -> str:
    """Return the note on a spec without dependencies or dependents.

    Args:
        name: the hash of the spec, as it was typed.
        is_reversed: whether dependents were sought.
        is_known: whether the database knows that there are none.
        has_data: whether the database has the dependencies of any spec.
    """
    if is_known and is_reversed:
        return f"nothing in this database depends on {name}"
    if is_known:
        return f"{name} has no dependencies"
    if has_data:
        why = "no index or mirror in this database has a record of it"
    else:
        why = "the database has no dependency data; build it from indexes or mirrors"
    kind = "dependents" if is_reversed else "dependencies"
    return f"the {kind} of {name} are not known: {why}"
