"""Names → ids: every dictionary of the normal form, in the order of what its names mean.

Versions and compilers come in Spack's order, releases as they are given, all else by its text; ids
count from 1. They depend on what the input says and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from spack_cache_db.records import Configuration
from spack_cache_db.sources.tarballs import Tarball
from spack_cache_db.spack.compilers import split_compiler
from spack_cache_db.spack.versions import sort_versions, version_key


@dataclass(frozen=True, slots=True)
class Names:
    """Ids by name; each dictionary is in the order of its ids."""

    releases: dict[str, int]
    packages: dict[str, int]
    versions: dict[tuple[str, str], int]
    compilers: dict[str, int]
    operating_systems: dict[str, int]
    platforms: dict[str, int]
    targets: dict[str, int]
    stacks: dict[str, int]
    stack_sets: dict[tuple[str, ...], int]
    variants: dict[str, int]
    variant_sets: dict[tuple[str, ...], int]
    tarballs: dict[Tarball, int]

    def configuration_row(self, each: Configuration) -> tuple[int | str | None, ...]:
        """Return a configuration as its row says it, which is also its place in the order."""
        return (
            self.packages[each.package],
            self.versions[each.package, each.version],
            self.compilers[each.compiler],
            self.operating_systems[each.os],
            self.platforms[each.platform],
            self.targets[each.target],
            self.variant_sets[each.variants],
        )


def number_names(
    releases: Iterable[str],
    packages: Iterable[str],
    configurations: Collection[Configuration],
    stack_sets: Iterable[tuple[str, ...]],
    tarballs: Iterable[Tarball],
    stacks: Iterable[str] = (),
) -> Names:
    """Return all names that are in use, numbered.

    Args:
        releases: in their order.
        packages: those that have a page; those of the configurations need not be among them.
        stacks: those of indexes; the same holds for those of the sets.
    """
    stack_sets = {*stack_sets}
    numbered_packages = _sorted([*packages, *(each.package for each in configurations)])
    versions: dict[str, set[str]] = {package: set() for package in numbered_packages}
    for each in configurations:
        versions[each.package].add(each.version)
    variant_sets = {each.variants for each in configurations}
    return Names(
        releases=_ids(releases),
        packages=numbered_packages,
        versions=_ids(
            (package, name) for package, names in versions.items() for name in sort_versions(names)
        ),
        compilers=_sorted((each.compiler for each in configurations), compiler_order),
        operating_systems=_sorted(each.os for each in configurations),
        platforms=_sorted(each.platform for each in configurations),
        targets=_sorted(each.target for each in configurations),
        stacks=_sorted([*stacks, *(stack for stacks in stack_sets for stack in stacks)]),
        stack_sets=_sorted(stack_sets),
        variants=_sorted(text for texts in variant_sets for text in texts),
        variant_sets=_sorted(variant_sets),
        tarballs=_sorted(tarballs),
    )


def compiler_order(name: str) -> Any:
    """Return the sort key of a compiler: its name, then its version in Spack's order."""
    compiler, version = split_compiler(name)
    return compiler, version_key(version or ""), name


def _ids(ordered: Iterable[Any]) -> dict[Any, int]:
    return {name: at for at, name in enumerate(ordered, start=1)}


def _sorted(names: Iterable[Any], key: Callable[[Any], Any] | None = None) -> dict[Any, int]:
    return _ids(sorted(set(names), key=key))
