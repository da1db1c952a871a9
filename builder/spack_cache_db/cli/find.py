"""The command `find`: options in, a table or data out."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from spack_cache_db.cli.find_table import as_csv, as_json, as_table
from spack_cache_db.cli.here import this_machine
from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions import package_id
from spack_cache_db.query.find import (
    Found,
    Question,
    ask,
    close_names,
    contradicted,
    found_by,
    notes_on,
)
from spack_cache_db.query.install import install_found
from spack_cache_db.query.open import connected
from spack_cache_db.spack.query import SpecQuery, parse_query


class _Failure(click.ClickException):
    """An error; status 1 says that there is no answer."""

    exit_code = 2


@click.command()
@click.argument("spec")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--hashes", is_flag=True, help="One row per spec, with its hash.")
@click.option("--release", help="Only what this release lists.")
@click.option("--stack", help="Only what is in this stack.")
@click.option("--limit", type=click.IntRange(1), help="At most so many configurations.")
@click.option("--here", is_flag=True, help="Only what runs on this machine.")
@click.option("--install", is_flag=True, help="Print the commands that install the first row.")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@click.option("--csv", "as_csv_", is_flag=True, help="Print as CSV.")
def find(spec: str, file: Path, **options: Any) -> None:
    """Find the configurations in FILE that satisfy SPEC, newest version first.

    SPEC is written as for Spack; quote it. Dependencies (^zlib, %cmake), namespaces and compiler
    flags can be asked where FILE was built from indexes.

    Exit status 0 with rows, 1 without any, 2 for an error.

    Example: spack-cache-db find "hdf5@1.14: +mpi %gcc@13" dist/spack-cache.db
    """
    if sum(bool(options[name]) for name in ("as_json_", "as_csv_", "install")) > 1:
        _fail("--json, --csv and --install exclude each other: give one of them")
    try:
        with connected(file) as conn:
            question = _question(conn, spec, options)
            with_hashes = options["hashes"] or options["install"]
            found = found_by(conn, question, limit=options["limit"], with_hashes=with_hashes)
            _say(notes_on(conn, question))
            if not found:
                _say(_advice(conn, parse_query(spec), question, options))
                sys.exit(1)
            _print(conn, found, options)
    except BuilderError as error:
        _fail(str(error))


def _question(conn: sqlite3.Connection, spec: str, options: dict[str, Any]) -> Question:
    machine: dict[str, str | None] = {}
    if options["here"]:
        here = this_machine()
        machine = {"host": here.target, "os": here.os, "platform": here.platform}
        known = ", ".join(value for value in machine.values() if value)
        unknown = "".join(f"; {each}: any operating system is shown" for each in here.unknown)
        _say([f"this machine is {known}{unknown}"])
    return ask(conn, spec, options["release"], options["stack"], **machine)


def _print(conn: sqlite3.Connection, found: list[Found], options: dict[str, Any]) -> None:
    if options["as_json_"]:
        click.echo(as_json(found, options["hashes"]))
    elif options["as_csv_"]:
        click.echo(as_csv(found, options["hashes"]), nl=False)
    else:
        click.echo(as_table(found, options["hashes"], _width()))
    if options["install"]:
        commands = install_found(conn, found[0], options["release"])
        if commands is None:
            _fail("no release lists the first row, so nothing says where to get it")
        click.echo(f"\n{commands.mirror}\n{commands.trust}\n{commands.install}")


def _width() -> int | None:
    """Return the width of the terminal; what goes into a pipe or a file is not shortened."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def _advice(
    conn: sqlite3.Connection, query: SpecQuery, question: Question, options: dict[str, Any]
) -> list[str]:
    """Return why there may be no answer, and what to ask instead."""
    if query.name is not None and package_id(conn, query.name) is None:
        close = close_names(conn, query.name)
        hint = f"; close: {', '.join(close)}" if close else ""
        return [f"no package here is called {query.name!r}{hint}"]
    here = " on this machine" if options["here"] else ""
    advice = [f"nothing here satisfies this spec{here}"]
    narrowed = options["here"] or options["stack"] or options["release"]
    if not narrowed:
        advice += contradicted(conn, question.lookups, question.asked)
    if query.target is not None and ":" not in query.target:
        advice.append(
            f"target={query.target} is that very target: "
            f"target=:{query.target.split(',')[0]} is what runs on it"
        )
    return advice


def _say(notes: list[str] | tuple[str, ...]) -> None:
    for note in notes:
        click.echo(f"Note: {note}", err=True)


def _fail(message: str) -> NoReturn:
    raise _Failure(message)
