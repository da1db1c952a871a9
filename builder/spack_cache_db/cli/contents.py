"""Commands that list what a file has: `releases`, `stacks`, `deps`, `behind`, `info`, `diff`."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import (
    all_option,
    file_argument,
    json_option,
    markdown_option,
    names_in_file,
    narrowing_options,
    rows_options,
)
from spack_cache_db.cli.terminal import Forms, form_of, print_answer, print_rows, say, say_notes
from spack_cache_db.errors import counted, printable
from spack_cache_db.query.cache import info as info_of
from spack_cache_db.query.connection import Lookups, opened
from spack_cache_db.query.dependency_graph import (
    Edge,
    read_dependencies,
    read_dependents,
    read_nodes,
    told_of,
)
from spack_cache_db.query.difference import Diff, as_csv, as_json, as_markdown, as_text, sentence
from spack_cache_db.query.difference import diff as compare
from spack_cache_db.query.package_data import PackageStatus, compared_with_spack
from spack_cache_db.query.package_names import spec_of_hash
from spack_cache_db.query.spec_records import has_records
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.schema import CHANGE_WORDS

_RELEASE = ("name", "kind", "date", "package_count", "spec_count")
_STACK = ("name", "release_count", "spec_count")
_DEPENDENCY = ("package", "version", "hash", "types", "virtuals", "kind")

_SHOWN = ("name", "newest_version", "latest_version", "versions_behind", "spec_count")


@click.command()
@file_argument
@rows_options
def releases(file: Path, **options: Any) -> None:
    """List the releases of a database.

    Branches come first, then releases and snapshots from new to old.

    Exit status: 0 if there is a release, 1 if not, 2 for an error.

    Example: spack-cache-db releases dist/spack-cache.db
    """
    with opened(file) as lookups:
        known = lookups.releases.values()
    rows = map(attrgetter(*_RELEASE), known)
    nothing = "the database has no release: it was not built from pages, indexes or installations"
    sys.exit(0 if print_rows(_RELEASE, rows, options, nothing) else 1)


@click.command()
@file_argument
@rows_options
def stacks(file: Path, **options: Any) -> None:
    """List the stacks of a database.

    The numbers count each spec once over all releases.

    Exit status: 0 if there is a stack, 1 if not, 2 for an error.

    Example: spack-cache-db stacks dist/spack-cache.db
    """
    with opened(file) as lookups:
        known = lookups.stacks.values()
    rows = map(attrgetter(*_STACK), known)
    nothing = "the database has no stack: its sources do not name any"
    sys.exit(0 if print_rows(_STACK, rows, options, nothing) else 1)


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@rows_options
def deps(dag_hash: str, file: Path, **options: Any) -> None:
    """List what a spec depends on.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors. Direct
    dependencies come first, with their types; indirect link and run dependencies follow, without
    types.

    Exit status: 0 if there is a dependency, 1 if not or if nothing is known of it, 2 for an error.

    Example: spack-cache-db deps 2feova4 dist/spack-cache.db
    """
    with opened(file) as lookups:
        spec, dag_hash = spec_of_hash(lookups, dag_hash), dag_hash.removeprefix("/")
        nothing = f"/{dag_hash} has no dependencies"
        if not told_of(lookups.conn, [spec]):
            nothing = f"the dependencies of /{dag_hash} are not known: {_no_record(lookups)}"
        is_any = _print_edges(lookups.conn, read_dependencies(lookups.conn, spec), options, nothing)
    sys.exit(0 if is_any else 1)


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@rows_options
def dependents(dag_hash: str, file: Path, **options: Any) -> None:
    """List what depends on a spec.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors. Direct
    dependents come first, with their types; specs that link or run it indirectly follow, without
    types.

    Exit status: 0 if there is a dependent, 1 if not or if nothing is known of it, 2 for an error.

    Example: spack-cache-db dependents 2feova4 dist/spack-cache.db
    """
    with opened(file) as lookups:
        spec, dag_hash = spec_of_hash(lookups, dag_hash), dag_hash.removeprefix("/")
        nothing = f"nothing in this database depends on /{dag_hash}"
        if not has_records(lookups.conn):
            nothing = f"the dependents of /{dag_hash} are not known: {_no_record(lookups)}"
        is_any = _print_edges(lookups.conn, read_dependents(lookups.conn, spec), options, nothing)
    sys.exit(0 if is_any else 1)


def _no_record(lookups: Lookups) -> str:
    """Return why a database does not say what depends on what."""
    if has_records(lookups.conn):
        return "no index or mirror in this database has a record of it"
    return "the database has no dependency data; build it from indexes or mirrors"


def _print_edges(
    conn: sqlite3.Connection, edges: Mapping[int, Edge | None], options: Any, nothing: str
) -> bool:
    """Print the specs at the other ends of edges, direct ones first; return whether any is."""
    rows = [
        (node.package, node.version, node.hash, *_uses(edges[spec]), node.kind)
        for spec, node in read_nodes(conn, edges).items()
    ]
    rows.sort(key=lambda row: (not row[3], row))
    return print_rows(_DEPENDENCY, rows, options, nothing)


def _uses(edge: Edge | None) -> tuple[str, str]:
    return (",".join(edge.types), ",".join(edge.virtuals)) if edge else ("", "")


@click.command()
@file_argument
@json_option
def info(file: Path, as_json: bool) -> None:
    """Summarize the content and the sources of a database."""
    described = info_of(file)
    if as_json:
        click.echo(json.dumps(described, indent=2))
        return
    width = max(map(len, described))
    for name, value in described.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {_text(each)}" for key, each in value.items())
        value = "-" if value == "" else value
        say(f"{name.replace('_', ' '):<{width}}  {_text(value)}")


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str("-" if value is None else value)


@click.command()
@file_argument
@narrowing_options("release", "stack")
@markdown_option
@all_option
def behind(file: Path, release: str | None, stack: str | None, **options: Any) -> None:
    """List packages of which Spack has newer versions.

    FILE must be built with package data. Deprecated versions and branches do not count.

    Exit status: 0 if no package is behind, 1 if some are or none has a binary, 2 for an error.

    Example: spack-cache-db behind dist/spack-cache.db --stack e4s
    """
    is_data = form_of(options) in ("json", "csv")
    with opened(file) as lookups:
        say_notes(read_spellings(lookups).notes([("release", release), ("stack", stack)]))
        known = compared_with_spack(lookups, release=release, stack=stack)
    count = sum(each.newest_version is not None for each in known)
    nothing = f"no package is behind: {counted(count, 'package')} compared with Spack's versions"
    if not count:
        nothing = "no package has both a binary and package data, so none can be compared"
    names = PackageStatus._fields if is_data else _SHOWN
    rows = [attrgetter(*names)(each) for each in known if each.versions_behind]
    is_any = print_rows(names, rows, options, nothing)
    sys.exit(1 if is_any or not count else 0)


_COLOURS = dict.fromkeys(CHANGE_WORDS, "yellow") | {"removed": "red", "added": "green"}


def _printable(write: Callable[[Diff], str]) -> Callable[[Diff], str]:
    """Return a function whose text is printable; of a difference, it shows few of the values."""
    return lambda found: "\n".join(map(printable, write(found).split("\n")))


_DIFF_FORMS = Forms(_printable(as_text), as_json, as_csv, _printable(as_markdown), _COLOURS)


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file)
@file_argument
@click.option("--package", metavar="NAME", help="Only this package.")
@narrowing_options("stack", "target", "host")
@markdown_option
def diff(
    old: str,
    new: str,
    file: Path,
    package: str | None,
    stack: str | None,
    target: str | None,
    host: str | None,
    **options: Any,
) -> None:
    """Show what changed between two releases.

    OLD and NEW are releases, or stacks of a release, such as develop:e4s.

    Of the configurations in both releases, the grown ones gained hashes, the shrunk ones lost
    hashes, and the rebuilt ones did both. If FILE was built from indexes or mirrors, the report
    also says which dependency caused the rebuilds.

    Exit status: 0 if nothing changed, 1 if something did or neither has a binary, 2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    form_of(options)
    narrowing = {"package": package, "stack": stack, "target": target, "host": host}
    with opened(file) as lookups:
        names = (("side", old), ("side", new), *narrowing.items())
        say_notes(read_spellings(lookups).notes(names))
    found = compare(file, old, new, **narrowing)
    is_compared = any(found.specs)
    if not is_compared:
        say_notes(
            [f"neither {found.old} nor {found.new} has such a binary, so nothing is compared"]
        )
    elif found.is_empty and form_of(options):
        say_notes([sentence(found)])
    print_answer(found, _DIFF_FORMS, options)
    sys.exit(0 if found.is_empty and is_compared else 1)
