"""The configurations of packages, and which of some conditions each of them misses.

What the words of a configuration decide is decided once for each word. Where it is (release, stack,
hash, dependencies) is read from the tables that `catalogue` reads, by the same rules.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from spack_cache_db.query.catalogue import Spec, configuration_of, learn, specs_in_scope
from spack_cache_db.query.conditions import (
    ANYWHERE,
    COLUMNS,
    PLACES,
    Condition,
    Conditions,
    Word,
    asked,
    is_of_specs,
    without,
)
from spack_cache_db.query.connection import select, select_in
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.selection import preference, satisfying
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION

_COLUMNS = ", ".join(CONFIGURATION)
_ROWS = f"SELECT id, {_COLUMNS}, spec_count, 1 FROM configurations"
ROWS_OF_PACKAGES = f"""
{_ROWS} WHERE package IN (SELECT value FROM json_each(:ids)) ORDER BY {{}}
"""
EVERY_ROW = f"{_ROWS} ORDER BY {{}}"
# SQLite gives the other columns of the row that has the least id (SQLite docs, "SELECT", 2.5).
GROUPS = f"""
SELECT min(id), {_COLUMNS}, sum(spec_count), count(*)
FROM configurations GROUP BY {{}} ORDER BY 1
"""
IN_RELEASE = """
SELECT configuration, spec_count FROM configuration_releases WHERE release = :release
"""
IN_STACK = """
SELECT configuration, spec_count FROM configuration_stacks WHERE stack = :stack AND spec_count > 0
"""
IN_STACK_OF_RELEASE = """
SELECT configuration, count(*) FROM release_specs
WHERE release = :release
  AND stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
GROUP BY 1
"""


class Candidate(NamedTuple):
    """A configuration as its table has it; `keys` are the ids in the columns of `CONFIGURATION`.

    It stands for so many `configurations` that are the same in all that is asked: see `groups`.
    """

    id: int
    keys: tuple[int, ...]
    spec_count: int
    configurations: int = 1

    def key(self, column: str) -> int:
        """Return the id in a column."""
        return self.keys[_PLACE[column]]


_PLACE = {column: place for place, column in enumerate(CONFIGURATION)}
_Rows = tuple[Candidate, ...]


class Candidates:
    """The configurations of packages, read when they are asked for, and kept.

    Their order is that of answers in `scope`.
    """

    def __init__(
        self, conn: sqlite3.Connection, lookups: Lookups, scope: Conditions = ANYWHERE
    ) -> None:
        self.conn = conn
        self.lookups = lookups
        self._scope = scope
        self._rows: dict[int | None, _Rows] = {}
        self._satisfying: dict[tuple[str, Any, int | None], Set[int]] = {}
        self._present: dict[tuple[Any, Any], Mapping[int, int]] = {}

    @cached_property
    def packages(self) -> dict[str, int]:
        """The ids of all packages."""
        return {name: key for key, name in self.lookups.words["package"].items()}

    def prepare(self, names: Iterable[str | None]) -> None:
        """Read the configurations of several packages at once; None is all packages."""
        wanted = {*names}
        order, late = preference(self.conn, self.lookups, self._scope)
        if None in wanted:
            self._rows[None] = self._read(select(self.conn, EVERY_ROW.format(order), **late))
        ids = {self.packages[name] for name in wanted if name in self.packages}
        found: dict[int, list[Candidate]] = {key: [] for key in sorted(ids - self._rows.keys())}
        read = select_in(self.conn, ROWS_OF_PACKAGES.format(order), found, **late)
        for row in self._read(read):
            found[row.key("package")].append(row)
        self._rows.update((key, tuple(rows)) for key, rows in found.items())

    def rows(self, name: str | None) -> _Rows:
        """Return the configurations of a package, in the order of `preference`.

        None is all packages.
        """
        key = None if name is None else self.packages.get(name)
        if name is not None and key is None:
            return ()
        if key not in self._rows:
            self.prepare([name])
        return self._rows[key]

    def groups(self, columns: Iterable[str]) -> _Rows:
        """Return all configurations, one for each group that is the same in these columns."""
        grouped = ", ".join(("spec_count > 0", *columns))
        return self._read(select(self.conn, GROUPS.format(grouped)))

    def _read(self, rows: Iterable[tuple[Any, ...]]) -> _Rows:
        rows = [*rows]
        learn(self.conn, self.lookups, rows)
        return tuple(Candidate(row[0], row[1:-2], *row[-2:]) for row in rows)

    def satisfying(self, condition: Condition, package: str | None) -> Set[int]:
        """Return the ids of words that satisfy a condition; of versions those of the package."""
        of = self.packages.get(package or "") if condition.kind == "version" else None
        known = (condition.kind, condition.asked, of)
        if known not in self._satisfying:
            found = satisfying(self.conn, self.lookups, condition, of)
            self._satisfying[known] = found
        return self._satisfying[known]

    def present(self, places: Conditions, rows: Iterable[Candidate]) -> Mapping[int, int]:
        """Return how many specs count in these places, by the ids of configurations."""
        if is_of_specs(places):
            found = specs_in_scope(self.conn, [row.id for row in rows], places)
            return {key: len(specs) for key, specs in found.items()}
        release, stack = asked(places, "release"), asked(places, "stack")
        if (release, stack) not in self._present:
            sql = IN_STACK_OF_RELEASE if stack is not None else IN_RELEASE
            sql = IN_STACK if release is None else sql
            found_in = select(self.conn, sql, release=release, stack=stack)
            self._present[release, stack] = dict(found_in)
        return self._present[release, stack]

    def configuration(self, row: Candidate) -> Configuration:
        """Return a row in words."""
        return configuration_of(self.lookups, row.keys)


@dataclass(frozen=True)
class Misses:
    """The configurations of a package, and what of some conditions each of them misses.

    Attributes:
        package: the name that is asked for; None for any.
        conditions: what else is asked.
        missed: a number for each row: bit i is set where its words miss condition i.
    """

    candidates: Candidates
    package: str | None
    rows: _Rows
    conditions: Conditions
    missed: tuple[int, ...]

    def fitting(self, left_out: Iterable[int] = ()) -> dict[Candidate, int]:
        """Return the rows that satisfy all conditions but those left out, in the file's order.

        Args:
            left_out: places in `conditions`.

        Returns:
            For each row how many of its specs count.
        """
        out = {*left_out}
        kept = ~sum(1 << place for place in out)
        pairs = zip(self.rows, self.missed, strict=True)
        fitting = [row for row, missed in pairs if not missed & kept]
        places = tuple(
            condition
            for place, condition in enumerate(self.conditions)
            if condition.kind in PLACES and place not in out
        )
        if not places:
            return {row: row.spec_count for row in fitting if row.spec_count > 0}
        present = self.candidates.present(places, fitting)
        return {row: present[row.id] for row in fitting if row.id in present}

    def all_miss(self, place: int) -> bool:
        """Return whether no configuration satisfies a condition by its words."""
        return all(missed >> place & 1 for missed in self.missed)

    def missing_least(self, out: Set[int]) -> list[tuple[int, Candidate]]:
        """Return the row that misses the fewest conditions, and a number for these; if any counts.

        Of its specs there, the one counts that misses the fewest.

        Args:
            out: places in `conditions`: the release or the stack that is missed.
        """
        of_specs = [at for at, each in enumerate(self.conditions) if each.kind in ("hash", "specs")]
        where = tuple(
            each
            for at, each in enumerate(self.conditions)
            if each.kind in ("release", "stack") and at not in out
        )
        counts = self.candidates.present(where, self.rows) if where else None
        missed_places = sum(1 << at for at in out)
        found = [
            (missed | missed_places, row)
            for missed, row in zip(self.missed, self.rows, strict=True)
            if (row.spec_count if counts is None else row.id in counts)
        ]
        if found and of_specs:
            least = min(missed.bit_count() for missed, _ in found) + len(of_specs)
            found = [each for each in found if each[0].bit_count() <= least]
            specs = specs_in_scope(self.candidates.conn, [row.id for _, row in found], where)
            found = [
                (missed | self._missed_by(specs[row.id], of_specs), row) for missed, row in found
            ]
        return [min(found, key=lambda each: each[0].bit_count())] if found else []

    def _missed_by(self, specs: Iterable[Spec], places: Sequence[int]) -> int:
        """Return what the spec misses that misses the fewest of some conditions on specs."""

        def missed(spec: Spec) -> int:
            return sum(1 << at for at in places if not _is_as_asked(spec, self.conditions[at]))

        return min(map(missed, specs), key=int.bit_count)


def _is_as_asked(spec: Spec, condition: Condition) -> bool:
    if condition.kind == "hash":
        return spec.hash.startswith(condition.asked)
    return spec.id in condition.asked.holds


def misses_of(candidates: Candidates, conditions: Conditions) -> Misses:
    """Return what the configurations of a package miss of some conditions."""
    named = asked(conditions, "package")
    package = named.text if isinstance(named, Word) else None
    every = dict.fromkeys(conditions if package is None else without(conditions, "package"))
    # Whole sums of patches are asked of records, and so far as configurations have them of these.
    of_specs = {each.text for each in every if each.kind == "specs"}
    rest = tuple(each for each in every if each.kind != "variant" or each.text not in of_specs)
    place_of = {each.text if each.kind == "specs" else each: at for at, each in enumerate(rest)}
    columns = dict.fromkeys(COLUMNS[each.kind] for each in every if each.kind in COLUMNS)
    if package is None and all(each.kind in COLUMNS for each in rest):
        rows = candidates.groups(columns)
    else:
        rows = candidates.rows(package)
    # By the words of each column first, which are far fewer than rows.
    places = {column: _PLACE[column] for column in columns}
    by_word = {at: dict.fromkeys({row.keys[at] for row in rows}, 0) for at in places.values()}
    for condition in every:
        if condition.kind in COLUMNS:
            place = place_of[condition if condition in place_of else condition.text]
            words = by_word[places[COLUMNS[condition.kind]]]
            for key in words.keys() - candidates.satisfying(condition, package):
                words[key] |= 1 << place
    missed = [0] * len(rows)
    for at, words in by_word.items():
        missed = [known | words[row.keys[at]] for known, row in zip(missed, rows, strict=True)]
    return Misses(candidates, package, rows, rest, tuple(missed))
