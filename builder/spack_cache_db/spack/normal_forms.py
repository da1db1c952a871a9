"""Reads variants and compilers as Spack prints them, and returns their normal forms.

Spack 0.13 to 1.1 print the same thing in different ways (`variant.py`,
`spec_parser.py`). The normal form is stored, so that equal things have equal texts:

| printed | normal form |
| --- | --- |
| `+cuda` | `+cuda` |
| `libs:=static,shared` | `libs=shared,static` |
| `gcc@=13.2.0`, `gcc@13.2.0/<hash>` | `gcc@13.2.0` |
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from spack_cache_db.spack.facts import FLAG_NAMES, PATCHES, UNSPLIT_NAMES

VariantKind = Literal["bool", "single", "multi"]
"""On or off, one value, or any number of values."""

VariantValue = bool | str | tuple[str, ...]
"""The value of a variant in a record of an index, or the flags of a compiler.

A text is a single value, a tuple the values of a multi-valued variant, or the flags.
"""

PATCH_PRINTED = 7
"""Characters that Spack prints of a patch's sha256 since 0.18; before, it printed all
64.
"""

_NAME = r"[a-zA-Z0-9_][a-zA-Z0-9_.\-]*"
_BOOL = re.compile(rf"(?P<sign>\+\+?|~~?|--?)(?P<name>{_NAME})")
_PAIR = re.compile(
    rf"(?P<name>{_NAME})(?P<colon>:?)(?P<equals>==?)(?P<value>.*)", re.DOTALL
)
_NEEDS_NO_QUOTES = re.compile(r"[a-zA-Z0-9,/_.\-\[\]]+")


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a concrete spec.

    Attributes:
        name: the name, without a sign.
        values: `('true',)` or `('false',)` for a bool, one value for a single, any
            number for a multi, sorted.
        kind: the kind by its text: `k=a,b` and `k:=a` are multi, `k=a` is single.
        propagate: printed with a doubled sign, `++x` or `k==v`.
    """

    name: str
    values: tuple[str, ...]
    kind: VariantKind
    propagate: bool = False

    @property
    def value(self) -> str:
        """The values as one text: sorted, joined by commas."""
        return ",".join(self.values)

    @property
    def text(self) -> str:
        """The canonical text, from which `parse_variant` reads an equal variant."""
        if self.kind == "bool":
            sign = "+" if self.values == ("true",) else "~"
            if self.propagate:
                sign = sign * 2
            return f"{sign}{self.name}"
        colon = ":" if self.kind == "multi" else ""
        equals = "==" if self.propagate else "="
        value = quoted(self.value) if self.values else "'*'"
        return f"{self.name}{colon}{equals}{value}"


def quoted(value: str) -> str:
    """Return a value as Spack 0.22 and later prints it, in quotes if it needs them."""
    if _NEEDS_NO_QUOTES.fullmatch(value):
        return value
    if "'" in value:
        return json.dumps(value)
    return f"'{value}'"


@lru_cache(maxsize=65536)
def parse_variant(text: str) -> Variant:
    """Read one variant in any printed form.

    The forms are `+x ~x -x ++x ~~x --x` and `k=v k:=v k==v k:==v`, the value bare or in
    quotes. `k='*'` is a multi-valued variant without values; `k=True` is `+k`.

    Raises:
        ValueError: the text is not a variant.
    """
    # On or off.
    flag = _BOOL.fullmatch(text)
    if flag is not None:
        sign = flag["sign"]
        word = "true" if sign.startswith("+") else "false"
        return Variant(flag["name"], (word,), "bool", propagate=len(sign) == 2)

    # A name and values. Only the text shows the kind: `k=a,b` and `k:=a` are multi,
    # `k=a` is single.
    pair = _match_pair(text)
    name = pair["name"]
    value = _unquoted(pair["value"])
    propagate = pair["equals"] == "=="
    if name in UNSPLIT_NAMES:
        return Variant(name, (value,), "single", propagate)
    if value == "*":
        return Variant(name, (), "multi", propagate)
    has_colon = bool(pair["colon"])
    if value.upper() in ("TRUE", "FALSE") and not has_colon:
        return Variant(name, (value.lower(),), "bool", propagate)
    values = tuple(sorted(value.split(",")))
    kind: VariantKind = "multi" if has_colon or len(values) > 1 else "single"
    return Variant(name, values, kind, propagate)


def _match_pair(text: str) -> re.Match[str]:
    """Split `k=v`; `ValueError` if the text is not a variant."""
    match = _PAIR.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a variant: expected +name, ~name or name=value"
        )
    return match


def _unquoted(printed: str) -> str:
    """Return a printed value without its quotes and escapes."""
    quote = _quote_of(printed)
    if not quote:
        return printed
    if quote == '"':
        # Spack 0.22 and later escapes as JSON does. Text that somebody typed may not be
        # valid JSON.
        with suppress(ValueError):
            return str(json.loads(printed))
    return printed[1:-1].replace(f"\\{quote}", quote)


def _quote_of(printed: str) -> str:
    """Return the quote on both sides of a value; empty if it has none."""
    if len(printed) < 2:
        return ""
    first = printed[0]
    if first not in "'\"" or printed[-1] != first:
        return ""
    return first


@lru_cache(maxsize=65536)
def normal_variant(text: str) -> str:
    """Return the normal form of a printed variant.

    It has sorted values and no colon: `libs:=static,shared` becomes
    `libs=shared,static`. Everything else stays, quotes included, and a normal form is
    its own normal form.

    Raises:
        ValueError: the text is not a variant.
    """
    if _BOOL.fullmatch(text):
        return text
    pair = _match_pair(text)
    name = pair["name"]
    value = pair["value"]
    if name not in UNSPLIT_NAMES:
        # The values between the quotes are sorted.
        quote = _quote_of(value)
        values = value[1:-1] if quote else value
        in_order = ",".join(sorted(values.split(",")))
        value = f"{quote}{in_order}{quote}"
    return f"{name}{pair['equals']}{value}"


@lru_cache(maxsize=65536)
def readable_variant(text: str) -> Variant | None:
    """Return a printed variant as `parse_variant` does; None if it is not a variant."""
    try:
        return parse_variant(text)
    except ValueError:
        return None


def printed_variants(parameters: Mapping[str, VariantValue]) -> tuple[str, ...]:
    """Return the variants among a record's `parameters` as pages of caches print them.

    Bools are `+x` and `~x`, lists `k=a,b`, patches seven characters each
    (`generate_cache.py` of the public cache's site). In normal form, sorted, without
    compiler flags.
    """
    printed = []
    for name, value in parameters.items():
        if name not in FLAG_NAMES:
            printed.append(_printed(name, value))
    return tuple(sorted(printed))


# `typed`, because True and 1 would have the same place in the cache.
@lru_cache(maxsize=65536, typed=True)
def _printed(name: str, value: VariantValue) -> str:
    if isinstance(value, tuple) and name == PATCHES:
        value = tuple(patch[:PATCH_PRINTED] for patch in value)
    return normal_variant(variant_of(name, value).text)


def variant_of(name: str, value: VariantValue) -> Variant:
    """Return the variant of a name and a value in a record."""
    if isinstance(value, bool):
        return Variant(name, (str(value).lower(),), "bool")
    if isinstance(value, str):
        return Variant(name, (value,), "single")
    return Variant(name, tuple(sorted(value)), "multi")


# An index has a few dozen compilers.
@lru_cache(maxsize=4096)
def normal_compiler(text: str) -> str:
    """Return the normal form of a printed compiler.

    `gcc@=13.2.0` becomes `gcc@13.2.0`, and `gcc@13.2.0/abc…` loses the hash that Spack
    1.0 and later prints. `none`, which stands for no compiler, stays.

    Raises:
        ValueError: it has no name, or nothing after its `@`.
    """
    name, at, version = text.partition("@")
    if at:
        version = version.removeprefix("=").partition("/")[0]
        compiler = f"{name}@{version}"
    else:
        name = name.partition("/")[0]
        compiler = name
    if not name or (at and not version):
        raise ValueError(f"{text!r} is not a compiler: expected name@version or a name")
    return compiler


def split_compiler(text: str) -> tuple[str, str | None]:
    """Return the name and the version of a printed compiler: `gcc` and `13.2.0`.

    The version is None if it has none, such as `none`. Raises as `normal_compiler`.
    """
    name, _, version = normal_compiler(text).partition("@")
    return name, version or None
