"""The meaning of plain words, as a record: `hdf5 with mpi zen3` is the spec `hdf5 +mpi`
for a machine with `zen3`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.words.splitting import number_in
from spack_cache_db.query.words.vocabulary import GENERATIONS


class Meaning(NamedTuple):
    """A part of a reading, and the words that mean it.

    Attributes:
        kind: what it is a condition on: `package`, `compiler`, `dependency`, `release`,
            `stack`, `os`, `platform`, `target` or `variant`.
        text: the part in Spack's syntax, such as `%gcc@13`; the name of a release or a
            stack.
        words: the words, such as `("gcc", "13")`.
    """

    kind: str
    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of words: a spec in Spack's syntax, a release, a stack and a machine.

    For example `hdf5 with mpi e4s zen3` has the spec `hdf5 +mpi`, the stack `e4s` and
    the host `zen3`; its `rest` is `hdf5` and `mpi`, of which `mpi` is a switch. Words
    without a meaning are searched for in the database (`words`), or `left_out`.

    Attributes:
        spec: the spec; empty if no word is a part of one.
        release: the name of the release; None if the words name none.
        stack: the name of the stack; None if the words name none.
        host: the CPU target of the machine; None if the words name none.
        words: the words for a full-text search.
        left_out: the words that no configuration has together with the others.
        package: the package that the words name; empty for none.
        rest: the words that name no machine, release or stack.
        switches: the words that are names of variants, which they switch on.
        unrecorded: what the words ask for and the database does not record, such as the
            dependency `python@3.11`; its words are `left_out`, unless another condition
            stands for them.
        meanings: the parts of the reading with their words.
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
    unrecorded: tuple[str, ...] = ()
    meanings: tuple[Meaning, ...] = field(default=(), compare=False)

    @property
    def generations(self) -> tuple[str, ...]:
        """The targets of which a word names all, the oldest first: those of
        `graviton`.
        """
        for meaning in self.meanings:
            if meaning.kind == "target":
                return GENERATIONS.get(meaning.words[-1].lower(), ())
        return ()

    @property
    def is_whole(self) -> bool:
        """Whether the parts of the reading are all that the words mean.

        Without a package, names of variants may be a description instead: `cuda` is a
        package, a variant of many packages, and a word of descriptions.
        """
        if self.words or self.left_out:
            return False
        return bool(self.package) or not self.switches

    @property
    def search(self) -> str:
        """What is left to search for if the machine, release and stack are chosen: a
        spec, or else the words.
        """
        text = " ".join(self.rest)
        if self.words or self.left_out:
            return text
        if len(self.rest) != 1:
            return self.spec
        # A single word that is not a package's own name may name a package of other
        # software (`torch` for py-torch), or describe several (`cuda` for +cuda).
        word = self.rest[0]
        is_own_name = word.lower() == self.package
        is_all_of_spec = self.spec in (self.package, f"+{word}")
        return text if is_all_of_spec and not is_own_name else self.spec

    @property
    def nouns(self) -> tuple[str, ...]:
        """The words that may be the name or the description of a package.

        These are the package and the words without a meaning, or else the names of
        variants.
        """
        nouns = [self.package] if self.package else []
        unread = {*self.words, *self.left_out}
        for word in self.rest:
            # A number is a version, and names nothing.
            if word in unread and number_in(word) is None:
                nouns.append(word)
        return tuple(nouns) or self.switches

    def conditions(self) -> tuple[Condition, ...]:
        """Return the condition of the full-text search; none without words for it."""
        if not self.words:
            return ()
        text = " ".join(self.words)
        return (Condition("words", text, full_text_query(self.words)),)


def full_text_query(words: Sequence[str]) -> str:
    """Return the FTS5 query for rows that have all words, such as `"mesh" "fem"`."""
    quoted = []
    for word in words:
        # FTS5 reads two quotes as one.
        escaped = word.replace('"', '""')
        quoted.append(f'"{escaped}"')
    return " ".join(quoted)
