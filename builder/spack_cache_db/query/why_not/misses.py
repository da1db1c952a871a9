"""Which conditions of a query each configuration of its package misses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any

from spack_cache_db.query.asked import Conditions
from spack_cache_db.query.conditions import Scope
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.why_not.candidates import COLUMNS, PLACES, Candidates, Row
from spack_cache_db.spack.constraints import variant_text


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a query or its scope.

    Attributes:
        kind: a key of `COLUMNS`, or one of `PLACES`.
        text: the condition as one types it: `@1.14:`, `+mpi`, `%gcc@13`, `target=zen3`; of a
            release, a stack and a host the name.
        asked: what its kind asks, as `Conditions` has it; of a release and a stack the id. All
            that is asked beyond configurations is one condition, of the kind `specs`.
    """

    kind: str
    text: str
    asked: Any


def conditions_of(asked: Conditions, scope: Scope, lookups: Lookups) -> tuple[Condition, ...]:
    """Return what a query and its scope ask besides the package, in the order of its text."""
    found: list[Condition] = []
    if asked.versions is not None:
        found.append(Condition("version", f"@{asked.versions.text}", asked.versions))
    for variant in asked.variants:
        found.append(Condition("variant", variant_text(variant), replace(variant, column=0)))
    for kind in ("platform", "os", "target"):
        if (value := getattr(asked, kind)) is not None:
            found.append(Condition(kind, f"{kind}={value}", value))
    if asked.hash is not None:
        found.append(Condition("hash", f"/{asked.hash}", asked.hash))
    if asked.specs is not None:
        found.append(Condition("specs", asked.beyond, asked.specs))
    for compiler in dict.fromkeys(asked.compilers):
        versions = f"@{compiler.versions.text}" if compiler.versions else ""
        found.append(Condition("compiler", f"%{compiler.name}{versions}", compiler))
    for kind in ("platform", "os", "host"):
        if (value := getattr(scope, kind)) is not None:
            found.append(Condition(kind, value if kind == "host" else f"{kind}={value}", value))
    if scope.release is not None:
        name = lookups.releases[scope.release].name
        found.append(Condition("release", name, scope.release))
    if scope.stack is not None:
        found.append(Condition("stack", lookups.stacks[scope.stack].name, scope.stack))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Misses:
    """The configurations of a query's package, and what of its conditions each of them misses.

    `missed` has a number for each row: bit i is set where it misses condition i by its words.
    """

    candidates: Candidates
    rows: tuple[Row, ...]
    conditions: tuple[Condition, ...]
    missed: tuple[int, ...]

    def fitting(self, left_out: Iterable[int] = ()) -> dict[Row, int]:
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
        places = {
            condition.kind: condition.asked
            for place, condition in enumerate(self.conditions)
            if condition.kind in PLACES and place not in out
        }
        if not places:
            return {row: row.spec_count for row in fitting if row.spec_count > 0}
        present = self.candidates.present(places, fitting)
        return {row: present[row.id] for row in fitting if row.id in present}

    def all_miss(self, place: int) -> bool:
        """Return whether no configuration satisfies a condition by its words."""
        return all(missed >> place & 1 for missed in self.missed)

    @cached_property
    def by_count(self) -> list[tuple[int, Row]]:
        """The rows that count anywhere, each with what it misses by its words, fewest first."""
        counted = [each for each in zip(self.missed, self.rows, strict=True) if each[1].spec_count]
        return sorted(counted, key=lambda each: each[0].bit_count())


def misses_of(candidates: Candidates, asked: Conditions, scope: Scope) -> Misses:
    """Return what the configurations of a query's package miss of it."""
    conditions = conditions_of(asked, scope, candidates.lookups)
    columns = dict.fromkeys(COLUMNS[each.kind] for each in conditions if each.kind in COLUMNS)
    if asked.name is None and all(each.kind in COLUMNS for each in conditions):
        rows = candidates.groups(columns)
    else:
        rows = candidates.rows(asked.name)
    # By the words of each column first, which are far fewer than rows.
    places = {column: Row._fields.index(column) for column in columns}
    by_word = {column: dict.fromkeys({row[at] for row in rows}, 0) for column, at in places.items()}
    for place, condition in enumerate(conditions):
        if condition.kind in PLACES:
            continue
        missed = by_word[COLUMNS[condition.kind]]
        for key in missed:
            if not candidates.holds(condition.kind, condition.asked, key):
                missed[key] |= 1 << place
    words = [(at, by_word[column]) for column, at in places.items()]
    return Misses(
        candidates,
        rows,
        conditions,
        tuple(reduce(or_, (missed[row[at]] for at, missed in words), 0) for row in rows),
    )
