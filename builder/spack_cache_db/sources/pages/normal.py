"""Records' text → normal form, so that the same thing spelled in two eras becomes one row.

These are the only liberties that are taken with a page: `gcc@=13.2.0` and `gcc@13.2.0/abc…` are
`gcc@13.2.0`, `libs:=shared,static` is `libs=shared,static`, and the order of a list says nothing.
"""

from __future__ import annotations

from itertools import pairwise

from spack_cache_db.records import Configuration
from spack_cache_db.sources.pages.records import SpecDetail
from spack_cache_db.spack.compilers import normal_compiler
from spack_cache_db.spack.variants import normal_variant


def normal_configuration(package: str, detail: SpecDetail) -> Configuration:
    """Return what a person can see of a spec, in normal form.

    Raises:
        ValueError: the detail does not have exactly one version, or names a variant twice.
    """
    if len(detail.versions) != 1:
        raise ValueError(f"has {len(detail.versions)} versions, expected one")
    return Configuration(
        package,
        detail.versions[0],
        normal_compiler(detail.compiler),
        detail.os,
        detail.platform,
        detail.target,
        as_set("variant", map(kept_variant, detail.variants)),
    )


def as_set(word: str, texts: object) -> tuple[str, ...]:
    """Return texts sorted; `ValueError` if one stands twice, for a set cannot give it back."""
    ordered = tuple(sorted(texts))  # type: ignore[call-overload]  # any iterable of text
    for left, right in pairwise(ordered):
        if left == right:
            raise ValueError(f"lists the {word} {left!r} twice, expected once")
    return ordered


def kept_variant(text: str) -> str:
    """Return a variant's normal form; text that is no variant stays as it is."""
    try:
        return normal_variant(text)
    except ValueError:
        return text
