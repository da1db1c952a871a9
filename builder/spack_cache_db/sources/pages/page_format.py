"""What a page says as frozen records, and the JSON that a record stands for.

No text is changed here. `Shape` reads the keys from the record itself: a field that is added is
decoded, checked and counted at once, and one of an unknown type stops the program when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page: the source's own summary of its `spec_details`.

    Pages may share one; two are equal if they are the same object.
    """

    versions: tuple[str, ...]
    compilers: tuple[str, ...]
    oss: tuple[str, ...]
    platforms: tuple[str, ...]
    targets: tuple[str, ...]
    stacks: tuple[str, ...]
    num_specs: int
    num_specs_by_stack: dict[str, int]


class SpecDetail(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One member of `spec_details`: one listing, in the spelling of its page."""

    hash: str
    compiler: str
    versions: tuple[str, ...]
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    size: str
    tarball: str | UnsetType = UNSET


OF_A_LISTING = frozenset({"hash", "stacks", "size", "tarball"})
"""The fields of a detail that say nothing of the configuration."""


class Json(NamedTuple):
    """The JSON text of a big key, and where it stands (1-based line, column of its first byte)."""

    text: bytes
    line: int
    column: int


class Page(Struct, frozen=True, gc=False):
    """One page: one package in one release.

    `format` is the era of the page: A (2025 on), B (early 2025) or C (2023 and 2024). `location`
    is for messages, `path` is the page's name within the input. `spec_details` is not decoded.
    """

    location: str
    path: str
    sha256: str
    package: str
    release: str
    format: str
    meta: Meta
    spec_details: Json


TEXT = "text"
TEXTS = "a list of texts"
NUMBER = "a whole number"
NUMBERS = "an object of whole numbers"

_KINDS: dict[Any, str] = {
    str: TEXT,
    tuple[str, ...]: TEXTS,
    int: NUMBER,
    dict[str, int]: NUMBERS,
}


class Shape:
    """The keys of a record's JSON: `kinds` has the kind of each, `optional` those that may lack.

    Raises:
        TypeError: a field has a type that this module does not know, or a default.
    """

    def __init__(self, record: type[Struct]) -> None:
        self.kinds: dict[str, str] = {}
        self.optional: set[str] = set()
        for field in fields(record):
            is_optional = field.type == str | UnsetType and field.default is UNSET
            kind = TEXT if is_optional else _KINDS.get(field.type)
            if kind is None or field.required == is_optional:
                raise TypeError(f"{record.__name__}.{field.name}: a field of this type is unknown")
            self.kinds[field.name] = kind
            if is_optional:
                self.optional.add(field.name)
        required = [name for name in self.kinds if name not in self.optional]
        texts = len(required) + sum(self.kinds[name] == TEXT for name in required)
        many = [f"len(each.{name})" for name in required if self.kinds[name] in (TEXTS, NUMBERS)]
        # The key, and its text.
        present = [f"2 * (each.{name} is not UNSET)" for name in self.optional]
        self._count = _compiled(" + ".join([str(texts), *many, *present]))

    def texts(self, records: Iterable[Struct]) -> int:
        """Return how many strings the JSON of these records has: keys, and those in values."""
        return sum(map(self._count, records))


def values_of(names: Iterable[str]) -> Callable[[Struct], tuple[Any, ...]]:
    """Return the function that gives the values of these fields of a record."""
    return _compiled(f"({''.join(f'each.{name}, ' for name in names)})")


def _compiled(expression: str) -> Callable[[Any], Any]:
    """Return a function of `each`, compiled once: `attrgetter` takes three times as long."""
    function: Callable[[Any], Any] = eval(f"lambda each: {expression}", {"UNSET": UNSET})
    return function
