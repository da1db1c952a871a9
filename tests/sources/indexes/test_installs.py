"""Records of an index: all are read, keys that are not known are kept, what is broken is named."""

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
from spack_cache_db.build.verification import verify
from spack_cache_db.sources.indexes import IndexFault
from spack_cache_db.sources.indexes.index_reader import use_of
from spack_cache_db.sources.indexes.index_records import Installs, take_out_unknown_keys
from spack_cache_db.sources.strictness import read_strictly
from tests.indexes import edge, hash_of, index, node, old_node, real, record


def test_a_real_index_is_read_whole() -> None:
    """Each record of an index that Spack wrote is decoded, with no key left over."""
    installs = Installs(real())

    entries = [installs.entry(dag_hash) for dag_hash in installs]

    assert len(installs) == len(entries) == 905
    assert sum(len(entry.node.edges) for entry in entries) == 6115
    assert sum(bool(entry.record.in_buildcache) for entry in entries) == 883
    assert [entry.unknown for entry in entries if entry.unknown] == []


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_older_databases_say_the_same(version: str) -> None:
    """Nodes of older databases come as the newest have them: name, hash, edges with types."""
    records = [{"spec": old_node("hdf5", version, "zlib"), "ref_count": 0}]
    records += [{"spec": old_node("zlib", version), "ref_count": 1}]

    installs = Installs(index(*records, version=version))
    found = installs.entry(hash_of("hdf5")).node

    assert (found.name, found.version) == ("hdf5", "1.0")
    (to,) = found.edges
    how = use_of(to.type if version in "56" else bytes(to.parameters))  # type: ignore[arg-type]
    assert (to.name, to.hash, how.types) == ("zlib", hash_of("zlib"), ("link",))


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


def _changed(change: Any) -> bytes:
    value = json.loads(index(record(node("zlib"))))
    change(value["database"]["installs"])
    return json.dumps(value).encode()


ODD = {
    "another hash": lambda all_: all_[hash_of("zlib")]["spec"].update(hash=hash_of("other")),
    "no version": lambda all_: all_[hash_of("zlib")]["spec"].pop("version"),
    "a version that is a number": lambda all_: all_[hash_of("zlib")]["spec"].update(version=1),
    "a node that is a list": lambda all_: all_[hash_of("zlib")].update(spec=[]),
    "no node": lambda all_: all_[hash_of("zlib")].pop("spec"),
}


@pytest.mark.parametrize("name", sorted(ODD))
def test_a_record_that_is_none_is_named(name: str) -> None:
    """A record that cannot be read is refused, and the fault begins with its hash."""
    installs = Installs(_changed(ODD[name]))

    with pytest.raises(IndexFault, match=hash_of("zlib")):
        installs.entry(hash_of("zlib"))


def test_a_hash_that_is_none_is_named() -> None:
    """Keys are Spack's hashes, 32 characters of base32."""
    spec = node("zlib", hash="not a hash")

    with pytest.raises(IndexFault, match="is no hash"):
        Installs(index(record(spec))).entry("not a hash")


@pytest.mark.parametrize("blank", ["", " "])
def test_a_hash_that_stands_twice_is_named(blank: str) -> None:
    """A decoder would keep the last of two records in silence."""
    text = json.dumps(record(node("zlib")), separators=("," + blank, ":" + blank))
    both = f'"{hash_of("zlib")}":{blank}{text},{blank}"{hash_of("zlib")}":{blank}{text}'

    with pytest.raises(IndexFault, match="has 2 records"):
        Installs(f'{{"database": {{"version": "8", "installs": {{{both}}}}}}}'.encode())


def test_odd_spacing_is_no_fault() -> None:
    """An index that somebody indented is read like any other."""
    value = json.loads(index(record(node("a", edge("b", "link"))), record(node("b"))))

    assert len(Installs(json.dumps(value, indent=3).encode())) == 2


def test_keys_that_are_not_known_are_told() -> None:
    """Wherever a key is not known, the record is kept, with the key's value beside it."""
    spec = node("a", edge("b", "link", when="@2:"), odd={"x": [1]})
    installs = Installs(index(record(spec, extra=None), record(node("b"))))

    entry = installs.entry(hash_of("a"))

    assert entry.node.name == "a"
    assert {each.place(): each.value for each in entry.unknown} == {
        "extra": None,
        "spec.odd": {"x": [1]},
        "spec.dependencies[].parameters.when": "@2:",
    }


WHOLE = index(record(node("a", edge("b", "link")), ref_count=0), record(node("b"))).decode()
TWICE = {
    "database": ('{"database"', '{"database":{"version":"8","installs":{}},"database"'),
    "version": ('"version":"8"', '"version":"7","version":"8"'),
    "installs": ('"installs":', '"installs":{},"installs":'),
    "ref_count": ('"ref_count"', '"ref_count":1,"ref_count"'),
    "name": ('"name":"a"', '"name":"c","name":"a"'),
    "a hash": (f'"installs":{{"{hash_of("b")}"', f'"installs":{{"{hash_of("b")}"'),
    "platform": ('"platform":', '"platform":"x","platform":'),
    "deptypes": ('"deptypes":', '"deptypes":[],"deptypes":'),
    "parameters": ('"parameters":{', '"parameters":{"x":"y","x":"z",'),
    "external": ('"namespace":', '"external":{"path":"/a","path":"/b"},"namespace":'),
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("key", sorted(TWICE))
def test_keys_that_stand_twice(key: str, indent: int | None, tmp_path: Path) -> None:
    """A decoder would keep the last in silence: the index is refused, and the key is named."""
    text = json.dumps(json.loads(WHOLE), separators=(",", ":"))
    before, after = TWICE[key]
    if key == "a hash":
        first = text.index(f'"{hash_of("b")}":{{"spec"')
        text = text[:first] + f'"{hash_of("b")}":{{"spec":{{}}}},' + text[first:]
    else:
        assert before in text
        text = text.replace(before, after, 1)
    if indent:
        text = text.replace(",", ",\n ").replace(":{", ": {\n")
    (tmp_path / "index.json").write_text(text)

    faults, _ = check(tmp_path / "index.json")

    words = f"{hash_of('b')}: has 2 records" if key == "a hash" else "stands twice"
    if key == "parameters":
        words = "the key x stands twice"
    if key == "external":
        words = "the key path stands twice"
    assert [words in str(each) for each in faults] == [True]
    assert key in ("a hash", "parameters", "external") or key in str(faults[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WHOLE.replace('"1.0"', '"\xed\xa0\x80"', 1).encode("latin-1"), "not UTF-8: byte 0xed"),
        (json.dumps(json.loads(WHOLE), indent=1).encode() + b"\xff", "not UTF-8: byte 0xff"),
        (WHOLE.replace('"1.0"', '"\\ud800"', 1).encode(), "malformed: unexpected end of hex"),
        (WHOLE.replace('"1.0"', '"\\u0000"', 1).encode(), "with the character '\\x00'"),
        (WHOLE.replace('"ref_count": 0', '"ref_count": ' + "1" * 5000, 1).encode(), "ref_count"),
        (WHOLE.replace('"ref_count": 0', '"ref_count": 2147483646', 1).encode(), "<= 1048575"),
        (WHOLE.encode().replace(b"{", b"{\0", 1), "a NUL byte"),
    ],
)
def test_what_no_file_could_hold(text: bytes, words: str, tmp_path: Path) -> None:
    """Refused by name before anything is made of it, on one line."""
    (tmp_path / "index.json").write_bytes(text)

    faults, _ = check(tmp_path / "index.json")

    assert faults
    assert all(words in str(each) and str(each).isprintable() for each in faults), faults


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


def test_a_key_of_many_records_is_told_once(tmp_path: Path) -> None:
    """With the number of records that have it, however many: each has its own value."""
    path = tmp_path / "index.json"
    names = [f"a{number}" for number in range(20)]
    path.write_bytes(index(*(record(node(name, odd=name), later=1) for name in names)))

    merged, _ = read(Input([str(path)]))

    assert [each.message for each in merged.documents[0].problems] == [
        "the key later is not known and kept as it is: 20 records have it",
        "the key spec.odd is not known and kept as it is: 20 records have it",
    ]
    build(path, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", path).differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,", ":\n")])
def test_a_record_that_stands_twice_is_found_whatever_its_size(
    separators: tuple[str, str], tmp_path: Path
) -> None:
    """However many records there are, and however many bytes the one that would be lost has."""
    records = {hash_of(f"a{at}"): record(node(f"a{at}")) for at in range(40)}
    text = json.dumps({"database": {"version": "8", "installs": records}}, separators=separators)
    key = json.dumps(hash_of("a7"))
    for size in range(2, 130):
        lost = json.dumps("x" * size)
        (tmp_path / "index.json").write_text(text.replace(key, f"{key}:{lost},{key}", 1))

        ((fault,), _) = check(tmp_path / "index.json")

        assert "stands twice" in fault.message or "has 2 records" in fault.message
