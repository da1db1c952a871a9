"""sources.indexes.known_parts: a record that is put together from parts is the record
that is decoded whole.
"""

import json
from typing import Any

import pytest

from spack_cache_db.sources.indexes import index_json
from spack_cache_db.sources.indexes.entries import Entry
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.sources.texts import as_json
from tests.indexes import (
    OTHERS,
    KeyPath,
    edge,
    hash_of,
    index,
    key_paths,
    node,
    real,
    record,
    replaced,
)

PATCHES = ["a" * 64]
OTHER_VALUES = [value for value in OTHERS if value != "\ud800"]
"""Without the one with which no index can be read."""


def full_record(name: str) -> dict[str, Any]:
    """Return a record with every key that records of a mirror usually have."""
    compiler = edge("gcc", "build", virtuals=("c", "cxx"), direct=True)
    spec = node(name, compiler, edge("zlib", "build", "link"), patches=PATCHES)
    spec["parameters"] |= {"shared": True, "build_type": "Release", "patches": PATCHES}
    spec["compiler"] = {"name": "gcc", "version": "13.2.0"}
    spec["arch"]["target"] = {"name": "zen4", "vendor": "AMD", "features": ["avx512f"]}
    return record(spec)


def read(data: bytes, dag_hash: str, *others: str) -> Entry | str:
    """Return a record that is read after others, or the message of its fault.

    Parameters that are known as JSON are compared, and left out of the record.
    """
    try:
        records = Installs(data)
        for other in others:
            records.entry(other)
        entry = records.entry(dag_hash)
    except IndexFault as fault:
        return fault.message
    if entry.parameters is not None:
        assert entry.parameters == as_json(entry.node.parameters)
    return entry._replace(parameters=None)


def test_records_of_a_real_index() -> None:
    """Each record is the same, whether others were read before it or not."""
    records = Installs(real())
    decoded = json.loads(real())["database"]["installs"]

    for dag_hash in records:
        records.entry(dag_hash)
    for dag_hash in records:
        alone = index(decoded[dag_hash])
        entry = records.entry(dag_hash)
        assert entry._replace(parameters=None) == read(alone, dag_hash)


@pytest.mark.parametrize("path", list(key_paths(full_record("a"))), ids=str)
def test_a_record_with_one_other_value(path: KeyPath) -> None:
    """Any other value in it has the same effect or the same fault as in a record that
    is read alone.
    """
    first = full_record("a")
    for other in OTHER_VALUES:
        changed = replaced(full_record("b"), path, other)
        # A record below its own hash, whatever the hash in the record is.
        of_hash = {hash_of("a"): first, hash_of("b"): changed}
        alone = {hash_of("b"): changed}

        after_first = read(_index(of_hash), hash_of("b"), hash_of("a"))

        assert after_first == read(_index(alone), hash_of("b"))


@pytest.mark.parametrize(
    "path",
    [
        ("odd",),
        ("spec", "odd"),
        ("spec", "arch", "odd"),
        ("spec", "dependencies", 0, "odd"),
        ("spec", "dependencies", 0, "parameters", "odd"),
    ],
    ids=str,
)
def test_a_key_that_is_not_known(path: KeyPath) -> None:
    """It is found in each record that has it."""
    installs = {}
    for name in ("a", "b"):
        changed = full_record(name)
        *above, key = path
        part: Any = changed
        for key_above in above:
            part = part[key_above]
        part[key] = 1
        installs[hash_of(name)] = changed

    entry = read(_index(installs), hash_of("b"), hash_of("a"))

    assert isinstance(entry, Entry)
    assert len(entry.unknown) == 1


def test_known_parts_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two records that differ in names, versions and hashes, only the first one is
    decoded whole.
    """
    second = full_record("b")
    second["spec"]["version"] = "2.0"
    second["ref_count"] = 7
    second["spec"]["dependencies"].reverse()
    records = Installs(index(full_record("a"), second))
    records.entry(hash_of("a"))

    def read_entry(*_: object) -> Entry:
        raise AssertionError("a record is decoded whole")

    monkeypatch.setattr(index_json, "read_entry", read_entry)
    entry = records.entry(hash_of("b"))

    assert entry.node.version == "2.0"
    assert [dependency.name for dependency in entry.node.edges] == ["zlib", "gcc"]


def _index(installs: dict[str, Any]) -> bytes:
    return json.dumps({"database": {"version": "8", "installs": installs}}).encode()
