"""Keys of a record that nobody knows: taken out of it, each told as a problem with its value.

What keys there are is read from the records (`records.py`), at every depth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from spack_cache_db.records import Problem
from spack_cache_db.sources.indexes.faults import short
from spack_cache_db.sources.indexes.records import (
    Arch,
    Dependency,
    EdgeParameters,
    NamedNode,
    Node,
    Record,
)

CODE = "unknown_key"
"""The code of such a problem; `declared` has the key's place as `path`, and its `value`."""


_UNDECODED: dict[tuple[type[Struct], str], Any] = {
    (Node, "arch"): Arch,
    (NamedNode, "arch"): Arch,
    (Dependency, "parameters"): EdgeParameters,
}
"""What stands in the fields that a record leaves undecoded, where its keys are known."""


class _Unknown(NamedTuple):
    path: tuple[str | int, ...]
    value: Any


def read_strictly(text: bytes) -> Any:
    """Return a JSON text as values; `ValueError` where Python would take what JSON has not."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def take_out_unknown_keys(record: Any, *, is_named: bool) -> list[Problem]:
    """Take the keys out of a record, as values, that are not known; return a problem for each.

    Args:
        is_named: whether its node is one of specfile 1.
    """
    found = [*_taken(record, Record, ())]
    if isinstance(record, dict):
        shape = dict[str, NamedNode] if is_named else Node
        found += _taken(record.get("spec"), shape, ("spec",))
    return [_problem(each) for each in found]


def _taken(value: Any, shape: Any, path: tuple[str | int, ...]) -> Iterator[_Unknown]:
    for member in get_args(shape) if get_origin(shape) in (Union, UnionType) else (shape,):
        if isinstance(value, dict) and isinstance(member, type) and issubclass(member, Struct):
            known = _fields(member)
            for key in [*value]:
                if key in known:
                    below = _UNDECODED.get((member, key), known[key])
                    yield from _taken(value[key], below, (*path, key))
                else:
                    yield _Unknown((*path, key), value.pop(key))
        elif isinstance(value, dict) and get_origin(member) is dict:
            for key, each in value.items():
                yield from _taken(each, get_args(member)[1], (*path, key))
        elif isinstance(value, list) and get_origin(member) is tuple:
            for at, each in enumerate(value):
                yield from _taken(each, get_args(member)[0], (*path, at))


@cache
def _fields(record: type[Struct]) -> dict[str, Any]:
    return get_type_hints(record)


def _problem(unknown: _Unknown) -> Problem:
    where = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in unknown.path
    ).lstrip(".")
    declared = {"path": unknown.path, "value": unknown.value}
    return Problem(
        CODE,
        f"the key {short(where)} is not known, and kept here only",
        json.dumps(declared, sort_keys=True, ensure_ascii=False),
    )


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number
