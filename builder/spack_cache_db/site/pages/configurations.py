"""Rows of a table of configurations, and how specs of one of them differ."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spack_cache_db.query.comparison import Differences, distinctions
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.configurations import (
    Counted,
    FoundSpec,
    Presence,
    Spec,
    found_specs,
    presence_of_configurations,
    specs_in_scope,
)
from spack_cache_db.query.database import Lookups, select, select_in
from spack_cache_db.query.installation import command_of
from spack_cache_db.records import Configuration

SIZES = """
SELECT spec, size FROM listings
WHERE release = :release AND spec IN (SELECT value FROM json_each(:ids))
"""
INSTALLED = """
SELECT hash, is_external FROM installations
WHERE hash IN (SELECT value FROM json_each(:ids))
"""
MOST_COMPARED = 200
"""So many specs of the rows of one page are compared, at most."""
MOST_NODES = 2_000
"""So many specs are read, at most, to compare what they need."""
MOST_NODES_OF_ROWS = 1_000
"""The same for all rows of a page together."""
MOST_APART = 3


@dataclass(frozen=True, slots=True)
class LookAlike:
    """One of the specs of a configuration.

    Attributes:
        places: its releases, stacks, days and size, as far as they tell it from the others.
        is_installed: whether an installed tree has it.
        differences: how it differs from the spec of a page; None where that is not known.
    """

    spec: FoundSpec
    places: tuple[str, ...]
    is_installed: bool
    differences: Differences | None = None


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """One line of the table: a configuration and what belongs beside it.

    Attributes:
        variants: those that do not stand above the table.
        spec_count: how many specs match the filters or the search.
        presence: the releases and stacks that show the configuration, and since when.
        hashes: the specs, what is current first; of a row that is not opened the first alone.
        command: the command that installs or loads the first of the specs.
        apart: what tells its specs apart, such as `openmpi@5.0.3`; the most frequent first.
        specs: the specs of a row that is opened, empty for others.
        is_installed: whether an installation has the first of the specs.
        is_external: whether the system provides that one.
    """

    configuration: Configuration
    variants: tuple[str, ...]
    spec_count: int
    presence: Presence
    hashes: tuple[str, ...]
    command: str = ""
    apart: tuple[str, ...] = ()
    specs: tuple[LookAlike, ...] = ()
    is_installed: bool = False
    is_external: bool = False

    @property
    def is_open(self) -> bool:
        """Whether all of the hashes and releases are to be shown."""
        return bool(self.specs)


def table_rows(
    lookups: Lookups,
    found: Sequence[Counted],
    folded: Iterable[str],
    conditions: Conditions,
    opened: str | None = None,
) -> tuple[ConfigurationRow, ...]:
    """Return the lines for `found`, without the variants that are `folded` into one line above.

    Args:
        conditions: what the specs that count satisfy.
        opened: the first hash of the configuration of which all hashes are wanted.
    """
    presence = presence_of_configurations(lookups, [each.id for each in found])
    hidden = frozenset(folded)
    specs = specs_in_scope(lookups.conn, presence, conditions)
    apart = _apart(lookups, {key: some for key, some in specs.items() if len(some) > 1})
    installed = installed_among(lookups.conn, (some[0].hash for some in specs.values()))

    def command(package: str, dag_hash: str) -> str:
        return command_of(lookups.conn, package, dag_hash, is_installed=dag_hash in installed)

    def row(each: Counted) -> ConfigurationRow:
        words, known = each.configuration, specs.get(each.id, [])
        is_open = bool(known) and known[0].hash == opened
        return ConfigurationRow(
            words,
            variants=tuple(text for text in words.variants if text not in hidden),
            spec_count=each.spec_count,
            presence=presence[each.id],
            hashes=tuple(spec.hash for spec in (known if is_open else known[:1])),
            command=command(words.package, known[0].hash) if known else "",
            apart=apart.get(each.id, ()),
            specs=_compared(lookups, known) if is_open else (),
            is_installed=bool(known) and known[0].hash in installed,
            is_external=bool(known) and installed.get(known[0].hash, False),
        )

    return tuple(map(row, found))


def installed_among(conn: sqlite3.Connection, hashes: Iterable[str]) -> dict[str, bool]:
    """Return the hashes of those specs that an installation has, and whether they are externals."""
    rows = select(conn, INSTALLED, ids=json.dumps([*hashes]))
    return {dag_hash: bool(is_external) for dag_hash, is_external in rows}


def _compared(lookups: Lookups, specs: Sequence[Spec]) -> tuple[LookAlike, ...]:
    known = distinctions(lookups, [[spec.id for spec in specs]], MOST_NODES)
    return look_alikes(lookups, specs, known)


def look_alikes(
    lookups: Lookups, specs: Sequence[Spec], differences: Mapping[int, tuple[str, ...]]
) -> tuple[LookAlike, ...]:
    """Return specs of one configuration with where they are, and how they differ, by their ids."""
    told = [*found_specs(lookups, specs)]
    first: dict[str, list[int]] = {}
    for spec, each in zip(specs, told, strict=True):
        if each.releases:
            first.setdefault(each.releases[0], []).append(spec.id)
    sizes: dict[int, str | None] = {}
    for release in lookups.releases.values():
        sizes |= select_in(lookups.conn, SIZES, first.get(release.name, ()), release=release.id)
    places = _places(told, [sizes.get(spec.id) for spec in specs])
    installed = installed_among(lookups.conn, (spec.hash for spec in specs))
    return tuple(
        LookAlike(
            replace(each, differences=differences.get(spec.id, ())), where, spec.hash in installed
        )
        for spec, each, where in zip(specs, told, places, strict=True)
    )


def _places(told: Sequence[FoundSpec], sizes: Sequence[str | None]) -> Iterator[tuple[str, ...]]:
    """Yield what tells each spec from the others of where they are, in words."""
    facts = (
        [_listed(each.releases) for each in told],
        [", ".join(each.stacks) for each in told],
        [" to ".join(filter(None, {each.first_seen: 0, each.last_seen: 0})) for each in told],
        [size or "" for size in sizes],
    )
    telling = [texts for texts in facts if len({*texts}) > 1]
    for texts in zip(*telling, strict=True) if telling else [()] * len(told):
        yield tuple(text for text in texts if text)


def _listed(releases: Sequence[str]) -> str:
    """Return the first of some releases, and how many others there are."""
    if len(releases) < 2:
        return "".join(releases)
    others = len(releases) - 1
    return f"{releases[0]} and {others} other release{'' if others == 1 else 's'}"


def _apart(lookups: Lookups, specs: Mapping[int, Sequence[Spec]]) -> dict[int, tuple[str, ...]]:
    """Return what tells the specs of each configuration apart first, as far as they are few."""
    groups: dict[int, list[int]] = {}
    for key, some in specs.items():
        if sum(map(len, groups.values())) + len(some) <= MOST_COMPARED:
            groups[key] = [spec.id for spec in some]
    known = distinctions(lookups, groups.values(), MOST_NODES_OF_ROWS)
    found = {}
    for key, group in groups.items():
        firsts = Counter(known[spec][0] for spec in group if known.get(spec))
        found[key] = tuple(text for text, _ in firsts.most_common(MOST_APART))
    return found
