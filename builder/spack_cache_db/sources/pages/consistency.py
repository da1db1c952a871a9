"""Compares what a page declares about itself with what it lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from functools import lru_cache
from typing import Any

import msgspec

from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources.pages.page_format import Meta
from spack_cache_db.spack.normal_forms import normal_compiler, readable_variant

LISTS = {
    "versions": "version",
    "compilers": "compiler",
    "oss": "os",
    "platforms": "platform",
    "targets": "target",
}
"""The keys of `meta` that list what a column of the configurations has."""

StackSets = Collection[tuple[tuple[str, ...], int]]
"""Sets of stacks, each with the number of its listings."""

Facts = dict[str, Any]
"""The value of each key of `meta`."""


class Consistency:
    """Compares pages with their own summary, and remembers the combinations that agree.

    Args:
        configurations: in the order of their numbers; it may grow.
        stack_sets: in the order of their numbers; it may grow.
    """

    def __init__(
        self, configurations: Sequence[Configuration], stack_sets: Sequence[tuple[str, ...]]
    ) -> None:
        self._configurations = configurations
        self._stack_sets = stack_sets
        self._odd: dict[int, tuple[Problem, ...]] = {}
        self._looked_at = 0
        self._sound: set[tuple[Meta, frozenset[int], tuple[int, ...]]] = set()

    def problems(
        self, meta: Meta, configuration: Collection[int], stacks: Collection[int]
    ) -> tuple[Problem, ...]:
        """Return the contradictions in a page, given the numbers of each of its listings."""
        distinct = frozenset(configuration)
        # Most pages repeat the page of another week, which has been compared already.
        key = (meta, distinct, tuple(sorted(stacks)))
        if key in self._sound:
            return ()
        found = page_problems(
            meta,
            [self._configurations[at - 1] for at in distinct],
            [(self._stack_sets[at - 1], count) for at, count in Counter(stacks).items()],
        )
        odd = {each for at in distinct & self._odd_ones() for each in self._odd[at]}
        problems = (*found, *sorted(odd))
        if not problems:
            self._sound.add(key)
        return problems

    def _odd_ones(self) -> Set[int]:
        """Return the configurations with unreadable variants, including new ones."""
        new = self._configurations[self._looked_at :]
        for number, each in enumerate(new, start=self._looked_at + 1):
            if odd := tuple(variant_problems(each)):
                self._odd[number] = odd
        self._looked_at = len(self._configurations)
        return self._odd.keys()


def computed_meta(distinct: Collection[Configuration], stack_sets: StackSets) -> Facts:
    """Return the `meta` that the listings of a page imply, in normal form.

    Args:
        distinct: the configurations that the listings have.
        stack_sets: the sets of stacks that they have, each with the number of its listings.
    """
    stacks = _count_stacks(stack_sets)
    return {
        **{
            key: sorted({getattr(each, column) for each in distinct})
            for key, column in LISTS.items()
        },
        "stacks": sorted(stacks),
        "num_specs": sum(count for _, count in stack_sets),
        "num_specs_by_stack": dict(sorted(stacks.items())),
    }


def declared_meta(meta: Meta) -> Facts:
    """Return the `meta` that a page declares, in normal form: sorted, compilers without `@=`."""
    return {
        **{key: sorted(getattr(meta, key)) for key in (*LISTS, "stacks")},
        "compilers": sorted(set(map(_compiler, meta.compilers))),
        "num_specs": meta.num_specs,
        "num_specs_by_stack": dict(sorted(meta.num_specs_by_stack.items())),
    }


def page_problems(
    meta: Meta, distinct: Collection[Configuration], stack_sets: StackSets
) -> Iterator[Problem]:
    """Yield the contradictions in one page (arguments as in `computed_meta`)."""
    declared = declared_meta(meta)
    computed = computed_meta(distinct, stack_sets)
    for key, value in declared.items():
        if value != computed[key]:
            text = msgspec.json.encode(value).decode()
            yield Problem(key, _difference(key, value, computed[key]), value=text)


def _count_stacks(stack_sets: StackSets) -> dict[str, int]:
    stacks: dict[str, int] = {}
    for stack_set, count in stack_sets:
        for stack in stack_set:
            stacks[stack] = stacks.get(stack, 0) + count
    return stacks


def variant_problems(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each variant that Spack would not read."""
    for text in configuration.variants:
        if readable_variant(text) is None:
            yield Problem(
                "variant", f"{text!r} is not a variant that Spack would read; kept as it is"
            )


def _difference(key: str, declared: Any, computed: Any) -> str:
    if isinstance(declared, int):
        return f"meta declares {key} {declared}, the page lists {computed}"
    declared_items, computed_items = map(_items, (declared, computed))
    only_declared = sorted(declared_items - computed_items)
    only_listed = sorted(computed_items - declared_items)
    said = []
    if only_declared:
        said.append(f"declares {', '.join(only_declared)}, which no spec has")
    if only_listed:
        said.append(f"does not declare {', '.join(only_listed)}, which specs have")
    return f"meta.{key} {' and '.join(said) or 'names something twice'}"


@lru_cache(maxsize=4096)
def _compiler(name: str) -> str:
    """Return a declared compiler's normal form; text that is not a compiler stays as it is."""
    try:
        return normal_compiler(name)
    except ValueError:
        return name


def _items(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {f"{stack} {count}" for stack, count in value.items()}
    return set(value)
