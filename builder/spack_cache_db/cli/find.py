"""The command `find`: options in, a table or data out."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.find_table import as_table
from spack_cache_db.cli.input import GivenPath
from spack_cache_db.cli.scope import Failure, fail, say_notes, scope_names, scope_options
from spack_cache_db.cli.terminal import is_terminal, printable_json, printable_values, say, width
from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.find import Found, Question, ask, found_by, notes_on
from spack_cache_db.query.found_data import as_csv, as_json
from spack_cache_db.query.install import install_found
from spack_cache_db.query.open import connected
from spack_cache_db.query.why_not.misplaced import corrected
from spack_cache_db.query.why_not.reasons import why_not
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query


@click.command()
@click.argument("spec")
@click.argument("file", type=GivenPath(path_type=Path))
@click.option("--hashes", is_flag=True, help="One row per spec, with its hash.")
@scope_options
@click.option("--limit", type=click.IntRange(1), help="At most so many configurations.")
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
        fail("--json, --csv and --install exclude each other: give one of them")
    if os.path.isfile(spec) and not os.path.exists(file):  # noqa: PTH110, PTH113 - any text is given
        fail(f"{spec} is a file: give the spec first, then the file")
    try:
        names = scope_names(options)
        with connected(file) as conn:
            query = parse_query(spec)
            question = _question(conn, query, names)
            with_hashes = options["hashes"] or options["install"]
            found = found_by(conn, question, slice(options["limit"]), with_hashes=with_hashes)
            say_notes(notes_on(conn, question))
            if not found:
                say_notes(_advice(conn, query, question))
                sys.exit(1)
            _print(conn, found, options)
    except QuerySyntaxError as error:
        # Its second line points at a place in the first.
        raise Failure(str(error)) from None
    except BuilderError as error:
        fail(str(error))


def _question(conn: sqlite3.Connection, query: SpecQuery, names: dict[str, Any]) -> Question:
    try:
        return ask(conn, query, **names)
    except UnsupportedQuery as error:
        better = corrected(conn, query)
        if better is None:
            raise
        raise UnsupportedQuery(f"{error}: {better}") from None


def _print(conn: sqlite3.Connection, found: list[Found], options: dict[str, Any]) -> None:
    if options["as_json_"]:
        click.echo(printable_json(as_json(found, options["hashes"])))
    elif options["as_csv_"]:
        rows = printable_values(tuple(found)) if is_terminal() else found
        # Click would take escape sequences out of what goes into a pipe: here they are data.
        click.echo(as_csv(rows, options["hashes"]), nl=False, color=True)
    else:
        click.echo(as_table(printable_values(tuple(found)), options["hashes"], width()))
    if options["install"]:
        commands = install_found(conn, found[0], options["release"])
        if commands is None:
            fail("no release lists the first row, so nothing says where to get it")
        note = [f"# {commands.note}"] if commands.note else []
        for line in ("", *note, commands.mirror, commands.trust, commands.install):
            say(line)


def _advice(conn: sqlite3.Connection, query: SpecQuery, question: Question) -> list[str]:
    """Return why there is no answer, and what to ask instead."""
    why = why_not(conn, question.lookups, query, question.scope, asked=question.asked)
    nothing = [] if why.unknown else ["nothing here satisfies this spec"]
    instead = [f"perhaps you mean: {why.corrected}"] if why.corrected else []
    return [*nothing, *why.sentences(), *instead]
