"""What a page says of itself, held against what it lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .normal import variant_row
from .records import Configuration, Meta, Problem
from .spack.variants import normal_compiler


def computed_meta(
    configurations: Mapping[Configuration, int], stack_sets: Mapping[tuple[str, ...], int]
) -> dict[str, Any]:
    """Return the `meta` that the listings of a page imply, in normal form.

    Args:
        configurations: how many listings have each.
        stack_sets: how many listings have each, as tuples of stack names.
    """
    distinct = configurations.keys()
    stacks: dict[str, int] = {}
    for stack_set, count in stack_sets.items():
        for stack in stack_set:
            stacks[stack] = stacks.get(stack, 0) + count
    return {
        "versions": sorted({each.version for each in distinct}),
        "compilers": sorted({each.compiler for each in distinct}),
        "oss": sorted({each.os for each in distinct}),
        "platforms": sorted({each.platform for each in distinct}),
        "targets": sorted({each.target for each in distinct}),
        "stacks": sorted(stacks),
        "num_specs": sum(configurations.values()),
        "num_specs_by_stack": dict(sorted(stacks.items())),
    }


def declared_meta(meta: Meta) -> dict[str, Any]:
    """Return the `meta` that a page declares, in normal form: sorted, compilers without `@=`."""
    return {
        "versions": sorted(meta.versions),
        "compilers": sorted(set(map(_compiler, meta.compilers))),
        "oss": sorted(meta.oss),
        "platforms": sorted(meta.platforms),
        "targets": sorted(meta.targets),
        "stacks": sorted(meta.stacks),
        "num_specs": meta.num_specs,
        "num_specs_by_stack": dict(sorted(meta.num_specs_by_stack.items())),
    }


def page_problems(
    meta: Meta,
    configurations: Mapping[Configuration, int],
    stack_sets: Mapping[tuple[str, ...], int],
) -> Iterator[Problem]:
    """Yield what does not add up in one page (arguments as in `computed_meta`)."""
    declared = declared_meta(meta)
    computed = computed_meta(configurations, stack_sets)
    for key, value in declared.items():
        if value != computed[key]:
            text = msgspec.json.encode(value).decode()
            yield Problem(key, _difference(key, value, computed[key]), text)


def variant_problems(configuration: Configuration) -> Iterator[Problem]:
    """Yield what is odd about the variants of a configuration."""
    for text in configuration.variants:
        if variant_row(text) is None:
            yield Problem("variant", f"{text!r} is no variant that Spack would read; kept as it is")


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


def _compiler(name: str) -> str:
    """Return a declared compiler's normal form; text that is no compiler stays as it is."""
    try:
        return normal_compiler(name)
    except ValueError:
        return name


def _items(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {f"{stack} {count}" for stack, count in value.items()}
    return set(value)
