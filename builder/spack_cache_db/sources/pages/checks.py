"""What the front matter of a page says twice, and where it contradicts itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

from spack_cache_db.model import Configuration, Problem
from spack_cache_db.sources.pages.front_matter import LISTS, Meta, SpecDetail
from spack_cache_db.sources.texts import as_json
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant

SPELLING = attrgetter("compiler", "versions", "os", "platform", "target", "variants")
"""Returns the texts of a listing that make its configuration."""


def normal_configuration(package: str, detail: SpecDetail) -> Configuration:
    """Return the configuration of a listing in normal form.

    Raises:
        ValueError: the detail does not have exactly one version, or repeats a variant.
    """
    compiler, versions, os, platform, target, variants = SPELLING(detail)
    if len(versions) != 1:
        raise ValueError(f"has {len(versions)} versions, expected one")
    variants = as_set("variant", [_normal(normal_variant, text) for text in variants])
    compiler = normal_compiler(compiler)
    return Configuration(package, versions[0], compiler, os, platform, target, variants)


def as_set(word: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts sorted; `ValueError` if one is repeated."""
    ordered = tuple(sorted(texts))
    for text, following in pairwise(ordered):
        if text == following:
            raise ValueError(f"lists the {word} {text!r} twice, expected once")
    return ordered


def _normal(normal_form: Callable[[str], str], text: str) -> str:
    """Return the normal form of a text, or the text if it has none."""
    try:
        return normal_form(text)
    except ValueError:
        return text


def computed_meta(
    configurations: Iterable[Configuration], stack_sets: Sequence[Iterable[str]]
) -> dict[str, Any]:
    """Return the `meta` that a page's configurations and sets of stacks imply, in
    normal form.

    Args:
        configurations: the configurations of the page, some of them repeated.
        stack_sets: the stacks of each listing.
    """
    computed: dict[str, Any] = {}
    distinct = set(configurations)
    for key, column in LISTS.items():
        words = {getattr(configuration, column) for configuration in distinct}
        computed[key] = sorted(words)
    specs_of_stack = Counter(chain.from_iterable(stack_sets))
    computed["stacks"] = sorted(specs_of_stack)
    computed["num_specs"] = len(stack_sets)
    computed["num_specs_by_stack"] = dict(sorted(specs_of_stack.items()))
    return computed


def declared_meta(meta: Meta) -> dict[str, Any]:
    """Return the `meta` that a page declares, in normal form: sorted, compilers without
    `@=`.
    """
    declared: dict[str, Any] = {}
    for key in (*LISTS, "stacks"):
        declared[key] = sorted(getattr(meta, key))
    # Two spellings of one compiler are one.
    compilers = {_normal(normal_compiler, name) for name in meta.compilers}
    declared["compilers"] = sorted(compilers)
    declared["num_specs"] = meta.num_specs
    declared["num_specs_by_stack"] = dict(sorted(meta.num_specs_by_stack.items()))
    return declared


def contradictions(
    declared: dict[str, Any], computed: dict[str, Any]
) -> Iterator[Problem]:
    """Yield the contradictions between a page's `meta` and its listings."""
    for key, value in declared.items():
        if value == computed[key]:
            continue
        if key == "num_specs":
            message = f"meta declares {key} {value}, the page lists {computed[key]}"
        else:
            message = f"meta.{key} {_difference(value, computed[key])}"
        yield Problem(key, message, value=as_json(value))


def _difference(declared: Any, computed: Any) -> str:
    """Return what two lists or counts of `meta` do not have in common.

    Equal as sets, they differ in a repeated entry.
    """
    declared_items = _items(declared)
    computed_items = _items(computed)
    parts = []
    if declared_items - computed_items:
        names = ", ".join(sorted(declared_items - computed_items))
        parts.append(f"declares {names}, which no spec has")
    if computed_items - declared_items:
        names = ", ".join(sorted(computed_items - declared_items))
        parts.append(f"does not declare {names}, which specs have")
    return " and ".join(parts) or "has a repeated entry"


def _items(value: Any) -> set[str]:
    """Return the members of a list, and those of counts as `e4s 12`."""
    if isinstance(value, dict):
        return {f"{name} {count}" for name, count in value.items()}
    return set(value)
