"""The columns of processors in tables of packages: of a search, and of `/packages`.

Each package has the number of its binaries for each kind of processor. A machine that
a visitor asks for does not change these numbers. The columns whose binaries run on it
are marked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spack_cache_db.query.conditions.conditions import Conditions, only
from spack_cache_db.query.match.selection import ResultSet, spec_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.spack.processors import (
    LINUX,
    MACS,
    OTHERS,
    PROCESSORS,
    Processor,
    processor_of,
)
from spack_cache_db.spack.targets import is_mac

MACHINE_KINDS = ("host", "target")
"""Kinds of conditions on the processor, which do not change the numbers."""

ProcessorCounts = Mapping[Processor, int]
"""The number of binaries of a package for each kind of processor."""


@dataclass(frozen=True, slots=True)
class ProcessorColumn:
    """A column; it is chosen if a visitor asks for binaries that are in it."""

    processor: Processor
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ProcessorColumns:
    """The columns of a table of packages, and the largest number in them."""

    columns: tuple[ProcessorColumn, ...]
    top: int

    def in_order(self, counts: ProcessorCounts) -> list[int]:
        """Return the counts of a package, one for each column."""
        return [counts.get(column.processor, 0) for column in self.columns]


NO_COUNTS: ProcessorCounts = {}
"""The counts of a package without binaries."""
NO_COLUMNS = ProcessorColumns(columns=(), top=0)


def processor_columns(
    lookups: Lookups, counts: Iterable[ProcessorCounts], conditions: Conditions
) -> ProcessorColumns:
    """Return the columns of packages with these counts.

    The column of other processors is left out if it is empty. Installations are for
    their own machines, so they have only columns with something in them.
    """
    totals: Counter[Processor] = Counter()
    top = 0
    for of_package in counts:
        totals.update(of_package)
        top = max(top, *of_package.values(), 0)
    columns = []
    for processor in PROCESSORS:
        can_be_empty = processor is not OTHERS and not lookups.is_installed
        if can_be_empty or totals[processor]:
            column = ProcessorColumn(processor, _is_chosen(processor, conditions))
            columns.append(column)
    return ProcessorColumns(tuple(columns), top)


def counts_by_processor(
    lookups: Lookups, results: ResultSet
) -> Mapping[str, ProcessorCounts]:
    """Return the number of binaries of each package for each kind of processor.

    The results are those of conditions without `MACHINE_KINDS`. A package without any
    is left out.
    """
    counts = spec_counts(lookups, results)
    package_of = lookups.column("configurations", "package_id")
    platform_of = lookups.column("configurations", ID_COLUMNS["platform"])
    target_of = lookups.column("configurations", ID_COLUMNS["target"])
    names = lookups.words
    processors: dict[tuple[int, int], Processor] = {}
    of_package: dict[str, Counter[Processor]] = defaultdict(Counter)
    for key in results.ids:
        # Few different pairs of a platform and a target are read again and again.
        pair = (platform_of[key], target_of[key])
        processor = processors.get(pair)
        if processor is None:
            platform = names["platform"].get(pair[0], "")
            target = names["target"].get(pair[1], "")
            processor = processor_of(platform, target)
            processors[pair] = processor
        of_package[names["package"][package_of[key]]][processor] += counts[key]
    return dict(of_package)


def _is_chosen(processor: Processor, conditions: Conditions) -> bool:
    """Return whether a visitor asks for the binaries of a column: those that run on a
    machine, or that are for a target.

    The column of macOS has no target: it is chosen for a Mac. That of others is never
    chosen.
    """
    hosts = only(conditions, "host")
    targets = only(conditions, "target")
    if processor is MACS:
        is_chosen = all(is_mac(str(condition.value)) for condition in hosts)
        return bool(hosts) and not targets and is_chosen
    if processor is OTHERS or not (hosts or targets):
        return False
    is_on_linux = all(condition.is_met_by("platform", LINUX) for condition in hosts)
    return is_on_linux and all(
        condition.is_met_by("target", processor.target)
        for condition in (*hosts, *targets)
    )
