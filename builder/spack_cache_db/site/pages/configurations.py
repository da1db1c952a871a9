"""The table of configurations, and the differences between specs of one configuration."""

from __future__ import annotations

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
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.installation import Commands, command_of, installations_of
from spack_cache_db.query.totals import sizes_of
from spack_cache_db.records import Configuration

MOST_COMPARED = 200
"""Limit of the specs that are compared for all rows of a page."""
MOST_NODES = 2_000
"""Limit of the dependencies that are read to compare the specs of one configuration."""
MOST_NODES_OF_ROWS = 1_000
"""Limit of the dependencies that are read for all rows of a page."""
MOST_APART = 3
"""Limit of the differences that a row names."""


@dataclass(frozen=True, slots=True)
class LookAlike:
    """One of several specs of a configuration, with the facts that the others do not share.

    `differences` are those from the spec of a page; None if unknown.
    """

    spec: FoundSpec
    places: tuple[str, ...]
    is_installed: bool
    differences: Differences | None = None


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """One row of the table: a configuration with its specs.

    Attributes:
        variants: the variants, without those that are shown above the table.
        hashes: the hashes of its specs, current ones first; only the first for a closed row.
        apart: the most frequent differences between its specs, such as `openmpi@5.0.3`.
        specs: the specs of an open row; empty for a closed row.
    """

    configuration: Configuration
    variants: tuple[str, ...]
    spec_count: int
    presence: Presence
    hashes: tuple[str, ...]
    command: str = ""
    apart: tuple[str, ...] = ()
    specs: tuple[LookAlike, ...] = ()
    installation: Commands | None = None

    @property
    def is_open(self) -> bool:
        """Whether all hashes and releases are shown."""
        return bool(self.specs)


def table_rows(
    lookups: Lookups,
    configurations: Sequence[Counted],
    common_variants: Iterable[str],
    conditions: Conditions,
    opened: str | None = None,
) -> tuple[ConfigurationRow, ...]:
    """Return the rows of the table.

    Args:
        common_variants: variants that are shown above the table.
        conditions: conditions on the specs that count.
        opened: the first hash of the configuration whose row is open.
    """
    conn = lookups.conn
    presence = presence_of_configurations(lookups, [item.id for item in configurations])
    hidden = frozenset(common_variants)
    specs_of = specs_in_scope(conn, presence, conditions)
    apart = _apart(lookups, {key: specs for key, specs in specs_of.items() if len(specs) > 1})

    def row(item: Counted) -> ConfigurationRow:
        words, specs = item.configuration, specs_of.get(item.id, [])
        first = specs[0].hash if specs else ""
        is_open = bool(specs) and first == opened
        compared: tuple[LookAlike, ...] = ()
        if is_open:
            differences = distinctions(lookups, [[spec.id for spec in specs]], MOST_NODES)
            compared = look_alikes(lookups, specs, differences)
        return ConfigurationRow(
            words,
            variants=tuple(text for text in words.variants if text not in hidden),
            spec_count=item.spec_count,
            presence=presence[item.id],
            hashes=tuple(spec.hash for spec in (specs if is_open else specs[:1])),
            command=command_of(conn, words.package, first) if specs else "",
            apart=apart.get(item.id, ()),
            specs=compared,
            installation=next(iter(installations_of(conn, words.package, first)), None),
        )

    return tuple(map(row, configurations))


def look_alikes(
    lookups: Lookups, specs: Sequence[Spec], differences: Mapping[int, tuple[str, ...]]
) -> tuple[LookAlike, ...]:
    """Return specs of one configuration with places and differences; these by the specs' ids."""
    records = [*found_specs(lookups, specs)]
    ids = {release.name: key for key, release in lookups.releases.items()}
    pairs = zip(specs, records, strict=True)
    sizes = sizes_of(
        lookups.conn, ([ids[name], spec.id] for spec, found in pairs for name in found.releases[:1])
    )
    trees = {lookups.releases[tree].name for tree in lookups.trees()}
    places = _places(records, [sizes.get(spec.id) for spec in specs])
    return tuple(
        LookAlike(
            replace(record, differences=differences.get(spec.id, ())),
            texts,
            is_installed=not trees.isdisjoint(record.releases),
        )
        for spec, record, texts in zip(specs, records, places, strict=True)
    )


def _places(records: Sequence[FoundSpec], sizes: Sequence[str | None]) -> Iterator[tuple[str, ...]]:
    """Yield the releases, stacks, dates and size of each spec, without those that all share."""

    def releases(names: Sequence[str]) -> str:
        count = len(names) - 1
        more = f" and {count} other release{'' if count == 1 else 's'}" if count > 0 else ""
        return "".join(names[:1]) + more

    columns = (
        [releases(spec.releases) for spec in records],
        [", ".join(spec.stacks) for spec in records],
        [" to ".join(filter(None, {spec.first_seen: 0, spec.last_seen: 0})) for spec in records],
        [size or "" for size in sizes],
    )
    distinct = [texts for texts in columns if len({*texts}) > 1]
    for texts in zip(*distinct, strict=True) if distinct else [()] * len(records):
        yield tuple(filter(None, texts))


def _apart(lookups: Lookups, specs_of: Mapping[int, Sequence[Spec]]) -> dict[int, tuple[str, ...]]:
    """Return the most frequent differences between the specs of each configuration."""
    groups: dict[int, list[int]] = {}
    for key, specs in specs_of.items():
        if sum(map(len, groups.values())) + len(specs) <= MOST_COMPARED:
            groups[key] = [spec.id for spec in specs]
    differences = distinctions(lookups, groups.values(), MOST_NODES_OF_ROWS)
    apart = {}
    for key, group in groups.items():
        firsts = Counter(differences[spec][0] for spec in group if differences.get(spec))
        apart[key] = tuple(text for text, _ in firsts.most_common(MOST_APART))
    return apart
