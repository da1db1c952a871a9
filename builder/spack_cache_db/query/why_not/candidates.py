"""The configurations of packages, read once and held against any number of conditions.

What the words of a configuration decide is decided once for each word; where it is (release, stack,
hash) is read from the tables that `specs` and `configurations` read, by the same rules.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from spack_cache_db.query.conditions import Scope
from spack_cache_db.query.configurations import configuration_of, learn
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select, select_in
from spack_cache_db.query.specs import specs_in_scope
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.spack.compilers import compiler_matches
from spack_cache_db.spack.constraints import variant_matches, version_matches
from spack_cache_db.spack.targets import runs_on, target_matches
from spack_cache_db.spack.variants import Variant, parse_variant

_COLUMNS = ", ".join(CONFIGURATION)
_ROWS = f"""
SELECT id, {_COLUMNS}, spec_count, 1
FROM configurations {{}} ORDER BY package, -version, id
"""  # noqa: S608 - columns of the schema
ROWS_OF_PACKAGES = _ROWS.format("WHERE package IN (SELECT value FROM json_each(:ids))")
EVERY_ROW = _ROWS.format("")
# SQLite gives the other columns of the row that has the least id (SQLite docs, "SELECT", 2.5).
GROUPS = f"""
SELECT min(id), {_COLUMNS}, sum(spec_count), count(*)
FROM configurations GROUP BY {{}} ORDER BY 1
"""  # noqa: S608 - columns of the schema
IN_RELEASE = """
SELECT configuration, spec_count FROM configuration_releases WHERE release = :release
"""
IN_STACK = """
SELECT configuration, configuration_stacks.spec_count
FROM configuration_stacks JOIN configurations ON configurations.id = configuration
WHERE stack = :stack AND configurations.spec_count > 0
"""
# Within a release a spec has the configuration that the release shows (see `specs`).
IN_STACK_OF_RELEASE = """
SELECT configuration, count(*) FROM release_specs
WHERE release = :release
  AND stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
GROUP BY 1
"""


COLUMNS = {
    "version": "version",
    "variant": "variants",
    "compiler": "compiler",
    "os": "os",
    "platform": "platform",
    "target": "target",
    "host": "target",
}
"""The kinds of conditions that the words of a configuration decide, and by which column."""

PLACES = ("release", "stack", "hash", "specs")
"""The kinds that tell specs of one configuration apart: where they are, what they depend on."""


class Row(NamedTuple):
    """A configuration as its table has it; the words of its ids are in the lookups.

    It stands for so many `configurations` that are the same in all that is asked: see `groups`.
    """

    id: int
    package: int
    version: int
    compiler: int
    os: int
    platform: int
    target: int
    variants: int
    spec_count: int
    configurations: int = 1


class Candidates:
    """The configurations of packages, read when they are asked for, and kept."""

    def __init__(self, conn: sqlite3.Connection, lookups: Lookups) -> None:
        self._conn = conn
        self.lookups = lookups
        self._rows: dict[int | None, tuple[Row, ...]] = {}
        self._variants: dict[int, dict[str, list[Variant]]] = {}
        self._holds: dict[tuple[str, Any, int], bool] = {}
        self._present: dict[tuple[Any, Any], Mapping[int, int]] = {}

    @cached_property
    def packages(self) -> dict[str, int]:
        """The ids of all packages."""
        return {name: key for key, name in self.lookups.words["package"].items()}

    def prepare(self, names: Iterable[str | None]) -> None:
        """Read the configurations of several packages at once; None is all packages."""
        wanted = {*names}
        if None in wanted:
            rows = tuple(Row._make(row) for row in select(self._conn, EVERY_ROW))
            learn(self._conn, self.lookups, rows)
            self._rows[None] = rows
        ids = {self.packages[name] for name in wanted if name in self.packages}
        found: dict[int, list[Row]] = {key: [] for key in sorted(ids - self._rows.keys())}
        for row in map(Row._make, select_in(self._conn, ROWS_OF_PACKAGES, found)):
            found[row.package].append(row)
        learn(self._conn, self.lookups, chain.from_iterable(found.values()))
        self._rows.update((key, tuple(rows)) for key, rows in found.items())

    def rows(self, name: str | None) -> tuple[Row, ...]:
        """Return the configurations of a package, newest versions first; None is all packages."""
        key = None if name is None else self.packages.get(name)
        if name is not None and key is None:
            return ()
        if key not in self._rows:
            self.prepare([name])
        return self._rows[key]

    def groups(self, columns: Iterable[str]) -> tuple[Row, ...]:
        """Return all configurations, one for each group that is the same in these columns."""
        grouped = ", ".join(("spec_count > 0", *columns))
        rows = tuple(map(Row._make, select(self._conn, GROUPS.format(grouped))))
        learn(self._conn, self.lookups, rows)
        return rows

    def holds(self, kind: str, asked: Any, key: int) -> bool:
        """Return whether the word of an id in a row is as a condition asks; see `COLUMNS`."""
        if kind == "variant":
            # Not kept: most sets lack most variants, which is said faster than it is remembered.
            named = self.variants_of(key).get(asked.name, ())
            return any(variant_matches(asked, variant) for variant in named)
        known = (kind, asked, key)
        if known not in self._holds:
            self._holds[known] = _HOLDS[kind](asked, self.lookups.words[COLUMNS[kind]][key])
        return self._holds[known]

    def present(self, places: Mapping[str, Any], rows: Iterable[Row]) -> Mapping[int, int]:
        """Return how many specs count in these places, by the ids of configurations."""
        release, stack, prefix, specs = (places.get(kind) for kind in PLACES)
        if prefix is not None or specs is not None:
            ids, scope = [row.id for row in rows], Scope(release, stack)
            among = None if specs is None else specs.holds
            found = specs_in_scope(self._conn, ids, scope, prefix, among=among)
            return {key: len(specs) for key, specs in found.items()}
        if (release, stack) not in self._present:
            sql = IN_STACK_OF_RELEASE if stack is not None else IN_RELEASE
            sql = IN_STACK if release is None else sql
            given = {"release": release, "stack": stack}
            used = {key: value for key, value in given.items() if value is not None}
            self._present[release, stack] = dict(select(self._conn, sql, **used))
        return self._present[release, stack]

    def configuration(self, row: Row) -> Configuration:
        """Return a row in words."""
        return configuration_of(self.lookups, row)

    def variants_of(self, variant_set: int) -> dict[str, list[Variant]]:
        """Return the variants of a set by name, without what Spack would not read as one."""
        found = self._variants.get(variant_set)
        if found is None:
            found = self._variants[variant_set] = {}
            for variant in _readable(self.lookups.words["variants"][variant_set]):
                found.setdefault(variant.name, []).append(variant)
        return found


def _readable(texts: Iterable[str]) -> Iterator[Variant]:
    for text in texts:
        try:
            yield parse_variant(text)
        except ValueError:
            continue


def _equals(asked: str, word: str) -> bool:
    return asked == word


_HOLDS: dict[str, Callable[[Any, str], bool]] = {
    "version": version_matches,
    "compiler": compiler_matches,
    "os": _equals,
    "platform": _equals,
    "target": target_matches,
    "host": lambda host, target: runs_on(target, host),
}
