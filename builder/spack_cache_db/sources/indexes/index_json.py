"""Reads the databases that Spack writes as `index.json`.

    {"database": {"version": "8", "installs": {"<hash>": {"spec": {...}, ...}, ...}}}

An index may have 200 MB. So it is decoded only down to its records, which stay bytes,
and a record is decoded when it is needed. Most of its parts are known by then
(`known_parts`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw, Struct

from spack_cache_db.sources.indexes.entries import FORMAT_OF_1_0, Entry, read_entry
from spack_cache_db.sources.indexes.faults import IndexFault, decoding
from spack_cache_db.sources.indexes.known_parts import KnownParts, cut_record
from spack_cache_db.sources.texts import BROKEN, message_of, printable_name
from spack_cache_db.spack.nodes import require_hash

SPEC_FORMATS = {"5": 1, "6": 3, "7": 4, "8": FORMAT_OF_1_0}
"""The format of specs in each version of the database, from Spack 0.13 to 1.1.

Source: Spack 1.2 `database.py`, `reader`.
"""

VERSIONS = tuple(SPEC_FORMATS)
"""The versions of databases that are read."""


class Database(Struct):
    """The object under `database`; `installs` has a record for each hash.

    Spack reads only these two keys (Spack 1.2 `database.py`, `_read_from_file`).
    """

    version: str | int
    installs: dict[str, Raw]


class Index(Struct):
    """The content of an index, which may have more keys than are known."""

    database: Database


class ExactDatabase(Database, forbid_unknown_fields=True):
    """The object under `database` as Spack writes it today."""


class ExactIndex(Struct, forbid_unknown_fields=True):
    """The content of an index as Spack writes it today."""

    database: ExactDatabase


_INDEX = msgspec.json.Decoder(Index)
_EXACT_INDEX = msgspec.json.Decoder(ExactIndex)
_KEYS = msgspec.json.Decoder(dict[str, Raw])
_FRACTIONS_AS_TEXTS = msgspec.json.Decoder(float_hook=str)
"""Decodes `1.10` as the text "1.10", because the number is 1.1."""


class Installs(dict[str, Raw]):
    """The records of one index by hash; `entry` decodes one record.

    Attributes:
        format: the version of the database, one of `VERSIONS`.
        unknown: unknown keys of the index, beside those of its records.
    """

    def __init__(self, data: bytes) -> None:
        """Decode an index without its records; `IndexFault` if it cannot be read."""
        with decoding("index", ", expected Spack's index"):
            database, self.unknown = _database_of(data)
        version = str(database.version)
        if version not in VERSIONS:
            versions = ", ".join(VERSIONS)
            raise IndexFault(
                f"database version {version:.20}, expected one of {versions}"
            )
        super().__init__(database.installs)
        self.format = version
        self._spec_format = SPEC_FORMATS[version]
        self._known_parts = KnownParts()

    @cached_property
    def is_installed(self) -> bool:
        """Whether this is the index of an installation.

        Its records have `path` instead of `in_buildcache` (Spack `database.py`,
        `InstallRecord`). The first record with one of them decides.
        """
        for data in self.values():
            try:
                record = msgspec.json.decode(data)
            except BROKEN:
                continue  # Reading the record reports it.
            if not isinstance(record, dict):
                continue
            if "in_buildcache" in record:
                return False
            if "installed" in record and isinstance(record.get("path"), str):
                return True
        return False

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a hash.

        Raises:
            IndexFault: the record cannot be read, or is that of another hash.
            KeyError: there is no record.
        """
        try:
            entry = self._read(dag_hash)
            require_hash(dag_hash)
            if entry.node.hash != dag_hash:
                message = f"its spec has the hash {printable_name(entry.node.hash)}"
                raise ValueError(f"{message}, expected that of the record")
        except BROKEN as error:
            message = f"{printable_name(dag_hash)}: {message_of(error)}"
            raise IndexFault(message) from None
        return entry

    def _read(self, dag_hash: str) -> Entry:
        data = self[dag_hash]
        cut = cut_record(data)
        if cut is not None:
            entry = self._known_parts.entry(cut)
            if entry is not None:
                return entry
        entry = self._read_whole(data)
        if cut is not None:
            self._known_parts.add(cut, entry)
        return entry

    def _read_whole(self, data: Raw) -> Entry:
        try:
            return read_entry(msgspec.json.decode(data), self._spec_format)
        except ValueError:
            # The record is faulty, or has numbers in place of texts. Only then it is
            # read in a slower way, which raises the fault again.
            return self._entry_with_numbers(data)

    def _entry_with_numbers(self, data: Raw) -> Entry:
        """Return a record that has numbers where Spack writes texts.

        The digits stay as they are: the version 1.10 is not 1.1.
        """
        record = _FRACTIONS_AS_TEXTS.decode(data)
        numbers: set[str] = set()
        if isinstance(record, dict) and isinstance(record.get("spec"), dict):
            plain = msgspec.json.decode(data)["spec"]
            record["spec"] = _with_texts(record["spec"], plain, "spec", numbers)
        entry = read_entry(record, self._spec_format)
        return entry._replace(numbers=frozenset(numbers))


def _database_of(data: bytes) -> tuple[Database, frozenset[str]]:
    """Return the content of an index without its records, and its unknown keys."""
    # Decoded twice only if it has other keys than those of today.
    try:
        return _EXACT_INDEX.decode(data).database, frozenset()
    except msgspec.ValidationError:
        # If the bytes are not an index, this raises the error that says why.
        database = _INDEX.decode(data).database
    return database, _unknown_keys_of_index(data)


def _unknown_keys_of_index(data: bytes) -> frozenset[str]:
    """Return the unknown keys of an index, such as `odd` and `database.odd`."""
    index = _KEYS.decode(data)
    database = _KEYS.decode(index["database"])
    unknown = index.keys() - {"database"}
    for key in database.keys() - {"version", "installs"}:
        unknown.add(f"database.{key}")
    return frozenset(unknown)


def _with_texts(value: Any, plain: Any, path: str, numbers: set[str]) -> Any:
    """Return decoded JSON with texts in place of its numbers.

    Args:
        value: the JSON, whose fractions are texts already: `["1.10", 2]`.
        plain: the same JSON with numbers: `[1.1, 2]`.
        path: where it is in the record, such as `spec.version`.
        numbers: the paths of numbers, to which those of this JSON are added.
    """
    if isinstance(value, dict):
        texts = {}
        for key, inner in value.items():
            # Here, Spack itself writes numbers.
            if key == "annotations":
                texts[key] = inner
            else:
                texts[key] = _with_texts(inner, plain[key], f"{path}.{key}", numbers)
        return texts
    if isinstance(value, list):
        items = []
        for item, plain_item in zip(value, plain, strict=True):
            items.append(_with_texts(item, plain_item, f"{path}[]", numbers))
        return items
    # `True` is an int in Python.
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        numbers.add(path)
        return str(value)
    return value
