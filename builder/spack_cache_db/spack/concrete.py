"""A concrete spec's record, of an index or a lockfile, in the words in which caches print it.

What the catalogue's own site prints of a node (`generate_cache.py` there) is this: bools as
`+x` and `~x`, single values as `k=v`, lists as `k:=a,b`, seven characters of each patch, no flags
of compilers. This module prints that, and `variants` makes it normal.
"""

from collections.abc import Mapping
from functools import lru_cache

from spack_cache_db.spack.match import PATCH_PRINTED
from spack_cache_db.spack.variants import FLAG_NAMES, Variant, normal_variant

Value = bool | str | tuple[str, ...]
"""A variant's value; a tuple is a multi-valued variant, or flags of a compiler."""

NO_COMPILER = "none"
"""What is printed for a spec that uses no compiler."""

LANGUAGES = ("c", "cxx", "fortran")
"""The compiler printed is the one for the first of these that a spec uses (Spack 1.1 `spec.py`,
`DeprecatedCompilerSpec.factory`)."""


def printed_variants(parameters: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the variants of a `parameters` object in normal form, sorted, without flags."""
    return tuple(
        sorted(
            _printed(name, value) for name, value in parameters.items() if name not in FLAG_NAMES
        )
    )


@lru_cache(maxsize=65536, typed=True)
def _printed(name: str, value: Value) -> str:
    if isinstance(value, bool):
        variant = Variant(name, (str(value),), "bool")
    elif isinstance(value, str):
        variant = Variant(name, (value,), "single")
    elif name == "patches":
        variant = Variant(name, tuple(sorted(each[:PATCH_PRINTED] for each in value)), "multi")
    else:
        variant = Variant(name, tuple(sorted(value)), "multi")
    return normal_variant(variant.text)
