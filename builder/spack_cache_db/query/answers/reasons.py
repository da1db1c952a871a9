"""Why nothing satisfies a spec, as a record and in sentences.

For `py-mpi4py target=zen4`, the sentences may be `no binary in this database satisfies
this spec` and `with target=:zen4: 4 configurations; x86_64_v3 runs on zen4`. `why_not`
makes these records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.names.known import KnownName, unknown_text

SCOPE = ("release", "stack", "host")
"""The kinds of conditions that are options, such as `--release`, not parts of a spec.
"""


@dataclass(frozen=True, slots=True)
class Without:
    """The answer without some of the conditions.

    Attributes:
        left_out: the conditions that are left out.
        spec: the query without them, as text.
        configurations: the number of configurations that satisfy all others.
        instead: what these configurations have in place of the conditions, as texts
            such as `newest 1.14.6`.
        nearest: the first of these configurations, newest version first.
        target: a range of targets in `spec` in place of the target that is left out,
            such as `:zen4`: all that run on it; None if there is none.
    """

    left_out: tuple[Condition, ...]
    spec: str
    configurations: int
    instead: tuple[str, ...]
    nearest: Configuration
    target: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The kinds of `SCOPE` that are left out."""
        kinds = [condition.kind for condition in self.left_out]
        return tuple(kind for kind in kinds if kind in SCOPE)

    @property
    def sentence(self) -> str:
        """The answer in one sentence, such as `without +mpi: 3 configurations; there is
        ~mpi`.
        """
        labels = []
        for condition in self.left_out:
            is_replaced = condition.kind == "target" and self.target is not None
            if not is_replaced:
                labels.append(label(condition))
        changes = []
        if labels:
            changes.append(f"without {' and '.join(labels)}")
        if self.target:
            changes.append(f"with target={self.target}")
        count = counted(self.configurations, "configuration")
        first = f"{' and '.join(changes)}: {count}"
        return "; ".join((first, *self.instead))


def label(condition: Condition) -> str:
    """Return a condition as a user types it; a release, stack or host with its kind."""
    if condition.kind in SCOPE:
        return f"{condition.kind} {condition.text}"
    return condition.text


class NearSpec(NamedTuple):
    """A query with a name near an unknown one, and the number of its configurations."""

    spec: str
    configurations: int


class NearestConfiguration(NamedTuple):
    """A configuration, and the labels of the conditions that it misses."""

    configuration: Configuration
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The reasons for an empty answer, and what exists instead.

    Attributes:
        known: the meaning of the package's name, if no binary has it; otherwise None.
        close: packages with names near an unknown one that do not satisfy the other
            conditions, or of which nothing else is asked.
        missing: conditions that no configuration satisfies, with the values that exist,
            as texts.
        without: answers without one condition, or else without two; most configurations
            first.
        nearest: otherwise the configuration that misses the fewest conditions; None if
            there is none.
        named: queries with a name near an unknown one that have answers.
        corrected: the query with the constraints behind a compiler moved before it, if
            that has an answer.
        read_as: this query, if it has no answer; then all other reasons are those of
            it.
        notes: what else to know, as sentences.
    """

    known: KnownName | None = None
    close: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    without: tuple[Without, ...] = ()
    nearest: NearestConfiguration | None = None
    named: tuple[NearSpec, ...] = ()
    corrected: str | None = None
    read_as: str | None = None
    notes: tuple[str, ...] = ()

    def reasons(self) -> tuple[str, ...]:
        """Return why there is no answer and what to type instead, as sentences."""
        advice = self.advice()
        if self.known is not None:
            return advice
        return ("no binary in this database satisfies this spec", *advice)

    def advice(self) -> tuple[str, ...]:
        """Return `sentences`, and what to type instead."""
        if self.corrected is None:
            return self.sentences()
        return (*self.sentences(), f"perhaps you mean: {self.corrected}")

    def sentences(self) -> tuple[str, ...]:
        """Return the reasons as sentences."""
        sentences = []
        if self.read_as:
            sentences.append(f"nothing satisfies {self.read_as!r} either")
        if self.known is not None:
            # Near names are proposed with the other conditions of the query.
            near = [*(named.spec for named in self.named), *self.close]
            if near:
                sentences.append(f"{self.known.name}: {unknown_text(near)}")
            else:
                sentences.append(self.known.sentence)
        sentences += self.missing
        sentences += [answer.sentence for answer in self.without]
        sentences += self.last_sentences
        return tuple(sentences)

    @property
    def last_sentences(self) -> tuple[str, ...]:
        """The nearest configuration, if there is no other answer, and the notes."""
        if self.nearest is None:
            return self.notes
        summary = self.nearest.configuration.summary
        missed = ", ".join(self.nearest.missed)
        return (f"nearest is {summary}, which misses {missed}", *self.notes)
