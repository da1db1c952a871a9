"""The command `dependents`: what depends on a hash, or on all that satisfies a spec."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from spack_cache_db.cli.databases import opened
from spack_cache_db.cli.deps import print_edges
from spack_cache_db.cli.forms import form_of, say_notes
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.search import open_search
from spack_cache_db.cli.spec_words import SpecCommand
from spack_cache_db.cli.tables import (
    NOTHING,
    Table,
    more_rows,
    most_rows,
    print_answer,
)

if TYPE_CHECKING:
    from spack_cache_db.query.answers.dependents import Dependents

_STATUS = {"needed": 0, "not needed": 1, "not satisfied": 3, "unknown": 4}
"""The exit status of each kind of answer; 2 is an error, as in all commands."""

_HASH = re.compile("[a-z0-9]*", re.IGNORECASE)
"""A word that may be the beginning of a hash, and the name of a package as well."""

_NARROWING = ("release", "stack", "host")
"""The options that narrow the answer for a spec."""


@click.command(cls=SpecCommand)
@shared_options("release", "stack", "host", "json", "csv", "markdown", "all")
def dependents(spec: str, file: Path, **options: Any) -> None:
    """List what depends on a spec.

    SPEC has Spack's own syntax, such as openssl@:3.0.6: all binaries are listed that
    link or run what satisfies it, at any depth, with the nearest spec that they need.
    FILE must be built from indexes or mirrors.

    The beginning of a hash lists what depends on that spec alone, also to be built:
    direct dependents come first, with their types. A word that is the name of a package
    is that package; write /openssl if you mean a hash.

    Exit status: 0 if there is a dependent, 2 for an error. For a spec, 1 if no binary
    needs what satisfies it, 3 if nothing satisfies it, 4 without dependency data. For a
    hash, 1 if there is no dependent or no data.

    Example: spack-cache-db dependents openssl@:3.0.6 dist/spack-cache.db
    """
    if _is_hash(spec, file):
        for name in _NARROWING:
            if options[name]:
                raise click.UsageError(f"--{name} goes with a spec, not with a hash")
        print_edges(spec, file, options, is_reversed=True)
    _print_needing(spec, file, options)


def _is_hash(text: str, file: Path) -> bool:
    """Return whether a text is the beginning of a hash: `/2feova4`, or a word that is
    not the name of a package.
    """
    if text.startswith("/"):
        return True
    if not _HASH.fullmatch(text):
        return False
    from spack_cache_db.query.names.known import known_names

    with opened(file) as lookups:
        return not known_names(lookups).is_package(text)


def _print_needing(text: str, file: Path, options: Any) -> NoReturn:
    """Print the binaries that need what satisfies a spec, and end."""
    from spack_cache_db.query.answers.dependents import dependents_of
    from spack_cache_db.query.names.known import spec_in
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.names.spellings import read_spellings
    from spack_cache_db.spack.parser import parse_query

    form = form_of(options)
    scope = Scope(**{name: options[name] for name in _NARROWING})
    with open_search(file) as lookups:
        pasted = spec_in(lookups, text)
        query = parse_query(pasted.spec)
        names = read_spellings(lookups).notes(scope.names.items())
        answer = dependents_of(lookups, query, scope.conditions(lookups))

    notes = [*pasted.notes_on(text), *names, *answer.notes]
    # The table has the sentence itself.
    if form in ("json", "csv") or not answer.binaries:
        notes.insert(0, answer.sentence)
    say_notes(notes)
    if answer.binaries or form is not None:
        print_answer(
            options,
            lambda: answer.rows,
            _lines(answer, most_rows(options)),
            value=answer.as_dict,
            markdown=_markdown(answer),
        )
    sys.exit(_STATUS[answer.status])


def _table(answer: Dependents, most: int | None = None) -> Table:
    """Return the first binaries as a table with short hashes."""
    from spack_cache_db.query.answers.dependents import HASH_LENGTH, Dependent

    rows = []
    for binary in answer.binaries[:most]:
        name, _, dag_hash = binary.needs.partition("/")
        needs = f"{name}/{dag_hash[:HASH_LENGTH]}"
        direct = "yes" if binary.direct else NOTHING
        short_hash = binary.hash[:HASH_LENGTH]
        rows.append((binary.package, binary.version, short_hash, needs, direct))
    return Table(Dependent._fields, rows, optional=("direct", "hash"))


def _lines(answer: Dependents, most: int | None) -> Iterator[str]:
    """Yield the lines for people."""
    yield answer.sentence
    yield ""
    yield from _table(answer, most).lines()
    hidden_count = 0 if most is None else len(answer.binaries) - most
    if hidden_count > 0:
        yield ""
        yield more_rows(hidden_count)


def _markdown(answer: Dependents) -> Iterator[str]:
    """Yield the lines in Markdown."""
    yield f"{answer.sentence}."
    if answer.binaries:
        yield ""
        yield from _table(answer).markdown()
