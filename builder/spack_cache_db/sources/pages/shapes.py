"""What JSON a record stands for, read from the record itself: no list of its keys is kept apart.

A field that is added to a record is decoded, checked and counted at once; one of a type that
nothing here knows stops the program when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

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
