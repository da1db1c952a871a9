"""The meaning of plain words: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spack_cache_db.query.conditions.conditions import Condition


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of words: a spec in Spack's syntax, a release, a stack and a machine.

    For example `hdf5 with mpi e4s zen3` has the spec `hdf5 +mpi`, the stack `e4s` and
    the host `zen3`.

    Attributes:
        words: the words for a full-text search.
        left_out: the words that no configuration has together with the others.
        package: the package that they name; empty for none.
        rest: the words that name no machine, release or stack.
        switches: the words that are names of variants.
    """

    spec: str
    release: str | None = None
    stack: str | None = None
    host: str | None = None
    words: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    package: str = ""
    rest: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all words are read; variants without a package may be a description
        of one.
        """
        if self.words or self.left_out:
            return False
        return bool(self.package) or not self.switches

    @property
    def search(self) -> str:
        """The text without machine, release and stack: a spec, or else the words."""
        text = " ".join(self.rest)
        if self.words or self.left_out:
            return text
        if len(self.rest) != 1:
            return self.spec
        # A single word that is not a package's own name may name a package of other
        # software (`torch` for py-torch), or describe several (`cuda` for +cuda).
        word = self.rest[0]
        if word.lower() != self.package and self.spec in (self.package, f"+{word}"):
            return text
        return self.spec

    @property
    def nouns(self) -> tuple[str, ...]:
        """The words that may be the name or the description of a package."""
        nouns = [self.package] if self.package else []
        unread = {*self.words, *self.left_out}
        nouns += [word for word in self.rest if word in unread]
        return tuple(nouns) or self.switches

    def conditions(self) -> tuple[Condition, ...]:
        """Return the condition of the full-text search, if there are words for one."""
        if not self.words:
            return ()
        text = " ".join(self.words)
        return (Condition("words", text, full_text_query(self.words)),)


def full_text_query(words: Sequence[str]) -> str:
    """Return the FTS5 query for rows that have all words; quotes are doubled in it."""
    quoted = []
    for word in words:
        escaped = word.replace('"', '""')
        quoted.append(f'"{escaped}"')
    return " ".join(quoted)
