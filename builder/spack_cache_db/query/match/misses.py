"""The conditions that configurations do not satisfy: they miss them.

If nothing satisfies `hdf5@1.14 +mpi target=zen3`, one configuration of `hdf5` may miss
the version, and another one the target and the variant. `Misses` finds the
configurations that satisfy all conditions without some of them, and the configuration
that misses the fewest.

Configurations are rows here: ids in place of words. The words decide some conditions,
and the specs of a row decide the others: those on a release, a stack or a hash, and on
dependencies (`PLACE_KINDS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    OF_SPECS,
    PLACE_KINDS,
    Conditions,
    Word,
    condition_value,
    only,
    without,
)
from spack_cache_db.query.match.candidates import (
    KEY_POSITIONS,
    Candidate,
    Candidates,
    Rows,
    satisfies,
)
from spack_cache_db.query.stored.binary import Spec, counts_in_scope


def misses_of(candidates: Candidates, conditions: Conditions) -> Misses:
    """Return the conditions that the configurations of a package do not satisfy.

    Without a condition on the package, configurations of all packages are compared.
    """
    # Split off the package.
    word = condition_value(conditions, "package")
    package = word.text if isinstance(word, Word) else None
    if package:
        conditions = without(conditions, "package")
    conditions = tuple(dict.fromkeys(conditions))

    # Read the rows: if only words of some columns matter, one row for equal ones.
    kinds = {condition.kind for condition in conditions}
    columns: dict[str, None] = {}
    for condition in conditions:
        columns |= dict.fromkeys(COLUMNS.get(condition.kind, ()))
    if package is None and kinds <= COLUMNS.keys():
        rows = candidates.groups(columns)
    else:
        rows = candidates.rows(package)

    # Compare the words of each column with its conditions. A column has far fewer words
    # than rows, so each word is compared once.
    missed = [0] * len(rows)
    for column in columns:
        key_position = KEY_POSITIONS[column]
        missed_by_word = {row.keys[key_position]: 0 for row in rows}
        for position, condition in enumerate(conditions):
            if column not in COLUMNS.get(condition.kind, ()):
                continue
            satisfying = candidates.satisfying(condition, column, package)
            for word_id in missed_by_word.keys() - satisfying:
                missed_by_word[word_id] |= 1 << position
        for number, row in enumerate(rows):
            missed[number] |= missed_by_word[row.keys[key_position]]
    return Misses(candidates, package, rows, conditions, tuple(missed))


class Miss(NamedTuple):
    """A configuration, and the conditions that it does not satisfy, as bits."""

    missed: int
    row: Candidate

    @property
    def missed_count(self) -> int:
        """The number of conditions that it does not satisfy."""
        return self.missed.bit_count()


@dataclass(frozen=True)
class Misses:
    """The conditions that each configuration of a package does not satisfy.

    A condition is given by its position in `conditions`. Several conditions are the
    bits of one integer: `0b101` is the first and the third. All rows are compared with
    all conditions, and integers are small and quick.

    The methods leave some conditions out: `left_out` are their positions.

    Attributes:
        candidates: the configurations of the database.
        package: the package of the rows; None for rows of all packages.
        rows: its configurations.
        conditions: the conditions, without the one on the package.
        missed: for each row, the conditions that its words do not satisfy.
    """

    candidates: Candidates
    package: str | None
    rows: Rows
    conditions: Conditions
    missed: tuple[int, ...]

    def fitting(self, left_out: Iterable[int] = ()) -> dict[Candidate, int]:
        """Return the rows with specs that satisfy all conditions but `left_out`, and
        the number of these specs.
        """
        rows = self.satisfied_by_words(left_out)
        counts = self._counts(rows, self._but(left_out, PLACE_KINDS))
        fitting = {}
        for row in rows:
            count = counts.get(row.id)
            if count:
                fitting[row] = count
        return fitting

    def satisfied_by_words(self, left_out: Iterable[int] = ()) -> list[Candidate]:
        """Return the rows whose words satisfy all conditions but `left_out`, with specs
        or not.
        """
        # All bits are set, except those of the conditions that are left out.
        considered = ~_bits(left_out)
        pairs = zip(self.rows, self.missed, strict=True)
        return [row for row, missed in pairs if not missed & considered]

    def positions_of(self, *kinds: str) -> list[int]:
        """Return the positions of the conditions of some kinds."""
        return [
            position
            for position, condition in enumerate(self.conditions)
            if condition.kind in kinds
        ]

    def all_miss(self, position: int) -> bool:
        """Return whether no configuration satisfies a condition by its words."""
        return all(missed >> position & 1 for missed in self.missed)

    def missing_least(self, left_out: Set[int]) -> Miss | None:
        """Return the row with specs that misses the fewest conditions; None without
        rows.

        The conditions `left_out` count as missed.
        """
        # A row without a spec in the release and the stack is not near.
        places = self._but(left_out, ("release", "stack"))
        counts = self._counts(self.rows, places)
        missed_before = _bits(left_out)
        misses = []
        for row, missed in zip(self.rows, self.missed, strict=True):
            if counts.get(row.id):
                misses.append(Miss(missed | missed_before, row))
        misses = self._with_missed_by_specs(misses, places)
        # Of equal rows, the first one.
        return min(misses, key=lambda miss: miss.missed_count, default=None)

    def _with_missed_by_specs(
        self, misses: list[Miss], places: Conditions
    ) -> list[Miss]:
        """Add the conditions on specs that the best spec of each row does not satisfy.

        Args:
            misses: rows with the conditions that their words do not satisfy.
            places: the release and the stack of their specs.

        Returns:
            Those of the rows that may be the nearest.
        """
        of_specs = self.positions_of(*OF_SPECS)
        if not misses or not of_specs:
            return misses

        # Specs take time to read. Even if the best row by words misses all conditions
        # on specs, it is better than rows whose words miss more than that.
        most = min(miss.missed_count for miss in misses) + len(of_specs)
        near = [miss for miss in misses if miss.missed_count <= most]
        specs_of_row = self.candidates.specs_of(places, [miss.row for miss in near])

        def missed_by(spec: Spec) -> int:
            return _bits(
                position
                for position in of_specs
                if not satisfies(spec, self.conditions[position])
            )

        with_specs = []
        for miss in near:
            missed_by_specs = [missed_by(spec) for spec in specs_of_row[miss.row.id]]
            fewest = min(missed_by_specs, key=lambda missed: missed.bit_count())
            with_specs.append(Miss(miss.missed | fewest, miss.row))
        return with_specs

    def _but(self, left_out: Iterable[int], kinds: Iterable[str]) -> Conditions:
        """Return the conditions of some kinds, without those at the positions
        `left_out`.
        """
        positions = set(left_out)
        remaining = tuple(
            condition
            for position, condition in enumerate(self.conditions)
            if position not in positions
        )
        return only(remaining, *kinds)

    def _counts(
        self, rows: Sequence[Candidate], places: Conditions
    ) -> Mapping[int, int]:
        """Return the number of specs of rows that satisfy conditions of `PLACE_KINDS`,
        by the ids of the rows.
        """
        if not places:
            return {row.id: row.spec_count for row in rows}
        if self.package is None:
            ids = [row.id for row in rows]
            return counts_in_scope(self.candidates.lookups, ids, places)
        # The specs of one package are read once, and kept.
        specs_of_row = self.candidates.specs_of(places, rows)
        return {key: len(specs) for key, specs in specs_of_row.items()}


def _bits(positions: Iterable[int]) -> int:
    """Return an integer with these bits set: `0b101` for 0 and 2."""
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits


def positions_of_bits(bits: int) -> list[int]:
    """Return the positions of the bits that are set: 0 and 2 for `0b101`."""
    return [position for position in range(bits.bit_length()) if bits >> position & 1]
