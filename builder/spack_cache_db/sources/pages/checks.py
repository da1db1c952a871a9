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
    """
    distinct, counts = {*configurations}, Counter(chain.from_iterable(stack_sets))
    return {
        **{
            key: sorted({getattr(configuration, column) for configuration in distinct})
            for key, column in LISTS.items()
        },
        "stacks": sorted(counts),
        "num_specs": len(stack_sets),
        "num_specs_by_stack": dict(sorted(counts.items())),
    }


def declared_meta(meta: Meta) -> dict[str, Any]:
    """Return the `meta` that a page declares, in normal form: sorted, compilers without
    `@=`.
    """
    return {
        **{key: sorted(getattr(meta, key)) for key in (*LISTS, "stacks")},
        "compilers": sorted(
            {_normal(normal_compiler, name) for name in meta.compilers}
        ),
        "num_specs": meta.num_specs,
        "num_specs_by_stack": dict(sorted(meta.num_specs_by_stack.items())),
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
            items, listed = _items(value), _items(computed[key])
            parts = []
            if items - listed:
                parts.append(
                    f"declares {', '.join(sorted(items - listed))}, which no spec has"
                )
            if listed - items:
                names = ", ".join(sorted(listed - items))
                parts.append(f"does not declare {names}, which specs have")
            message = f"meta.{key} {' and '.join(parts) or 'has a repeated entry'}"
        yield Problem(key, message, value=as_json(value))


def _items(value: Any) -> set[str]:
    is_counted = isinstance(value, dict)
    return (
        {f"{name} {count}" for name, count in value.items()} if is_counted else {*value}
    )
