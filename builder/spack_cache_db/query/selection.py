"""Finds the configurations that satisfy conditions, and the conditions that the others miss.

Each condition is decided on the small table of its words (the versions of one package, the
compilers, the targets, …), and large tables are searched for ids only. Statements are put together
from the fixed fragments below, never from input.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from spack_cache_db.query.catalogue import (
    Spec,
    configuration_of,
    counts_in_scope,
    learn,
    specs_in_scope,
)
from spack_cache_db.query.conditions import (
    ANYWHERE,
    COLUMNS,
    PLACES,
    Condition,
    Conditions,
    OneOf,
    Verdict,
    Word,
    asked,
    only,
    readable_variants,
    without,
)
from spack_cache_db.query.connection import IDS_AT_ONCE, Lookups, json_pieces, select, select_in
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.spack.constraints import VariantConstraint, variant_matches
from spack_cache_db.spack.targets import ancestors

_PROVIDERS = """
SELECT virtual, known_packages.name FROM providers
JOIN known_packages ON known_packages.id = providers.package
ORDER BY virtual, known_packages.name
"""
VERSIONS = "SELECT id, name FROM versions"
VERSIONS_OF_PACKAGE = f"{VERSIONS} WHERE package = :package"
VARIANTS = "SELECT id, text FROM variants WHERE name = :name OR text = :text"
SETS_WITH = """
SELECT DISTINCT variant_set FROM variant_set_members
WHERE variant IN (SELECT value FROM json_each(:ids))
"""
_INSTALLED_FIRST = """
id NOT IN (
  SELECT specs.configuration FROM installations JOIN specs ON specs.hash = installations.hash
  WHERE installations.explicit),
id NOT IN (
  SELECT configuration FROM configuration_releases
  WHERE release IN (SELECT value FROM json_each(:trees))),
"""
"""Explicitly installed configurations come first, then other installed ones."""

# The ids of packages are in the order of their names, those of versions in Spack's preference.
_ORDER = """
platform <> (SELECT id FROM platforms WHERE name = 'linux'),
platform,
(SELECT iif(family = 'x86_64', '', family) FROM targets WHERE targets.id = configurations.target),
package,
-version,
{nearest}
(SELECT min(release) FROM configuration_releases WHERE configuration = configurations.id),
id
"""
"""By system and family of CPUs, the most common first; of a package the version that Spack takes
first, then the nearest target, then current releases."""

_NEAREST = "(SELECT key FROM json_each(:nearest) WHERE value = target),"

_PLACES = {
    "release": """id IN (
  SELECT configuration FROM configuration_releases WHERE release = :release)""",
    "stack": """id IN (
  SELECT configuration FROM configuration_stacks WHERE stack = :stack)""",
    "words": "id IN (SELECT rowid FROM configurations_fts WHERE configurations_fts MATCH :words)",
    "hash": """id IN (
  SELECT configuration FROM specs WHERE hash >= :hash AND hash < :hash || '{')""",
}
# The others are known as dependencies only.
_OWN = "spec_count > 0"
_COLUMNS = ", ".join(CONFIGURATION)
_ROWS = f"SELECT id, {_COLUMNS}, spec_count, 1 FROM configurations"
ROWS_OF_PACKAGE = f"{_ROWS} WHERE package = :package ORDER BY {{}}"
EVERY_ROW = f"{_ROWS} ORDER BY {{}}"
# SQLite gives the other columns of the row that has the least id (SQLite docs, "SELECT", 2.5).
GROUPS = f"""
SELECT min(id), {_COLUMNS}, sum(spec_count), count(*)
FROM configurations GROUP BY {{}} ORDER BY 1
"""
_PLACE = {column: place for place, column in enumerate(CONFIGURATION)}


def providers_of(conn: sqlite3.Connection, virtual: str) -> tuple[str, ...]:
    """Return the packages that package data knows to provide a virtual one, sorted."""
    return read_providers(conn).get(virtual, ())


def read_providers(conn: sqlite3.Connection) -> Mapping[str, tuple[str, ...]]:
    """Return the packages that package data knows to provide each virtual one, sorted."""
    found: dict[str, tuple[str, ...]] = {}
    for virtual, name in select(conn, _PROVIDERS):
        found[virtual] = (*found.get(virtual, ()), name)
    return found


def satisfying(lookups: Lookups, condition: Condition, package: int | None = None) -> Set[int]:
    """Return the ids of the words in a condition's column that satisfy it.

    Args:
        lookups: the small tables of the database.
        condition: a condition on words.
        package: of versions, only those of this package.
    """
    column = COLUMNS[condition.kind]
    if column == "package":
        asks = condition.asked
        names = asks.words if isinstance(asks, OneOf) else (condition.text,)
        return {lookups.packages[name] for name in names if name in lookups.packages}
    if column == "variants":
        name = getattr(condition.asked, "name", None)
        named = select(lookups.conn, VARIANTS, name=name, text=condition.text)
        return _sets_with(lookups.conn, (key for key, text in named if condition.holds((text,))))
    if column == "version":
        sql = VERSIONS if package is None else VERSIONS_OF_PACKAGE
        versions = select(lookups.conn, sql, package=package)
        # Many packages share a version such as 1.0.0.
        holds = lru_cache(maxsize=None)(condition.holds)
        return {key for key, name in versions if holds(name)}
    return {key for key, name in lookups.words[column].items() if condition.holds(name)}


def preference(lookups: Lookups, conditions: Conditions = ()) -> tuple[str, dict[str, str]]:
    """Return the order in which every answer lists configurations, as SQL with its parameters.

    What is installed comes first; then what most machines run.

    Args:
        conditions: of a machine that they choose (`--host zen4`, `target=:zen4`), what was built
            for the nearest target comes before what also runs on older ones.
    """
    used: dict[str, str] = {}
    if host := chosen_machine(conditions):
        used["nearest"] = _nearest(lookups, host)
    order = _ORDER.format(nearest=_NEAREST if host else "")
    if trees := lookups.trees():
        order, used["trees"] = _INSTALLED_FIRST + order, next(json_pieces(trees))
    return order, used


def chosen_machine(conditions: Conditions) -> str | None:
    """Return the CPU target of the machine on which it must run, None if it is not chosen."""
    host, target = asked(conditions, "host"), asked(conditions, "target")
    if host is None and isinstance(target, str) and target.startswith(":"):
        return target[1:]
    return host


def _nearest(lookups: Lookups, host: str) -> str:
    """Return the ids of the targets that run on a machine, the nearest first, as JSON."""
    ids = {name: key for key, name in lookups.words["target"].items()}
    return json.dumps([ids[name] for name in (host, *ancestors(host)) if name in ids])


def configuration_ids(
    lookups: Lookups, conditions: Conditions, *, every: bool = False
) -> list[int]:
    """Return the configurations that satisfy conditions, in the order of `preference`.

    Each is in the release, or else in the stack that is asked for. Where a hash, what specs depend
    on, or more than one place is asked for, `specs_in_scope` says which of these have a spec that
    satisfies all of it.

    Args:
        every: also those without a binary, where no release or stack is asked for.
    """
    used = {kind: value for kind in _PLACES if (value := asked(conditions, kind)) is not None}
    if "release" in used:
        used.pop("stack", None)
    filters = [_PLACES[kind] for kind in used]
    if not every and not used.keys() & {"release", "stack"}:
        filters.append(_OWN)
    columns = column_ids(lookups, conditions)

    def read() -> list[int]:
        order, late = preference(lookups, conditions)
        return _having(lookups.conn, columns, filters, used | late, order)

    if columns or used or chosen_machine(conditions) is not None:
        return read()
    # A query of specs alone begins with all configurations.
    return lookups.once(("configurations in order", every), read)


def with_other_variant(conn: sqlite3.Connection, constraint: VariantConstraint) -> list[int]:
    """Return the configurations that have a variant of this name, and not as asked."""
    members = (
        key
        for key, text in select(conn, VARIANTS, name=constraint.name, text="")
        for variant in readable_variants((text,), constraint.name)
        if not variant_matches(constraint, variant)
    )
    return _having(conn, {"variants": _sets_with(conn, members)}, [], {})


def _sets_with(conn: sqlite3.Connection, variants: Iterable[int]) -> set[int]:
    return {row[0] for row in select_in(conn, SETS_WITH, variants)}


def column_ids(lookups: Lookups, conditions: Conditions) -> dict[str, Set[int]]:
    """Return the ids that satisfy the conditions on each column, up to one that none satisfies."""
    found: dict[str, Set[int]] = {}
    for each in conditions:
        if each.kind not in COLUMNS:
            continue
        column = COLUMNS[each.kind]
        packages = found.get("package", ())
        package = next(iter(packages)) if len(packages) == 1 else None
        ids = satisfying(lookups, each, package)
        found[column] = found[column] & ids if column in found else ids
        if not found[column]:
            break
    return found


def _having(
    conn: sqlite3.Connection,
    columns: Mapping[str, Set[int]],
    filters: Iterable[str],
    parameters: Mapping[str, Any],
    order: str = "id",
) -> list[int]:
    """Return the configurations whose columns have one of these ids, and that pass the filters."""
    if not all(columns.values()):
        return []
    # Lists that do not fit into one value of SQLite are compared here.
    long = [column for column, ids in columns.items() if len(ids) > IDS_AT_ONCE]
    short = {column: next(json_pieces(columns[column])) for column in columns.keys() - {*long}}
    tests = [f"{column} IN (SELECT value FROM json_each(:{column}))" for column in sorted(short)]
    selected, where = ", ".join(["id", *long]), "\n  AND ".join([*tests, *filters]) or "1"
    sql = f"SELECT {selected} FROM configurations WHERE {where} ORDER BY {order}"
    rows: Iterable[tuple[Any, ...]] = select(conn, sql, **short, **parameters)
    for place, column in enumerate(long, start=1):
        rows = [row for row in rows if row[place] in columns[column]]
    return [row[0] for row in rows]


class Candidate(NamedTuple):
    """A configuration as its table has it; `keys` are the ids in the columns of `CONFIGURATION`.

    It stands for `configurations` that are equal in all that is asked (`Candidates.groups`).
    """

    id: int
    keys: tuple[int, ...]
    spec_count: int
    configurations: int = 1

    def key(self, column: str) -> int:
        """Return the id in a column."""
        return self.keys[_PLACE[column]]


_Rows = tuple[Candidate, ...]
T = TypeVar("T")


class Candidates:
    """The configurations of packages, read when they are asked for, and kept.

    Their order is that of answers in `scope`.
    """

    def __init__(self, lookups: Lookups, scope: Conditions = ANYWHERE) -> None:
        self.lookups = lookups
        self._scope = scope
        self._kept: dict[object, object] = {}

    def once(self, key: object, read: Callable[[], T]) -> T:
        """Return the result of `read`, which is called once for each key."""
        if key not in self._kept:
            self._kept[key] = read()
        return cast("T", self._kept[key])

    def rows(self, name: str | None) -> _Rows:
        """Return the configurations of a package, or of all packages, in order."""
        package = self.lookups.packages.get(name or "")
        if name is not None and package is None:
            return ()

        def read() -> _Rows:
            order, late = preference(self.lookups, self._scope)
            sql = (EVERY_ROW if package is None else ROWS_OF_PACKAGE).format(order)
            return self._read(select(self.lookups.conn, sql, package=package, **late))

        return self.once(("rows", package), read)

    def groups(self, columns: Iterable[str]) -> _Rows:
        """Return all configurations, one for each group that is equal in these columns."""
        grouped = ", ".join(("spec_count > 0", *columns))
        return self._read(select(self.lookups.conn, GROUPS.format(grouped)))

    def _read(self, rows: Iterable[tuple[Any, ...]]) -> _Rows:
        rows = [*rows]
        learn(self.lookups, rows)
        return tuple(Candidate(row[0], row[1:-2], *row[-2:]) for row in rows)

    def satisfying(self, condition: Condition, package: str | None) -> Set[int]:
        """Return the ids of words that satisfy a condition; of versions those of the package."""
        of = self.lookups.packages.get(package or "") if condition.kind == "version" else None
        key = condition.kind, condition.asked, of
        return self.once(key, lambda: satisfying(self.lookups, condition, of))

    def counts(self, places: Conditions, rows: Sequence[Candidate]) -> Mapping[int, int]:
        """Return the number of specs in these places, by the ids of configurations."""
        if len({row.key("package") for row in rows}) == 1:
            return {key: len(specs) for key, specs in self.specs_of(places, rows).items()}
        return counts_in_scope(self.lookups, [row.id for row in rows], places)

    def specs_of(self, places: Conditions, rows: Sequence[Candidate]) -> Mapping[int, list[Spec]]:
        """Return the specs in these places, by the ids of configurations.

        All specs of a package are read once, because an environment asks much about few packages.

        Args:
            places: the conditions; those on words are ignored.
            rows: the configurations.
        """
        packages = {row.key("package") for row in rows}
        if len(packages) != 1:
            return specs_in_scope(self.lookups.conn, [row.id for row in rows], places)
        package = self.lookups.words["package"][packages.pop()]
        where = only(places, "release", "stack")
        ids = [row.id for row in self.rows(package)]
        every = self.once((where, package), lambda: specs_in_scope(self.lookups.conn, ids, where))
        found = {row.id: every[row.id] for row in rows if row.id in every}
        for condition in only(places, "hash", "specs"):
            kept = (
                (key, [spec for spec in specs if is_as_asked(spec, condition)])
                for key, specs in found.items()
            )
            found = {key: specs for key, specs in kept if specs}
        return found

    def configuration(self, row: Candidate) -> Configuration:
        """Return a row in words."""
        return configuration_of(self.lookups, row.keys)


@dataclass(frozen=True)
class Misses:
    """The conditions that each configuration of a package misses.

    Attributes:
        candidates: the configurations of the database.
        package: the package of the query; None for any.
        rows: its configurations.
        conditions: the other conditions of the query.
        missed: a number for each row: bit i is set if its words miss condition i.
    """

    candidates: Candidates
    package: str | None
    rows: _Rows
    conditions: Conditions
    missed: tuple[int, ...]

    def fitting(self, left_out: Iterable[int] = ()) -> dict[Candidate, int]:
        """Return the rows that satisfy all conditions but those left out, in order.

        Args:
            left_out: places in `conditions`.

        Returns:
            The number of specs for each row.
        """
        out = {*left_out}
        kept = ~sum(1 << place for place in out)
        pairs = zip(self.rows, self.missed, strict=True)
        fitting = [row for row, missed in pairs if not missed & kept]
        conditions = (each for at, each in enumerate(self.conditions) if at not in out)
        places = only(tuple(conditions), *PLACES)
        if not places:
            return {row: row.spec_count for row in fitting if row.spec_count > 0}
        counts = self.candidates.counts(places, fitting)
        return {row: counts[row.id] for row in fitting if row.id in counts}

    def all_miss(self, place: int) -> bool:
        """Return whether no configuration satisfies a condition by its words."""
        return all(missed >> place & 1 for missed in self.missed)

    def missing_least(self, out: Set[int]) -> list[tuple[int, Candidate]]:
        """Return the row with a spec that misses the fewest conditions, and these as a number.

        Args:
            out: places in `conditions`: the release or the stack that is missed.
        """
        every = [*enumerate(self.conditions)]
        of_specs = [(at, each) for at, each in every if each.kind in ("hash", "specs")]
        where = only(tuple(each for at, each in every if at not in out), "release", "stack")
        counts = self.candidates.counts(where, self.rows) if where else None
        missed_places = sum(1 << at for at in out)
        found = [
            (missed | missed_places, row)
            for missed, row in zip(self.missed, self.rows, strict=True)
            if (row.spec_count if counts is None else row.id in counts)
        ]
        if found and of_specs:
            least = min(missed.bit_count() for missed, _ in found) + len(of_specs)
            found = [each for each in found if each[0].bit_count() <= least]
            specs = self.candidates.specs_of(where, [row for _, row in found])

            def missed_by(spec: Spec) -> int:
                return sum(1 << at for at, each in of_specs if not is_as_asked(spec, each))

            found = [
                (missed | min(map(missed_by, specs[row.id]), key=int.bit_count), row)
                for missed, row in found
            ]
        return [min(found, key=lambda each: each[0].bit_count())] if found else []


def is_as_asked(spec: Spec, condition: Condition) -> bool:
    """Return whether a spec satisfies a condition on its hash or on its records."""
    if isinstance(condition.asked, Verdict):
        return spec.id in condition.asked.holds
    return spec.hash.startswith(str(condition.asked))


def misses_of(candidates: Candidates, conditions: Conditions) -> Misses:
    """Return the conditions that the configurations of a package miss."""
    named = asked(conditions, "package")
    package = named.text if isinstance(named, Word) else None
    rest = tuple(dict.fromkeys(without(conditions, "package") if package else conditions))
    columns = dict.fromkeys(COLUMNS[each.kind] for each in rest if each.kind in COLUMNS)
    if package is None and all(condition.kind in COLUMNS for condition in rest):
        rows = candidates.groups(columns)
    else:
        rows = candidates.rows(package)
    missed = [0] * len(rows)
    for column in columns:
        # A column has far fewer words than rows.
        at = _PLACE[column]
        words = dict.fromkeys({row.keys[at] for row in rows}, 0)
        for place, condition in enumerate(rest):
            if COLUMNS.get(condition.kind) == column:
                for key in words.keys() - candidates.satisfying(condition, package):
                    words[key] |= 1 << place
        missed = [known | words[row.keys[at]] for known, row in zip(missed, rows, strict=True)]
    return Misses(candidates, package, rows, rest, tuple(missed))
