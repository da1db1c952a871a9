"""What JSON a record stands for, read from the record itself: no list of its keys is kept apart.

A field that is added to a record is decoded, checked and counted at once; one of a type that
nothing here knows stops the program when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
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
        self._texts = len(required) + sum(self.kinds[name] == TEXT for name in required)
        self._many = _values([name for name in required if self.kinds[name] in (TEXTS, NUMBERS)])
        self._optional = _values([*self.optional])

    def texts(self, records: Sequence[Struct]) -> int:
        """Return how many strings the JSON of these records has: keys, and those in values."""
        many = chain.from_iterable(map(self._many, records))
        optional = [*chain.from_iterable(map(self._optional, records))]
        present = len(optional) - optional.count(UNSET)
        return self._texts * len(records) + sum(map(len, many)) + 2 * present


def _values(names: Sequence[str]) -> Callable[[Struct], tuple[Any, ...]]:
    """Return what gives the values of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)
