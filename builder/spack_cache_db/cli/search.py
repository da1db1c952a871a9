"""The search of `find` and `history`: a spec of the command line, in a database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spack_cache_db.cli.databases import opened
from spack_cache_db.cli.forms import CommandError, say_notes

if TYPE_CHECKING:
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.open.lookups import Lookups

_ENDS_WITH_PATH = re.compile(r".*\s([\w./-]+[./][\w/-]+)", re.DOTALL)
"""A text whose last word looks like a path: it has a dot or a slash."""


@contextmanager
def open_search(file: Path) -> Iterator[Lookups]:
    """Open a database; a spec that cannot be parsed ends the command with an error, and
    with the spec that its words mean.
    """
    from spack_cache_db.spack.lexer import QuerySyntaxError

    with opened(file) as lookups:
        try:
            yield lookups
        except QuerySyntaxError as error:
            # The second line of this message points at a column of the first, so the
            # lines are printed as they are.
            message = str(error)
            # A path that does not exist is taken for a part of the spec.
            path = _ENDS_WITH_PATH.fullmatch(error.text)
            if path is not None:
                message += f"\nif {path[1]} is the database: there is no such file"
            proposed = _meaning_of(lookups, error.text)
            if proposed is not None:
                message += f"\nperhaps you mean: {proposed}"
            raise CommandError(message) from None


def _meaning_of(lookups: Lookups, text: str) -> str | None:
    """Return the spec and the options that plain words mean; None if a word has no
    meaning.

    `pytorch cuda zen3` means `py-torch +cuda --host zen3`.
    """
    from spack_cache_db.query.words.reader import read_words

    reading = read_words(lookups, text)
    if reading is None or not reading.is_whole or not reading.spec:
        return None
    parts = [reading.spec]
    options = {
        "host": reading.host,
        "stack": reading.stack,
        "release": reading.release,
    }
    for option, name in options.items():
        if name is not None:
            parts.append(f"--{option} {name}")
    return " ".join(parts)


class Search:
    """A spec of the command line, read in the language of Spack and of a database.

    Args:
        lookups: the database.
        spec: the spec, or a pasted command or line of output.
        scope: the part of the database in which it is sought.
        version: the version of Spack for which the spec is written; None for today's.

    Attributes:
        question: the spec and the scope, which the database answers.

    Raises:
        QuerySyntaxError: the spec cannot be parsed.
        UnsupportedQuery: the database cannot answer it; the message suggests another
            spec.
    """

    def __init__(
        self, lookups: Lookups, spec: str, scope: Scope, version: str | None = None
    ) -> None:
        from spack_cache_db.query.match.question import Question
        from spack_cache_db.query.names.known import spec_in
        from spack_cache_db.query.names.spellings import read_spellings
        from spack_cache_db.spack.parser import parse_query

        conditions = scope.conditions(lookups)
        # `spec_in` finds the spec in a pasted text, and puts it into today's syntax.
        read_spec = spec_in(lookups, spec, version)
        self.question = Question(lookups, parse_query(read_spec.spec), conditions)
        notes_on_names = read_spellings(lookups).notes(scope.names.items())
        self._notes = (*read_spec.notes_on(spec), *notes_on_names)
        self._require_answer()

    def _require_answer(self) -> None:
        """Raise `UnsupportedQuery`, with advice, if the database cannot answer."""
        from spack_cache_db.query.answers.why_not import why_corrected
        from spack_cache_db.query.conditions.pages import UnsupportedQuery

        try:
            self.question.check()
        except UnsupportedQuery as error:
            # Before Spack 1.0, what follows a compiler had another meaning: the spec in
            # today's syntax may have an answer.
            why = why_corrected(self.question)
            advice = why.advice() if why else ()
            raise UnsupportedQuery("; ".join((str(error), *advice))) from None

    def say_notes(self, *, is_found: bool) -> None:
        """Print how the spec and the names were read, and why nothing was found."""
        from spack_cache_db.query.answers.why_not import why_not

        say_notes((*self._notes, *self.question.notes))
        if is_found:
            # Whether the mirrors have lost some of the binaries.
            say_notes(self.question.lost_note())
        else:
            say_notes(why_not(self.question).reasons())
