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
from spack_cache_db.query.conditions.conditions import Conditions, condition_value
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

    `places` are its releases, stacks, dates and size, as far as they differ.
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
    *,
    is_compared: bool = True,
) -> tuple[ConfigurationRow, ...]:
    """Return the rows of the table.

    Args:
        lookups: the database.
        configurations: the configurations, in the order of the rows.
        conditions: conditions on the specs that count.
        common_variants: variants that are shown above the table.
        opened: the first hash of the configuration whose row is open.
        defaults: variants that are shown after all others.
        is_compared: whether the differences between the specs of each row are read.
    """
    # The specs of each configuration that count, and where they are.
    ids = [item.id for item in configurations]
    presence = presence_of_configurations(lookups, ids)
    specs_of = specs_in_scope(lookups.conn, presence, conditions)
    apart = _apart(lookups, specs_of) if is_compared else {}

    # The commands for the first spec of each row, from the release that is asked for.
    release = condition_value(conditions, "release")
    releases = lookups.release_names([release] if release else [])
    first_specs = [specs[0].id for specs in specs_of.values()]
    commands = commands_of(lookups, first_specs, releases[0] if releases else None)

    rows = []
    for item in configurations:
        configuration = item.configuration
        variants = [
            text for text in configuration.variants if text not in common_variants
        ]
        variants.sort(key=lambda text: text in defaults)
        specs = specs_of[item.id]
        first = specs[0]
        compared: tuple[ComparedSpec, ...] = ()
        if first.hash == opened:
            groups = [[spec.id for spec in specs]]
            features = distinctions(lookups, groups, MOST_NODES)
            compared = compared_specs(lookups, specs, features)
        row = ConfigurationRow(
            configuration,
            variants=tuple(variants),
            spec_count=item.spec_count,
            presence=presence[item.id],
            hash=first.hash,
            # Lost specs come last.
            is_gone=bool(first.is_gone),
            commands=commands.get(first.id, NO_COMMANDS),
            apart=apart.get(item.id, ()),
            specs=compared,
        )
        rows.append(row)
    return tuple(rows)


def _apart(
    lookups: Lookups, specs_of: Mapping[int, Sequence[Spec]]
) -> dict[int, tuple[str, ...]]:
    """Return the most frequent differences between the specs of each configuration."""
    # The configurations to compare, as many as fit within the limit.
    groups: dict[int, list[int]] = {}
    compared_count = 0
    for key, specs in specs_of.items():
        if len(specs) > 1 and compared_count + len(specs) <= MOST_COMPARED:
            groups[key] = [spec.id for spec in specs]
            compared_count += len(specs)

    # Each spec counts with the first of its differences.
    differences = distinctions(lookups, groups.values(), MOST_NODES_OF_ROWS)
    apart = {}
    for key, group in groups.items():
        first_differences = Counter(
            differences[spec][0] for spec in group if differences.get(spec)
        )
        most_frequent = first_differences.most_common(MOST_APART)
        apart[key] = tuple(text for text, _ in most_frequent)
    return apart


def compared_specs(
    lookups: Lookups,
    specs: Sequence[Spec],
    features: Mapping[int, tuple[str, ...]] = {},
    differences: Mapping[int, Differences] = {},
) -> tuple[ComparedSpec, ...]:
    """Return specs of one configuration with their places.

    Args:
        lookups: the database.
        specs: the specs.
        features: what not all of them have, by the specs' ids.
        differences: the differences from the spec of a page, by the specs' ids.
    """
    records = list(found_specs(lookups, specs, differences=features))

    # A spec has a size in each release; the first release counts.
    listed_first = []
    for spec, record in zip(specs, records, strict=True):
        listed_first.append([record.releases[0], spec.id])
    sizes = sizes_of(lookups.conn, listed_first)
    places = _places(records, [sizes[spec.id] for spec in specs])

    installations = set(lookups.release_names(lookups.trees()))
    compared = []
    for spec, record, texts in zip(specs, records, places, strict=True):
        is_installed = not installations.isdisjoint(record.releases)
        difference = differences.get(spec.id)
        compared.append(ComparedSpec(record, texts, is_installed, difference))
    return tuple(compared)


def _places(
    records: Sequence[FoundSpec], sizes: Sequence[str | None]
) -> Iterator[tuple[str, ...]]:
    """Yield the releases, stacks, dates and size of each spec, without those that all
    share.
    """
    columns = (
        [_releases_text(spec.releases) for spec in records],
        [", ".join(spec.stacks) for spec in records],
        [_dates_text(spec) for spec in records],
        [size or "" for size in sizes],
    )
    distinct = [texts for texts in columns if len(set(texts)) > 1]
    for position in range(len(records)):
        texts_of_spec = (texts[position] for texts in distinct)
        yield tuple(text for text in texts_of_spec if text)


def _releases_text(releases: Sequence[str]) -> str:
    """Return releases as `develop`, or `develop and 3 other releases`."""
    first, *others = releases
    if not others:
        return first
    return f"{first} and {counted(len(others), 'other release')}"


def _dates_text(spec: FoundSpec) -> str:
    """Return when a spec was seen, as `2025-04-13 to 2025-04-20` or a single day."""
    days = dict.fromkeys((spec.first_seen, spec.last_seen))
    return " to ".join(day for day in days if day)
