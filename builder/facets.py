"""How many specs and packages have each value of each facet: the rows of `facet_counts`."""

from __future__ import annotations

from collections.abc import Mapping

from .numbering import Numbered

Facet = tuple[int | None, str, str, int, int]
"""release id or None, facet, value, specs, packages: a row of `facet_counts` without its id."""


class FacetCounter:
    """Counts specs and packages by facet value, one package at a time.

    Each (facet, value) has a code, its place in sorted order, so that counting is adding to lists.
    """

    def __init__(self, numbered: Numbered) -> None:
        stack_sets = numbered.dictionaries.stack_sets
        of_configurations = [
            (
                ("versions", each.version),
                ("compilers", each.compiler),
                ("oss", each.os),
                ("platforms", each.platform),
                ("targets", each.target),
            )
            for each in numbered.configurations
        ]
        of_stack_sets = [tuple(("stacks", name) for name in names) for names in stack_sets]
        values = {value for each in (*of_configurations, *of_stack_sets) for value in each}
        self._values = sorted(values)
        codes = {value: code for code, value in enumerate(self._values)}
        self._configurations = [tuple(map(codes.__getitem__, each)) for each in of_configurations]
        self._stack_sets = [tuple(map(codes.__getitem__, each)) for each in of_stack_sets]
        self._specs = [0] * len(codes)
        self._packages = [0] * len(codes)
        self._counted_for = [0] * len(codes)
        self._added = 0

    def add(self, configurations: Mapping[int, int], stack_sets: Mapping[int, int]) -> None:
        """Add one package: specs by configuration id, and specs by stack set id."""
        specs, packages, counted_for = self._specs, self._packages, self._counted_for
        self._added += 1
        package = self._added
        for codes_of, counts in (
            (self._configurations, configurations),
            (self._stack_sets, stack_sets),
        ):
            for at, count in counts.items():
                for code in codes_of[at - 1]:
                    specs[code] += count
                    if counted_for[code] != package:
                        counted_for[code] = package
                        packages[code] += 1

    def take(self, release: int | None) -> list[Facet]:
        """Return the counts, sorted by facet and value, and start anew."""
        rows: list[Facet] = [
            (release, *value, specs, packages)
            for value, specs, packages in zip(
                self._values, self._specs, self._packages, strict=True
            )
            if packages
        ]
        self._specs = [0] * len(self._values)
        self._packages = [0] * len(self._values)
        return rows
