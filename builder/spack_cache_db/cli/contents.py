"""The commands that list what there is: `releases`, `stacks`, `deps` and `dependents`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import file_argument, rows_options
from spack_cache_db.cli.row_output import print_rows
from spack_cache_db.cli.terminal import say_notes
from spack_cache_db.query.catalogue import spec_beginning
from spack_cache_db.query.connection import connected
from spack_cache_db.query.dependency_graph import (
    Edge,
    read_dependencies,
    read_dependents,
    read_nodes,
    told_of,
)
from spack_cache_db.query.lookups import read_lookups

_RELEASE = ("name", "kind", "date", "package_count", "spec_count")
_STACK = ("name", "release_count", "spec_count")
_DEPENDENCY = ("package", "version", "hash", "types", "virtuals", "kind")


@click.command()
@file_argument
@rows_options
def releases(file: Path, **options: Any) -> None:
    """List the releases of a database.

    Branches come first, then releases and snapshots from new to old.

    Example: spack-cache-db releases dist/spack-cache.db
    """
    with connected(file) as conn:
        known = read_lookups(conn).releases.values()
    print_rows(_RELEASE, [_values(each, _RELEASE) for each in known], options)


@click.command()
@file_argument
@rows_options
def stacks(file: Path, **options: Any) -> None:
    """List the stacks of a database.

    A stack is counted over all releases.

    Example: spack-cache-db stacks dist/spack-cache.db
    """
    with connected(file) as conn:
        known = read_lookups(conn).stacks.values()
    print_rows(_STACK, [_values(each, _STACK) for each in known], options)


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@rows_options
def deps(dag_hash: str, file: Path, **options: Any) -> None:
    """List what a spec depends on.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors. Listed are the
    direct dependencies, with the types in which they are used, and what is linked or run through
    them, without types.

    Example: spack-cache-db deps 2feova4 dist/spack-cache.db
    """
    with connected(file) as conn:
        spec = spec_beginning(conn, dag_hash)
        _print_edges(conn, read_dependencies(conn, spec), options)
        if not told_of(conn, [spec]):
            say_notes(["no index or mirror tells of this spec, so its dependencies are not known"])


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@rows_options
def dependents(dag_hash: str, file: Path, **options: Any) -> None:
    """List what depends on a spec.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors. Listed are the
    specs that use it directly, with the types in which they do, and those that link or run it
    through others, without types.

    Example: spack-cache-db dependents 2feova4 dist/spack-cache.db
    """
    with connected(file) as conn:
        _print_edges(conn, read_dependents(conn, spec_beginning(conn, dag_hash)), options)


def _print_edges(conn: sqlite3.Connection, edges: Mapping[int, Edge | None], options: Any) -> None:
    """Print the specs at the other ends of edges: direct ones first, then by package."""
    rows = [
        (node.package, node.version, node.hash, *_uses(edges[spec]), node.kind)
        for spec, node in read_nodes(conn, edges).items()
    ]
    print_rows(_DEPENDENCY, sorted(rows, key=lambda row: (not row[3], row)), options)


def _uses(edge: Edge | None) -> tuple[str, str]:
    return (",".join(edge.types), ",".join(edge.virtuals)) if edge else ("", "")


def _values(record: object, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in names)
