"""Records of an index become columns, whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from spack_cache_db.build import build, check
from spack_cache_db.build.verification import verify
from spack_cache_db.errors import InputError
from spack_cache_db.sources import indexes
from tests.indexes import OTHERS, edge, hash_of, index, node, old_node, record, replaced, ways

TARGET = {
    "name": "zen3",
    "vendor": "AMD",
    "features": ["avx"],
    "generation": 0,
    "parents": ["zen"],
    "cpupart": "0x61",
}
FULL = record(
    node(
        "a",
        edge("gcc", "build", virtuals=("c",), direct=True),
        arch={"platform": "linux", "platform_os": "debian12", "target": TARGET},
        parameters={"x": True, "y": "z", "l": ["p"], "patches": ["a" * 64], "cflags": []},
        patches=["a" * 64],
        build_spec={"name": "gcc", "hash": hash_of("gcc")},
    ),
    path="/p",
    installed=True,
    explicit=True,
    installation_time=1.5,
    deprecated_for=None,
    origin="o",
)
OLD = old_node("b", "6") | {"build_hash": hash_of("built")}
OUTSIDE = node("gcc", external={"path": "/usr", "module": None, "extra_attributes": {"c": "cc"}})
INDEXES: dict[str, Any] = {
    "8": json.loads(index(FULL, record(OUTSIDE, is_binary=False))),
    **{
        version: json.loads(
            index(
                {"spec": old_node("a", version, "b"), "ref_count": 0},
                {"spec": old_node("b", version), "ref_count": 1},
                version=version,
            )
        )
        for version in "57"
    },
    "6": json.loads(index({"spec": old_node("a", "6", "b")}, {"spec": OLD}, version="6")),
}
OF_MIRRORS = {"Address", "Blob", "Manifest"}
STRUCTS = [
    each
    for name, each in vars(indexes).items()
    if isinstance(each, type) and issubclass(each, Struct) and name not in OF_MIRRORS
]
PLACES = [(version, way) for version, value in sorted(INDEXES.items()) for way in ways(value)]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda each: each.__name__)
def test_each_key_that_is_known_stands_in_these_indexes(struct: type[Struct]) -> None:
    """So that whoever lets an index say more sees here whether the file keeps it."""
    said = {step for _, way in PLACES for step in way}
    assert {*struct.__struct_fields__} <= said


@pytest.mark.parametrize("version", sorted(INDEXES))
def test_every_key_that_is_known_is_given_back(version: str, tmp_path: Path) -> None:
    """Each with its value: what the records declare is kept, or they would better not know it."""
    path = tmp_path / "index.json"
    path.write_text(json.dumps(INDEXES[version]))
    build(path, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", path).differences == ()


@pytest.mark.parametrize("key", ["", "é", "\ufeff" + "a" * 31, "a" * 33, "A" * 32, "\0" * 32])
def test_a_key_that_is_no_hash_is_told_beside_a_good_index(key: str, tmp_path: Path) -> None:
    """Nothing of the refused index is left among what the others say."""
    for name, text in (("bad", index(FULL, record(OUTSIDE))), ("good", index(record(OUTSIDE)))):
        (tmp_path / "in" / name).mkdir(parents=True)
        data = json.loads(text)
        if name == "bad":
            data["database"]["installs"][key] = record(node("b"))
        (tmp_path / "in" / name / "index.json").write_text(json.dumps(data))

    faults, problems = check(tmp_path / "in")
    report = build(tmp_path / "in", tmp_path / "x.db", keep_going=True)

    assert [each.path for each in faults] == [f"{tmp_path}/in/bad/index.json"]
    assert "is no hash, expected 32 characters of a-z and 2-7" in faults[0].message
    assert problems == ()
    assert (report.faults, report.indexes, report.records) == (faults, 1, 1)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.sampled_from(PLACES), st.sampled_from(OTHERS))
def test_another_type_in_any_place_is_told_or_kept(place: tuple[str, Any], other: Any) -> None:
    """An index is refused in words, with no traceback and no file, or given back as it is."""
    version, way = place
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder, "index.json"), Path(folder, "x.db")
        path.write_text(json.dumps(replaced(INDEXES[version], way, other)))
        try:
            build(path, output)
        except InputError as error:
            assert all(str(fault).isprintable() for fault in error.faults)
            assert all(fault.path == str(path) for fault in error.faults)
            assert not output.exists()
            return
        found = verify(output, path)
        assert (found.faults, found.differences) == ((), ())


FAULTS = {
    "an edge to no hash": (
        [record(node("a", {**edge("b", "link"), "hash": "B"}))],
        "B: is no hash, expected 32 characters of a-z and 2-7",
    ),
    "an edge to a long name": (
        [record(node("a", edge("b" * 201, "link")))],
        f"{hash_of('a')}: has a package of 201 characters, expected at most 200, expected a node"
        " of Spack's",
    ),
    "a wrong name": (
        [record(node("a", {**edge("b", "link"), "name": "c"})), record(node("b"))],
        f"{hash_of('b')}: is called c by what depends on it, its own name is b",
    ),
    "two names": (
        [
            record(node("a", edge("b", "link"))),
            record(node("c", {**edge("b", "link"), "name": "d"})),
            record(node("b")),
        ],
        f"{hash_of('c')}: {hash_of('b')} is called d here and b elsewhere, expected one name",
    ),
    "a long name": (
        [record(node("a" * 201))],
        f"{hash_of('a' * 201)}: has a package of 201 characters, expected at most 200",
    ),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_what_does_not_fit_together_is_named(tmp_path: Path, name: str) -> None:
    """By the hash of its record, and what was expected."""
    records, words = FAULTS[name]
    path = tmp_path / "index.json"
    path.write_bytes(index(*records))

    with pytest.raises(InputError) as error:
        build(path, tmp_path / "x.db")

    assert str(error.value).startswith(f"{path}: {words}")
    assert len(error.value.faults) == 1


@pytest.mark.parametrize("place", ["", "database", "spec"])
def test_a_message_repeats_little_of_the_file(place: str, tmp_path: Path) -> None:
    """A key of any length, known or not, leaves a message that a terminal can show."""
    key = "k" * 1_000_000
    data = json.loads(index(FULL, record(OUTSIDE)))
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
    assert "kkk...kkk" in told.message
