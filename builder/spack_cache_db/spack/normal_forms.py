"""Reads variants and compilers as Spack prints them, and returns their normal forms.

`+cuda`, `libs:=shared,static` and `gcc@=13.2.0` are forms of Spack 0.13 to 1.1
(`variant.py`, `spec_parser.py`). Compilers are packages since Spack 1.0, and had other
names before.
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

PATCH_PRINTED = 7
"""Characters that Spack prints of a patch's sha256 since 0.18; before, it printed all
64.
"""

_NAME = r"[a-zA-Z0-9_][a-zA-Z0-9_.\-]*"
_BOOL = re.compile(rf"(?P<sigil>\+\+?|~~?|--?)(?P<name>{_NAME})")
_PAIR = re.compile(
    rf"(?P<name>{_NAME})(?P<colon>:?)(?P<equals>==?)(?P<value>.*)", re.DOTALL
)
_BARE_VALUE = re.compile(r"[a-zA-Z0-9,/_.\-\[\]]+")


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a concrete spec.

    Attributes:
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
            sigil = "+" if self.values == ("true",) else "~"
            if self.propagate:
                sigil += sigil
            return f"{sigil}{self.name}"
        colon = ":" if self.kind == "multi" else ""
        equals = "==" if self.propagate else "="
        value = quoted(self.value) if self.values else "'*'"
        return f"{self.name}{colon}{equals}{value}"


def quoted(value: str) -> str:
    """Return `value` as Spack 0.22 and later prints it, in quotes if it needs them."""
    if _BARE_VALUE.fullmatch(value):
        return value
    if "'" in value:
        return json.dumps(value)
    return f"'{value}'"


@lru_cache(maxsize=65536)
def parse_variant(text: str) -> Variant:
    """Read one variant in any printed form; `ValueError` if the text is not a variant.

    The forms are `+x ~x -x ++x ~~x --x` and `k=v k:=v k==v k:==v`, the value bare or in
    quotes. `k='*'` is a multi-valued variant without values; `k=True` is `+k`.
    """
    flag = _BOOL.fullmatch(text)
    if flag is not None:
        sigil = flag["sigil"]
        word = "true" if sigil.startswith("+") else "false"
        return Variant(flag["name"], (word,), "bool", propagate=len(sigil) == 2)

    # The kind follows from the value: `k=a,b` and `k:=a` are multi, `k=a` is single.
    pair = _match_pair(text)
    name = pair["name"]
    value = _unquoted(pair["value"])
    propagate = pair["equals"] == "=="
    if name in UNSPLIT_NAMES:
        return Variant(name, (value,), "single", propagate)
    if value == "*":
        return Variant(name, (), "multi", propagate)
    if not pair["colon"] and value.upper() in ("TRUE", "FALSE"):
        return Variant(name, (value.lower(),), "bool", propagate)
    values = tuple(sorted(value.split(",")))
    kind: VariantKind = "single"
    if pair["colon"] or len(values) > 1:
        kind = "multi"
    return Variant(name, values, kind, propagate)


def _match_pair(text: str) -> re.Match[str]:
    """Split `k=v`; `ValueError` if the text is not a variant."""
    match = _PAIR.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a variant: expected +name, ~name or name=value"
        )
    return match


def _unquoted(raw: str) -> str:
    """Return a printed value without its quotes and escapes."""
    quote = _quote_of(raw)
    if not quote:
        return raw
    if quote == '"':
        # Spack 0.22 and later escapes as JSON does; hand-written text may not be valid
        # JSON.
        with suppress(ValueError):
            return str(json.loads(raw))
    return raw[1:-1].replace(f"\\{quote}", quote)


def _quote_of(raw: str) -> str:
    """Return the quote on both sides of `raw`, empty if it has none."""
    if len(raw) < 2 or raw[0] != raw[-1] or raw[0] not in "'\"":
        return ""
    return raw[0]


@lru_cache(maxsize=65536)
def normal_variant(text: str) -> str:
    """Return the normal form of a printed variant.

    `libs:=static,shared` becomes `libs=shared,static`: without colon, with sorted
    values. Everything else stays, quotes included, and the function is idempotent.
    Raises `ValueError` if the text is not a variant.
    """
    if _BOOL.fullmatch(text):
        return text
    pair = _match_pair(text)
    name = pair["name"]
    value = pair["value"]
    if name not in UNSPLIT_NAMES:
        quote = _quote_of(value)
        inner = value[1:-1] if quote else value
        in_order = ",".join(sorted(inner.split(",")))
        value = f"{quote}{in_order}{quote}"
    return f"{name}{pair['equals']}{value}"


@lru_cache(maxsize=65536)
def readable_variant(text: str) -> Variant | None:
    """Return a printed variant, None if the text is not a variant (see
    `parse_variant`).
    """
    try:
        return parse_variant(text)
    except ValueError:
        return None


VariantValue = bool | str | tuple[str, ...]
"""A variant's value in a record; a tuple is a multi-valued variant, or flags of a
compiler.
"""


def printed_variants(parameters: Mapping[str, VariantValue]) -> tuple[str, ...]:
    """Return the variants of a concrete spec's `parameters` as caches print them.

    Bools are `+x` and `~x`, lists `k=a,b`, patches seven characters each
    (`generate_cache.py` of the public cache's site). In normal form, sorted, without
    compiler flags.
    """
    printed = []
    for name, value in parameters.items():
        if name not in FLAG_NAMES:
            printed.append(_printed(name, value))
    return tuple(sorted(printed))


# Typed, because True equals 1 as a key.
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


def normal_compiler(text: str) -> str:
    """Return the normal form of a printed compiler; `ValueError` if it has no name.

    `gcc@=13.2.0` becomes `gcc@13.2.0`, and `gcc@13.2.0/abc…` loses the hash that Spack
    1.0 and later prints; `none` stays.
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


def split_compiler(name: str) -> tuple[str, str | None]:
    """Split `gcc@13.2.0` into name and version, which may be None; `ValueError` without
    a name.
    """
    compiler, _, version = normal_compiler(name).partition("@")
    return compiler, version or None
