"""What the front matter of a page says twice, and where it contradicts itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

from spack_cache_db.model import Configuration, Problem
from spack_cache_db.sources.pages.json_values import LISTS, Meta, SpecDetail
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


def declared_meta(meta: Meta) -> dict[str, Any]:
    """Return the `meta` that a page declares, in normal form."""
    declared: dict[str, Any] = {}
    for key in (*LISTS, "stacks"):
        declared[key] = list(_in_normal_form(key, getattr(meta, key)))
    declared["num_specs"] = meta.num_specs
    declared["num_specs_by_stack"] = meta.num_specs_by_stack
    return declared


# Most pages declare the same lists as that of another week.
@lru_cache(maxsize=4096)
def _in_normal_form(key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of `meta` sorted; two spellings of one compiler are one."""
    if key == "compilers":
        texts = tuple({_normal(normal_compiler, text) for text in texts})
    return tuple(sorted(texts))


def computed_meta(
    configurations: Iterable[Configuration], stack_sets: Sequence[Iterable[str]]
) -> dict[str, Any]:
    """Return the `meta` that the listings of a page imply, in normal form.

    Args:
        configurations: the configurations of the page; some may be repeated.
        stack_sets: the stacks of each listing.
    """
    return {**lists_of(set(configurations)), **counts_of(stack_sets)}


def lists_of(configurations: Collection[Configuration]) -> dict[str, Any]:
    """Return the part of `meta` that the configurations of a page imply."""
    lists = {}
    for key, column in LISTS.items():
        words = {getattr(configuration, column) for configuration in configurations}
        lists[key] = sorted(words)
    return lists


def counts_of(stack_sets: Sequence[Iterable[str]]) -> dict[str, Any]:
    """Return the part of `meta` that the stacks of the listings imply."""
    specs_of_stack = Counter(chain.from_iterable(stack_sets))
    return {
        "stacks": sorted(specs_of_stack),
        "num_specs": len(stack_sets),
        "num_specs_by_stack": dict(specs_of_stack),
    }


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
