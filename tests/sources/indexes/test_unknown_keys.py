"""sources.indexes.unknown_keys: a key that nobody knows is told and kept, at whatever depth."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build import Input, build, check
from spack_cache_db.build.pipeline import read
from spack_cache_db.sources.indexes.installs import take_out_unknown_keys
from spack_cache_db.sources.indexes.spack_json import read_strictly
from spack_cache_db.verify import verify
from tests.indexes import edge, hash_of, index, node, old_node, record

Way = tuple[str | int, ...]

TARGET = {
    "name": "zen3",
    "vendor": "AMD",
    "features": ["avx"],
    "generation": 0,
    "parents": ["zen2"],
}
NEWEST = record(
    node(
        "a",
        edge("b", "build", "link", virtuals=("c",), direct=True),
        arch={"platform": "linux", "platform_os": "debian12", "target": TARGET},
        patches=["a" * 64],
        build_spec={"name": "b", "hash": hash_of("b")},
        external={"path": "/usr", "module": None, "extra_attributes": {"compilers": {"c": "cc"}}},
        annotations={"original_specfile_version": 4, "compiler": "gcc@=12"},
    )
)
RECORDS = {
    "8": NEWEST,
    **{version: {"spec": old_node("a", version, "b"), "ref_count": 0} for version in "567"},
}
KEYS = st.sampled_from(
    ["odd", "", "a.b", "x[0]", "is not known", "`", "0", "ключ", "path", "hash", "name", "spec"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)


def objects(value: Any, way: Way = ()) -> Iterator[Way]:
    """Yield the way to each object within a value."""
    if isinstance(value, dict):
        yield way
        for key, each in value.items():
            yield from objects(each, (*way, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from objects(each, (*way, at))


def at(value: Any, way: Way) -> Any:
    """Return what lies there."""
    for step in way:
        value = value[step]
    return value


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a version of the database, and a record of it with keys that are nowhere known."""
    version = draw(st.sampled_from(sorted(RECORDS)))
    said = copy.deepcopy(RECORDS[version])
    places = st.sampled_from([*objects(RECORDS[version])])
    for way, key, value in draw(st.lists(st.tuples(places, KEYS, VALUES), min_size=1, max_size=4)):
        at(said, way).setdefault(key, value)
    return version, said


@pytest.mark.slow
@given(planted())
def test_no_key_is_dropped_in_silence(drawn: tuple[str, dict[str, Any]]) -> None:
    """Wherever it stands, the file gives it back, or the index is refused: it has no third way."""
    version, said = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index.json")
        installs = {hash_of("a"): said, hash_of("b"): record(node("b"))}
        if version != "8":
            installs[hash_of("b")] = {"spec": old_node("b", version), "ref_count": 0}
        path.write_text(json.dumps({"database": {"version": version, "installs": installs}}))
        if check(path)[0]:
            return
        build(path, Path(folder, "x.db"))
        found = verify(Path(folder, "x.db"), path)
        assert (found.records, found.differences) == (2, ())


@pytest.mark.parametrize("version", sorted(RECORDS))
def test_keys_are_known_at_every_depth(version: str) -> None:
    """A key in each object whose keys are known is told, with the way to it, and taken out."""
    said = copy.deepcopy(RECORDS[version])
    planted: list[dict[str, Any]] = []
    for way in objects(RECORDS[version]):
        if not {"parameters", "external", "arch"} & {*way} or way[-3:-1] == ("dependencies", 0):
            at(said, way)["odd"] = [1]
            planted.append({"path": [*way, "odd"], "value": [1]})
    if version == "5":  # There, names of packages are keys.
        planted = [each for each in planted if each["path"][-2:] != ["spec", "odd"]]
        planted = [each for each in planted if each["path"][-2:] != ["dependencies", "odd"]]

    found = take_out_unknown_keys(said, is_named=version == "5")

    told = [{"path": [*each.path], "value": each.value} for each in found]
    assert sorted(told, key=str) == sorted(planted, key=str)


@pytest.mark.parametrize(
    "text", [b'{"a": NaN}', b"[Infinity]", b"[-Infinity]", b"[1e999]", b"{", b'{"a":1,"a":1}']
)
def test_what_is_no_json_is_none(text: bytes) -> None:
    """Python would read numbers that JSON cannot write again."""
    with pytest.raises(ValueError, match=r".+"):
        read_strictly(text)


def test_damage_of_what_is_kept_is_named(tmp_path: Path) -> None:
    """A value that the file has otherwise than the index is a difference."""
    path = tmp_path / "index.json"
    path.write_bytes(index(record(node("a", odd=1))))
    build(path, tmp_path / "x.db")
    path.write_bytes(index(record(node("a", odd=2))))

    (found,) = verify(tmp_path / "x.db", path).differences

    assert str(found).endswith(': the unknown key ["spec", "odd"] is 2, the file has 1')


def test_a_key_of_many_records_is_told_once(tmp_path: Path) -> None:
    """With the number of records that have it, however many: each has its own value."""
    path = tmp_path / "index.json"
    names = [f"a{number}" for number in range(20)]
    path.write_bytes(index(*(record(node(name, odd=name), later=1) for name in names)))

    merged = read(Input([str(path)]))

    assert [each.message for each in merged.documents[0].problems] == [
        "the key later is not known and kept as it is: 20 records have it",
        "the key spec.odd is not known and kept as it is: 20 records have it",
    ]
    build(path, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", path).differences == ()
