"""An index's bytes → its records: Spack's database JSON of versions 5 to 8.

The first pass leaves each record undecoded, the second decodes them one by one, so that an index
of two hundred megabytes takes little more memory than its bytes. Keys of a record that are not
declared in `spack_json` are taken out of it, and each is a problem with its value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from math import isfinite
from mmap import mmap
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct

from spack_cache_db.records import Problem
from spack_cache_db.sources.indexes.spack_json import (
    Arch,
    EdgeParameters,
    Index,
    IndexFault,
    NamedSpecNode,
    NodeDependency,
    Record,
    SpecNode,
    name,
    read_node,
    require_hash,
    said,
    short,
)

CODE = "unknown_key"
"""The code of such a problem; `declared` has the key's place as `path`, and its `value`."""


_UNDECODED: dict[tuple[type[Struct], str], Any] = {
    (SpecNode, "arch"): Arch,
    (NamedSpecNode, "arch"): Arch,
    (NodeDependency, "parameters"): EdgeParameters,
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
        shape = dict[str, NamedSpecNode] if is_named else SpecNode
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


NAMED_NODES = "5"
"""The database version whose nodes are of specfile 1 (Spack 0.13 to 0.16 `database.py`)."""

VERSIONS = (NAMED_NODES, "6", "7", "8")
"""The database versions of Spack 0.13 to 1.1 that are read."""

_INDEX = msgspec.json.Decoder(Index)
_INSTALLS = msgspec.json.Decoder(dict[str, Raw])
_RECORD = msgspec.json.Decoder(Record)


class Entry(NamedTuple):
    """One record of an index, its node decoded; `problems` tell of keys that are not known.

    `rest` is what else is said of the binary, as values, where the record is a spec file.
    """

    record: Record
    node: SpecNode
    problems: tuple[Problem, ...] = ()
    rest: Mapping[str, Any] | None = None


class Installs:
    """The records of one index, each decoded when it is asked for, and not kept."""

    def __init__(self, data: bytes | mmap) -> None:
        """Read what an index says of itself; `IndexFault` if it is none that can be read."""
        try:
            database = _INDEX.decode(data).database
            if database.version not in VERSIONS:
                known = ", ".join(VERSIONS)
                raise IndexFault(f"database version {database.version}, expected one of {known}")
            self._texts = _INSTALLS.decode(database.installs)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise IndexFault(f"broken index: {said(error)}, expected Spack's index") from None
        self.database_version = database.version
        self._versions: dict[str, str] = {}
        self._require_distinct(database.installs)

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, dag_hash: object) -> bool:
        return dag_hash in self._texts

    def __iter__(self) -> Iterator[str]:
        """Yield the hash of each record, in the order of the index."""
        return iter(self._texts)

    def version(self, dag_hash: str) -> str:
        """Return the version of a spec; `KeyError` if it has no record."""
        found = self._versions.get(dag_hash)
        if found is None:
            found = self._versions[dag_hash] = self.entry(dag_hash).node.version
        return found

    def entry(self, dag_hash: str) -> Entry:
        """Return a record.

        Raises:
            IndexFault: it cannot be read; the text begins with the hash.
            KeyError: there is none.
        """
        text = self._texts[dag_hash]
        try:
            entry = self._decoded(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            try:
                entry = self.entry_without_unknown_keys(dag_hash)
            except (msgspec.DecodeError, ValueError, RecursionError):
                raise IndexFault(f"{name(dag_hash)}: {said(error)}") from None
        require_hash(dag_hash)
        if entry.node.hash != dag_hash:
            words = f"its spec has the hash {name(entry.node.hash)}"
            raise IndexFault(f"{dag_hash}: {words}, expected that of the record")
        return entry

    def said(self, dag_hash: str) -> dict[str, Any]:
        """Return a record as the index says it, as plain values."""
        said: dict[str, Any] = json.loads(bytes(self._texts[dag_hash]))
        return said

    def _decoded(self, text: Raw | bytes) -> Entry:
        record = _RECORD.decode(text)
        return Entry(record, read_node(record.spec, is_named=self.database_version == NAMED_NODES))

    def entry_without_unknown_keys(self, dag_hash: str) -> Entry:
        """Return a record that has keys which are not known, and tell of each.

        Raises:
            msgspec.DecodeError: it cannot be read without them either.
            ValueError: it is no JSON, or all its keys are known.
        """
        value = read_strictly(bytes(self._texts[dag_hash]))
        is_named = self.database_version == NAMED_NODES
        problems = take_out_unknown_keys(value, is_named=is_named)
        if not problems:
            raise ValueError("has no key that is not known")
        return self._decoded(msgspec.json.encode(value))._replace(problems=tuple(problems))

    def _require_distinct(self, installs: Raw) -> None:
        """Refuse an index that has two records for a hash: the decoder keeps the last of them."""
        length = memoryview(installs).nbytes
        held = sum(len(key) + memoryview(text).nbytes for key, text in self._texts.items())
        # Between records stand two quotes, a colon and a comma, with or without one blank each.
        count = len(self._texts)
        if length - held in (4 * count + 1, 6 * count, 2):
            return
        pairs = json.loads(bytes(installs), object_pairs_hook=_KeyPairs)
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise IndexFault(f"{name(key)}: has {times} records, expected one")


class _KeyPairs(list[tuple[str, Any]]):
    """A JSON object as its list of (key, value)."""
