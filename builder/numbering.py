"""Catalogue → final numbers: ids that depend on what the pages say and on nothing else.

Every dictionary is sorted by what it means (versions in Spack's order, releases from new to old)
and numbered from 1. Specs are numbered by configuration, then hash, so that what is asked for
together lies together in the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .catalogue import Catalogue
from .columns import PageEntry
from .records import Configuration
from .releases import sort_releases
from .spack.variants import split_compiler
from .spack.versions import sort_versions, version_key


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """Names to ids; each dictionary is in the order of its ids."""

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

    def configuration_key(self, each: Configuration) -> tuple[int, ...]:
        """Return the ids of a configuration's parts: its row, and its place in the order."""
        return (
            self.packages[each.package],
            self.versions[each.package, each.version],
            self.compilers[each.compiler],
            self.operating_systems[each.os],
            self.platforms[each.platform],
            self.targets[each.target],
            self.variant_sets[each.variants],
        )


@dataclass(frozen=True, slots=True)
class Numbered:
    """A settled catalogue with final ids.

    `pages` is in the order of (release, package). `configurations` and `hashes` are in the order
    of their ids. `spec_configuration[i]` and `spec_stacks[i]` belong to the spec with id i + 1. The
    `…_id` lists take the catalogue's provisional numbers to final ids (0: not in use); `spec_order`
    has the specs' provisional numbers in the order of their ids.
    """

    dictionaries: Dictionaries
    pages: list[PageEntry]
    configurations: list[Configuration]
    hashes: list[str]
    spec_configuration: list[int]
    spec_stacks: list[int]
    configuration_id: list[int]
    spec_id: list[int]
    spec_order: list[int]
    stack_set_id: list[int]


def number(catalogue: Catalogue) -> Numbered:
    """Give final ids to a settled catalogue."""
    chosen = _chosen_configurations(catalogue)
    used = _used(catalogue)
    all_configurations = catalogue.configurations
    configurations = [all_configurations[at] for at in used.configurations]
    all_stack_sets, spec_stacks = catalogue.stack_sets, _spec_stack_sets(catalogue)
    stack_sets = {all_stack_sets[at] for at in used.stack_sets} | set(spec_stacks.values())
    dictionaries = _dictionaries(catalogue, configurations, stack_sets)

    keys = {
        at: dictionaries.configuration_key(all_configurations[at]) for at in used.configurations
    }
    configuration_order = sorted(used.configurations, key=keys.__getitem__)
    configuration_id = _inverse(configuration_order, len(all_configurations))

    hashes = catalogue.hashes
    spec_order = sorted(spec_stacks, key=hashes.__getitem__)
    spec_order.sort(key=lambda spec: configuration_id[chosen[spec]])
    releases, packages = dictionaries.releases, dictionaries.packages
    return Numbered(
        dictionaries=dictionaries,
        pages=sorted(catalogue.pages, key=lambda p: (releases[p.release], packages[p.package])),
        configurations=[all_configurations[at] for at in configuration_order],
        hashes=[hashes[spec] for spec in spec_order],
        spec_configuration=[configuration_id[chosen[spec]] for spec in spec_order],
        spec_stacks=[dictionaries.stack_sets[spec_stacks[spec]] for spec in spec_order],
        configuration_id=configuration_id,
        spec_id=_inverse(spec_order, len(hashes)),
        spec_order=spec_order,
        stack_set_id=[dictionaries.stack_sets.get(each, 0) for each in all_stack_sets],
    )


@dataclass(frozen=True, slots=True)
class _Used:
    """What the kept pages use: a refused page leaves no trace."""

    configurations: set[int]
    stack_sets: set[int]


def _used(catalogue: Catalogue) -> _Used:
    used = _Used(set(), set())
    for page in catalogue.pages:
        listings = slice(page.start, page.start + page.spec_count)
        used.configurations.update(catalogue.configuration[listings])
        used.stack_sets.update(catalogue.stacks[listings])
    return used


def _chosen_configurations(catalogue: Catalogue) -> array[int]:
    """Return each spec's configuration; where releases disagree, the foremost release is right."""
    chosen = array("I", catalogue.spec_configuration)
    if not catalogue.doubtful:
        return chosen
    position = {name: at for at, name in enumerate(sort_releases(_releases(catalogue)))}
    seen: set[int] = set()
    for page in sorted(catalogue.pages, key=lambda page: (position[page.release], page.package)):
        for at in range(page.start, page.start + page.spec_count):
            spec = catalogue.spec[at]
            if spec in catalogue.doubtful and spec not in seen:
                seen.add(spec)
                chosen[spec] = catalogue.configuration[at]
    return chosen


def _dictionaries(
    catalogue: Catalogue,
    configurations: list[Configuration],
    stack_sets: set[tuple[str, ...]],
) -> Dictionaries:
    packages = _numbered({page.package for page in catalogue.pages})
    versions: dict[str, set[str]] = {package: set() for package in packages}
    for each in configurations:
        versions[each.package].add(each.version)
    variant_sets = {each.variants for each in configurations}
    return Dictionaries(
        releases=_ids(sort_releases(_releases(catalogue))),
        packages=packages,
        versions=_ids(
            (package, name) for package, names in versions.items() for name in sort_versions(names)
        ),
        compilers=_numbered({each.compiler for each in configurations}, compiler_order),
        operating_systems=_numbered({each.os for each in configurations}),
        platforms=_numbered({each.platform for each in configurations}),
        targets=_numbered({each.target for each in configurations}),
        stacks=_numbered({stack for stack_set in stack_sets for stack in stack_set}),
        stack_sets=_numbered(stack_sets),
        variants=_numbered({text for texts in variant_sets for text in texts}),
        variant_sets=_numbered(variant_sets),
    )


def _spec_stack_sets(catalogue: Catalogue) -> dict[int, tuple[str, ...]]:
    """Return, for each spec, the stacks that any of its releases has it in."""
    pairs: set[tuple[int, int]] = set()
    for page in catalogue.pages:
        listings = slice(page.start, page.start + page.spec_count)
        pairs.update(zip(catalogue.spec[listings], catalogue.stacks[listings], strict=True))
    found: dict[int, tuple[int, ...]] = {}
    for spec, stack_set in sorted(pairs):
        found[spec] = (*found[spec], stack_set) if spec in found else (stack_set,)
    all_sets = catalogue.stack_sets
    names = {each: union_of(all_sets[at] for at in each) for each in set(found.values())}
    return {spec: names[each] for spec, each in found.items()}


def union_of(stack_sets: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the union of sets of stacks, sorted."""
    return tuple(sorted({stack for stack_set in stack_sets for stack in stack_set}))


def compiler_order(name: str) -> Any:
    """Return the sort key of a compiler: its name, then its version in Spack's order."""
    compiler, version = split_compiler(name)
    return compiler, version_key(version or ""), name


def _releases(catalogue: Catalogue) -> set[str]:
    return {page.release for page in catalogue.pages}


def _ids(ordered: Iterable[Any]) -> dict[Any, int]:
    return {name: at for at, name in enumerate(ordered, start=1)}


def _numbered(names: Iterable[Any], key: Callable[[Any], Any] | None = None) -> dict[Any, int]:
    return _ids(sorted(names, key=key))


def _inverse(order: list[int], size: int) -> list[int]:
    """Return a list that takes a number to its 1-based place in `order`, others to 0."""
    ids = [0] * size
    for at, value in enumerate(order, start=1):
        ids[value] = at
    return ids
