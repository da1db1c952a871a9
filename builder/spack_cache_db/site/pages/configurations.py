"""The table of configurations, and the differences between specs of one
configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.differences import Differences, distinctions
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.commands.model import NO_COMMANDS, Commands
from spack_cache_db.query.conditions.conditions import Conditions, asked
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import Spec, specs_in_scope
from spack_cache_db.query.stored.configurations import Counted
from spack_cache_db.query.stored.presence import (
    FoundSpec,
    Presence,
    found_specs,
    presence_of_configurations,
)
from spack_cache_db.query.stored.totals import sizes_of

MOST_COMPARED = 200
"""Limit of the specs that are compared for all rows of a page."""
MOST_NODES = 2_000
"""Limit of the dependencies that are read to compare the specs of one configuration."""
MOST_NODES_OF_ROWS = 1_000
"""Limit of the dependencies that are read for all rows of a page."""
MOST_APART = 3
"""Limit of the differences that a row names."""


class ComparedSpec(NamedTuple):
    """One of several specs of a configuration, with the facts that the others do not
    share.

    `differences` are those from the spec of a page; None if unknown.
    """

    spec: FoundSpec
    places: tuple[str, ...]
    is_installed: bool
    differences: Differences | None


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """One row of the table: a configuration with its specs.

    Attributes:
        variants: the variants, without those that are shown above the table.
        hash: the hash of its first spec; current ones come first.
        is_gone: whether the mirror has lost all of its specs.
        commands: the commands that load or install that spec; without lines if there
            are none.
        apart: the most frequent differences between its specs, such as `openmpi@5.0.3`.
        specs: the specs of an open row; empty for a closed row.
    """

    configuration: Configuration
    variants: tuple[str, ...]
    spec_count: int
    presence: Presence
    hash: str
    is_gone: bool
    commands: Commands
    apart: tuple[str, ...]
    specs: tuple[ComparedSpec, ...]


def table_rows(
    lookups: Lookups,
    configurations: Sequence[Counted],
    conditions: Conditions,
    common_variants: Collection[str],
    opened: str | None,
    defaults: Collection[str] = (),
) -> tuple[ConfigurationRow, ...]:
    """Return the rows of the table.

    Args:
        conditions: conditions on the specs that count.
        common_variants: variants that are shown above the table.
        opened: the first hash of the configuration whose row is open.
        defaults: variants that are shown after all others.
    """
    presence = presence_of_configurations(lookups, [item.id for item in configurations])
    specs_of = specs_in_scope(lookups.conn, presence, conditions)
    apart = _apart(lookups, specs_of)
    chosen = lookups.release_names(filter(None, [asked(conditions, "release")]))
    first_specs = [specs[0].id for specs in specs_of.values()]
    commands = commands_of(lookups, first_specs, next(iter(chosen), None))

    def row(item: Counted) -> ConfigurationRow:
        words, specs = item.configuration, specs_of[item.id]
        variants = (text for text in words.variants if text not in common_variants)
        first = specs[0].hash
        compared: tuple[ComparedSpec, ...] = ()
        if first == opened:
            features = distinctions(lookups, [[spec.id for spec in specs]], MOST_NODES)
            compared = compared_specs(lookups, specs, features)
        return ConfigurationRow(
            words,
            variants=tuple(sorted(variants, key=defaults.__contains__)),
            spec_count=item.spec_count,
            presence=presence[item.id],
            hash=first,
            # Lost specs come last.
            is_gone=bool(specs[0].is_gone),
            commands=commands.get(specs[0].id, NO_COMMANDS),
            apart=apart.get(item.id, ()),
            specs=compared,
        )

    return tuple(map(row, configurations))


def compared_specs(
    lookups: Lookups,
    specs: Sequence[Spec],
    features: Mapping[int, tuple[str, ...]] = {},
    differences: Mapping[int, Differences] = {},
) -> tuple[ComparedSpec, ...]:
    """Return specs of one configuration with their places.

    `features` are those that not all of them have, `differences` those from the spec of
    a page; both by the specs' ids.
    """
    records = [*found_specs(lookups, specs, differences=features)]
    pairs = zip(specs, records, strict=True)
    sizes = sizes_of(
        lookups.conn, ([found.releases[0], spec.id] for spec, found in pairs)
    )
    places = _places(records, [sizes[spec.id] for spec in specs])
    trees = {*lookups.release_names(lookups.trees())}
    return tuple(
        ComparedSpec(
            found, texts, not trees.isdisjoint(found.releases), differences.get(spec.id)
        )
        for spec, found, texts in zip(specs, records, places, strict=True)
    )


def _places(
    records: Sequence[FoundSpec], sizes: Sequence[str | None]
) -> Iterator[tuple[str, ...]]:
    """Yield the releases, stacks, dates and size of each spec, without those that all
    share.
    """

    def releases(first: str, *others: str) -> str:
        return (
            f"{first} and {counted(len(others), 'other release')}" if others else first
        )

    columns = (
        [releases(*spec.releases) for spec in records],
        [", ".join(spec.stacks) for spec in records],
        [
            " to ".join(filter(None, {spec.first_seen: 0, spec.last_seen: 0}))
            for spec in records
        ],
        [size or "" for size in sizes],
    )
    distinct = [texts for texts in columns if len({*texts}) > 1]
    for position in range(len(records)):
        yield tuple(filter(None, (texts[position] for texts in distinct)))


def _apart(
    lookups: Lookups, specs_of: Mapping[int, Sequence[Spec]]
) -> dict[int, tuple[str, ...]]:
    """Return the most frequent differences between the specs of each configuration."""
    groups: dict[int, list[int]] = {}
    for key, specs in specs_of.items():
        if (
            len(specs) > 1
            and sum(map(len, groups.values())) + len(specs) <= MOST_COMPARED
        ):
            groups[key] = [spec.id for spec in specs]
    differences = distinctions(lookups, groups.values(), MOST_NODES_OF_ROWS)
    apart = {}
    for key, group in groups.items():
        firsts = Counter(
            differences[spec][0] for spec in group if differences.get(spec)
        )
        apart[key] = tuple(text for text, _ in firsts.most_common(MOST_APART))
    return apart
