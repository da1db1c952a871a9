"""The conditions that the nearest configurations miss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    OF_SPECS,
    PLACES,
    Conditions,
    Word,
    asked,
    only,
    without,
)
from spack_cache_db.query.match.selection import (
    PLACE,
    Candidate,
    Candidates,
    Rows,
    is_as_asked,
)
from spack_cache_db.query.stored.binary import Spec, counts_in_scope


@dataclass(frozen=True)
class Misses:
    """The conditions that each configuration of a package does not satisfy.

    `missed` has a number for each row: bit i is set if its words do not satisfy
    condition i. The package itself is not among the conditions.
    """

    candidates: Candidates
    package: str | None
    rows: Rows
    conditions: Conditions
    missed: tuple[int, ...]

    def fitting(self, left_out: Iterable[int] = ()) -> dict[Candidate, int]:
        """Return the number of specs of each row that satisfies all conditions but
        `left_out`.
        """
        considered = ~sum(1 << position for position in {*left_out})
        rows = self.satisfied_by_words(left_out)
        counts = self._counts(considered, rows, PLACES)
        return {row: counts[row.id] for row in rows if counts.get(row.id)}

    def satisfied_by_words(self, left_out: Iterable[int] = ()) -> list[Candidate]:
        """Return the rows whose words satisfy all conditions but `left_out`, with specs
        or not.
        """
        considered = ~sum(1 << position for position in {*left_out})
        pairs = zip(self.rows, self.missed, strict=True)
        return [row for row, missed in pairs if not missed & considered]

    def _counts(
        self, considered: int, rows: Sequence[Candidate], kinds: Iterable[str]
    ) -> Mapping[int, int]:
        """Return the number of specs of rows that satisfy the considered conditions of
        kinds.
        """
        places = self._considered(considered, kinds)
        if not places:
            return {row.id: row.spec_count for row in rows}
        if self.package is None:
            return counts_in_scope(
                self.candidates.lookups, [row.id for row in rows], places
            )
        return {
            key: len(specs)
            for key, specs in self.candidates.specs_of(places, rows).items()
        }

    def _considered(self, considered: int, kinds: Iterable[str]) -> Conditions:
        conditions = enumerate(self.conditions)
        return only(
            tuple(found for at, found in conditions if considered >> at & 1), *kinds
        )

    def all_miss(self, position: int) -> bool:
        """Return whether no configuration satisfies a condition by its words."""
        return all(missed >> position & 1 for missed in self.missed)

    def missing_least(self, out: Set[int]) -> tuple[int, Candidate] | None:
        """Return the row with specs that misses the fewest conditions, after these as a
        bit set.

        The conditions at the positions `out` count as missed.
        """
        conditions = enumerate(self.conditions)
        of_specs = [(at, found) for at, found in conditions if found.kind in OF_SPECS]
        bits, kinds = sum(1 << at for at in out), ("release", "stack")
        counts = self._counts(~bits, self.rows, kinds)
        rows = [
            (missed | bits, row)
            for missed, row in zip(self.missed, self.rows, strict=True)
            if counts.get(row.id)
        ]
        if rows and of_specs:
            fewest = min(missed.bit_count() for missed, _ in rows) + len(of_specs)
            rows = [pair for pair in rows if pair[0].bit_count() <= fewest]
            where = self._considered(~bits, kinds)
            specs = self.candidates.specs_of(where, [row for _, row in rows])

            def missed_by(spec: Spec) -> int:
                return sum(
                    1 << at for at, found in of_specs if not is_as_asked(spec, found)
                )

            rows = [
                (missed | min(map(missed_by, specs[row.id]), key=int.bit_count), row)
                for missed, row in rows
            ]
        return min(rows, key=lambda pair: pair[0].bit_count(), default=None)


def misses_of(candidates: Candidates, conditions: Conditions) -> Misses:
    """Return the conditions that the configurations of a package do not satisfy."""
    word = asked(conditions, "package")
    package = word.text if isinstance(word, Word) else None
    remaining = tuple(
        dict.fromkeys(without(conditions, "package") if package else conditions)
    )
    kinds = [condition.kind for condition in remaining]
    columns = dict.fromkeys(COLUMNS[kind] for kind in kinds if kind in COLUMNS)
    if package is None and COLUMNS.keys() >= {*kinds}:
        rows = candidates.groups(columns)
    else:
        rows = candidates.rows(package)
    missed = [0] * len(rows)
    for column in columns:
        # A column has far fewer words than rows.
        at = PLACE[column]
        words = dict.fromkeys({row.keys[at] for row in rows}, 0)
        for position, condition in enumerate(remaining):
            if COLUMNS.get(condition.kind) == column:
                for key in words.keys() - candidates.satisfying(condition, package):
                    words[key] |= 1 << position
        missed = [
            bits | words[row.keys[at]] for bits, row in zip(missed, rows, strict=True)
        ]
    return Misses(candidates, package, rows, remaining, tuple(missed))
