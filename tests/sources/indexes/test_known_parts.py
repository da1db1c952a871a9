"""sources.indexes.known_parts: an index has the same columns, whether parts of its
records are known or each record is decoded whole.
"""

import json
from typing import Any

import pytest

from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.indexes import index_json, known_parts
from spack_cache_db.sources.indexes.entries import Entry, read_entry
from spack_cache_db.sources.readers import read_files
from spack_cache_db.sources.writer import Columns
from tests.indexes import (
    OTHERS,
    KeyPath,
    edge,
    hash_of,
    index,
    key_paths,
    node,
    old_node,
    real,
    record,
    replaced,
)

PATCHES = ["a" * 64]


def full_record(name: str) -> dict[str, Any]:
    """Return a record with every key that records of a mirror usually have."""
    compiler = edge("gcc", "build", virtuals=("c", "cxx"), direct=True)
    spec = node(name, compiler, edge("zlib", "build", "link"), patches=PATCHES)
    spec["parameters"] |= {"shared": True, "build_type": "Release", "patches": PATCHES}
    spec["arch"]["target"] = {"name": "zen4", "vendor": "AMD", "features": ["avx512f"]}
    return record(spec)


def columns_of(data: bytes) -> Columns:
    """Return the columns of an index, or its faults."""
    return read_files([RawFile("index.json", "index.json", data)])


def whole_columns_of(data: bytes) -> Columns:
    """Return the columns of an index whose records are all decoded whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_json, "cut_record", lambda _: None)
        return columns_of(data)


@pytest.mark.parametrize("most_parts", [2**14, 3])
def test_a_real_index(most_parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 905 records, also if parts are forgotten again."""
    monkeypatch.setattr(known_parts, "MOST_PARTS", most_parts)

    columns = columns_of(real())

    assert not columns.faults
    assert columns == whole_columns_of(real())


@pytest.mark.parametrize("path", list(key_paths(full_record("a"))), ids=str)
def test_a_record_with_one_other_value(path: KeyPath) -> None:
    """Any other value in a later record has the same effect, or the same fault."""
    for other in OTHERS:
        changed = replaced(full_record("b"), path, other)
        # A record below its own hash, whatever the hash in the record is.
        data = _index({hash_of("a"): full_record("a"), hash_of("b"): changed})
        assert columns_of(data) == whole_columns_of(data)


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
    """It is counted in each record that has it."""
    installs = {}
    for name in ("a", "b"):
        changed = full_record(name)
        *above, key = path
        part: Any = changed
        for key_above in above:
            part = part[key_above]
        part[key] = 1
        installs[hash_of(name)] = changed

    columns = columns_of(_index(installs))

    messages = [problem.message for problem in columns.documents[0].problems]
    assert any("2 records have it" in message for message in messages)
    assert columns == whole_columns_of(_index(installs))


def test_a_compiler_that_is_another_spec() -> None:
    """Two records differ only in the hash of their compiler: each has its version."""
    records = []
    for name, version in (("a", "10.0"), ("b", "11.0")):
        compiler = node("gcc", version=version, hash=hash_of(f"gcc {version}"))
        using = full_record(name)
        using["spec"]["dependencies"][0]["hash"] = compiler["hash"]
        records += [using, record(compiler)]
    data = index(*records)

    columns = columns_of(data)

    compilers = {made.compiler for made in columns.things["configurations"]}
    assert {"gcc@10.0", "gcc@11.0"} <= compilers
    assert columns == whole_columns_of(data)


def test_specs_of_older_versions_of_spack() -> None:
    """They name their compilers, in an object or in their annotations."""
    of_7 = []
    of_8 = []
    for name, version in (("a", "12.2.0"), ("b", "12.2.0"), ("c", "13.1.0")):
        spec = old_node(name, "7", "zlib")
        spec["compiler"] = {"name": "gcc", "version": version}
        of_7.append(record(spec))
        annotations = {"original_specfile_version": 4, "compiler": f"gcc@{version}"}
        of_8.append(record(node(name, annotations=annotations)))

    for data in (index(*of_7, version="7"), index(*of_8)):
        columns = columns_of(data)
        compilers = [made.compiler for made in columns.things["configurations"]]
        assert compilers[:3] == ["gcc@12.2.0", "gcc@12.2.0", "gcc@13.1.0"]
        assert all(facts.is_before_1_0 for facts in columns.things["nodes"])
        assert columns == whole_columns_of(data)


def test_known_parts_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two records that differ in names, versions and hashes, only the first one is
    decoded whole.
    """
    second = full_record("b")
    second["spec"]["version"] = "2.0"
    second["ref_count"] = 7
    second["spec"]["dependencies"].reverse()
    names = []

    def noted(data: Any, spec_format: int) -> Entry:
        names.append(data["spec"]["name"])
        return read_entry(data, spec_format)

    monkeypatch.setattr(index_json, "read_entry", noted)
    columns = columns_of(index(full_record("a"), second))

    assert names == ["a"]
    assert columns.things["hashes"][:2] == [hash_of("a"), hash_of("b")]


def _index(installs: dict[str, Any]) -> bytes:
    return json.dumps({"database": {"version": "8", "installs": installs}}).encode()
