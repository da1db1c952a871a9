"""Records of an index become columns, whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build, check
from spack_cache_db.errors import InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.indexes import IndexFault, Installs
from spack_cache_db.sources.readers import read_files
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant
from tests.indexes import (
    OTHERS,
    edge,
    hash_of,
    index,
    node,
    old_node,
    real,
    record,
    replaced,
    ways,
)
from tests.paths import DATA

FULL = record(
    node(
        "a",
        edge("gcc", "build", virtuals=("c",), direct=True),
        parameters={"x": True, "y": "z", "l": ["p"], "patches": ["a" * 64], "cflags": []},
        build_spec={"name": "gcc", "hash": hash_of("gcc")},
    ),
    path="/p",
    installed=True,
    explicit=True,
    installation_time=1.5,
    deprecated_for=None,
    origin="o",
)
OUTSIDE = node("gcc", external={"path": "/usr", "module": None, "extra_attributes": {"c": "cc"}})
WHOLE = json.loads(index(FULL, record(OUTSIDE, is_binary=False)))


def test_words_are_those_that_spack_prints() -> None:
    """For each of 905 real records, configuration for configuration, as Spack 1.1 prints it."""
    found = read_files([RawFile("index.json", "index.json", real())])
    hashes, things = found.things["hashes"], found.things["configurations"]
    tables = {name: found.tables[name] for name in ("listings", "unlisted")}
    configurations = {
        hashes[spec - 1]: things[configuration - 1]
        for table in tables.values()
        for spec, configuration in zip(table["spec"], table["configuration"], strict=True)
    }
    printed = json.loads((DATA / "satisfies.json").read_text())
    assert configurations == {
        dag_hash: Configuration(
            package,
            version,
            normal_compiler(compiler),
            os,
            platform,
            target,
            tuple(sorted(map(normal_variant, printed["variants"][variants]))),
        )
        for dag_hash, package, version, compiler, os, platform, target, variants in printed["specs"]
    }
    assert {name: len(table["spec"]) for name, table in tables.items()} == {
        "listings": 883,
        "unlisted": 22,
    }
    assert len(found.tables["edges"]["spec"]) == 6115
    assert (found.faults, found.documents[0].problems) == ([], ())


BROKEN = {
    "cut": (real()[:100_000], "truncated"),
    "cut at the end": (real()[:-1], "truncated"),
    "no object": (b"[" * 1_000_000, "Expected `object`"),
    "nested": (b'{"database":{"version":"8","installs":' + b"[" * 1_000_000, "broken index"),
    "another version": (index(version="4"), "database version 4, expected one of 5, 6, 7, 8"),
    "a number for a version": (b'{"database":{"version":8,"installs":{}}}', "Expected `str`"),
    "other keys": (b'{"database":{"version":"8","installs":{}},"more":1}', "unknown field"),
    "not UTF-8": (b"\xff\xfe", "broken index"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_is_no_index_is_named(name: str) -> None:
    """An index that is cut, nested, of another version or no index at all is refused in words."""
    data, words = BROKEN[name]
    with pytest.raises(IndexFault, match=words):
        Installs(data)


FAULTS: dict[str, tuple[Any, str]] = {
    "another hash": ([{**record(node("a")), "spec": node("b")}], "its spec has the hash"),
    "no node": ([{"spec": {"name": "a", "hash": hash_of("a")}}], "spec.arch is not an object"),
    "a word for a flag": ([record(node("a"), installed="yes")], "has installed 'yes', expected"),
    "a prefix that is a list": ([record(node("a"), installed=True, path=[])], "has path []"),
    "no namespace": ([record(node("a", namespace=None))], "has the namespace ''"),
    "a name that is an option": ([record(node("a", version="--help"))], "has the version"),
    "text that turns": ([record(node("a", parameters={"x": "a\u202eb"}))], "the character"),
    "an edge to no hash": (
        [record(node("a", {**edge("b", "link"), "hash": "B"}))],
        "'B' is not a hash, expected 32 characters of a-z and 2-7",
    ),
    "an edge to a long name": (
        [record(node("a", edge("b" * 201, "link")))],
        "has a package of 201 characters, expected at most 200",
    ),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_record_that_cannot_be_kept_is_named(tmp_path: Path, name: str) -> None:
    """By its hash, beside the other records of the index, and nothing is written."""
    (bad,), words = FAULTS[name]
    installs = {hash_of("a"): bad, hash_of("c"): record(node("c"))}
    path = tmp_path / "index.json"
    path.write_text(json.dumps({"database": {"version": "8", "installs": installs}}))

    with pytest.raises(InputError) as error:
        build(path, tmp_path / "x.db")

    (fault,) = error.value.faults
    assert str(fault).startswith(f"{path}: {hash_of('a')}: ")
    assert words in str(fault)
    assert not (tmp_path / "x.db").exists()


OLD = {
    version: json.loads(
        index(
            {"spec": old_node("a", version, "b"), "ref_count": 0},
            {"spec": old_node("b", version), "ref_count": 1},
            version=version,
        )
    )
    for version in "567"
}
PLACES = [(value, way) for value in (WHOLE, *OLD.values()) for way in ways(value)]


@pytest.mark.slow
@settings(max_examples=150)
@given(st.sampled_from(PLACES), st.sampled_from(OTHERS))
def test_another_type_in_any_place_is_told_or_kept(place: tuple[Any, Any], other: Any) -> None:
    """An index is refused in words, with no traceback and no file, or its database is a source."""
    value, way = place
    with tempfile.TemporaryDirectory() as folder:
        path, output, again = (Path(folder, name) for name in ("index.json", "x.db", "y.db"))
        path.write_text(json.dumps(replaced(value, way, other)))
        try:
            build(path, output)
        except InputError as error:
            assert all(str(fault).isprintable() for fault in error.faults)
            assert all(fault.path == str(path) for fault in error.faults)
            assert "please report it" not in str(error)
            assert not output.exists()
            return
        build(output, again)
        assert again.read_bytes() == output.read_bytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'"\xed\xa0\x80"', "not UTF-8: byte 0xed"),
        (b'"\\ud800"', "malformed: unexpected end of hex"),
        (b'"\\u0000"', "with the character '\\x00'"),
        (b"\0", "a NUL byte"),
        (b"NaN", "malformed"),
    ],
)
def test_what_no_file_could_hold(text: bytes, words: str, tmp_path: Path) -> None:
    """Refused by name before anything is made of it, on one line."""
    (tmp_path / "index.json").write_bytes(json.dumps(WHOLE).encode().replace(b'"1.0"', text, 1))

    faults, _ = check(tmp_path / "index.json")

    assert faults
    assert all(words in str(each) and str(each).isprintable() for each in faults), faults


@pytest.mark.parametrize("place", ["", "database", "spec"])
def test_a_message_repeats_little_of_the_file(place: str, tmp_path: Path) -> None:
    """A key of any length, known or not, leaves a message that a terminal can show."""
    key = "k" * 1_000_000
    data = json.loads(json.dumps(WHOLE))
    values = {
        "": data,
        "database": data["database"],
        "spec": data["database"]["installs"][hash_of("gcc")]["spec"],
    }
    values[place][key] = 1
    (tmp_path / "index.json").write_text(json.dumps(data))

    faults, problems = check(tmp_path)

    (told,) = (*faults, *problems)
    assert len(told.message) < 500
    assert "kkk..." in told.message


def test_a_key_of_many_records_is_told_once(tmp_path: Path) -> None:
    """With the number of records that have it; the rest of them is kept."""
    path = tmp_path / "index.json"
    names = [f"a{number}" for number in range(20)]
    path.write_bytes(index(*(record(node(name, odd=name), later=1) for name in names)))

    faults, problems = check(path)

    assert faults == ()
    assert [each.message for each in problems] == [
        "the key later is not known and left out: 20 records have it",
        "the key spec.odd is not known and left out: 20 records have it",
    ]
    assert build(path, tmp_path / "x.db").listings == 20
