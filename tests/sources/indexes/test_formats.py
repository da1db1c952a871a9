"""sources.indexes: every form of an index, a spec file, an address and compressed
data.
"""

import gzip
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build, check
from spack_cache_db.errors import InputError, LineFault
from spack_cache_db.model import Configuration
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.indexes.addresses import read_address
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.sources.indexes.manifests import decompressed, without_signature
from spack_cache_db.sources.indexes.spec_files import NODE_LIMIT, read_spec_file
from spack_cache_db.sources.readers import read_files
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant
from tests.examples import examples
from tests.indexes import (
    MIRRORS,
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
    signed,
)
from tests.paths import DATA

FULL = record(
    node(
        "a",
        edge("gcc", "build", virtuals=("c",), direct=True),
        parameters={
            "x": True,
            "y": "z",
            "l": ["p"],
            "patches": ["a" * 64],
            "cflags": [],
        },
        build_spec={"name": "gcc", "hash": hash_of("gcc")},
    ),
    path="/p",
    installed=True,
    explicit=True,
    installation_time=1.5,
    deprecated_for=None,
    origin="o",
)
OUTSIDE = node(
    "gcc", external={"path": "/usr", "module": None, "extra_attributes": {"c": "cc"}}
)
WHOLE = json.loads(index(FULL, record(OUTSIDE, is_binary=False)))


def test_words_are_those_that_spack_prints() -> None:
    """For each of 905 real records, configuration for configuration, as Spack 1.1
    prints it.
    """
    columns = read_files([RawFile("index.json", "index.json", real())])
    hashes = columns.things["hashes"]
    configurations = columns.things["configurations"]
    read_configurations = {}
    for table in (columns.tables["listings"], columns.tables["unlisted"]):
        for spec, configuration in zip(
            table["spec"], table["configuration"], strict=True
        ):
            # Numbers begin with 1.
            dag_hash = hashes[spec - 1]
            read_configurations[dag_hash] = configurations[configuration - 1]

    printed = json.loads((DATA / "satisfies.json").read_text())
    expected = {}
    for dag_hash, package, version, compiler, *words, number in printed["specs"]:
        variants = tuple(sorted(map(normal_variant, printed["variants"][number])))
        values = [package, version, normal_compiler(compiler), *words, variants]
        expected[dag_hash] = Configuration._make(values)
    assert read_configurations == expected

    assert len(columns.tables["listings"]["spec"]) == 883
    assert len(columns.tables["unlisted"]["spec"]) == 22
    assert len(columns.tables["edges"]["use"]) == 6115
    assert columns.faults == []
    assert columns.documents[0].problems == ()


BROKEN_INDEXES = {
    "cut": (real()[:100_000], "truncated"),
    "no object": (b"[" * 1_000_000, "Expected `object`"),
    "nested": (
        b'{"database":{"version":"8","installs":' + b"[" * 1_000_000,
        "broken index",
    ),
    "another version": (
        index(version="4"),
        "database version 4, expected one of 5, 6, 7, 8",
    ),
    "a list for a version": (
        b'{"database":{"version":[],"installs":{}}}',
        "Expected `int",
    ),
    "no records": (b'{"database":{"version":"8"},"more":1}', "missing required field"),
    "not UTF-8": (b"\xff\xfe", "broken index"),
}


@pytest.mark.parametrize("name", sorted(BROKEN_INDEXES))
def test_what_is_no_index_is_named(name: str) -> None:
    """An index that is cut, nested, of another version or no index at all is refused in
    words.
    """
    data, words = BROKEN_INDEXES[name]
    with pytest.raises(IndexFault, match=words):
        Installs(data)


def problems_of(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    """Return the codes and messages of the problems in the database of an index."""
    path = tmp_path / "index.json"
    path.write_text(text)
    build(path, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        return conn.execute("SELECT code, message FROM problems ORDER BY id").fetchall()


def test_keys_beside_the_records_are_noted(tmp_path: Path) -> None:
    """A newer Spack may write more keys: the index is read, and each key is one
    problem.
    """
    data = json.loads(index(record(node("a"))))
    data["repository"] = {"x": 1}
    data["database"]["later"] = [1]

    assert problems_of(tmp_path, json.dumps(data)) == [
        (
            "unknown_key",
            "the key database.later of the index is not known and left out",
        ),
        ("unknown_key", "the key repository of the index is not known and left out"),
    ]


STORED = {
    "version": "SELECT version FROM builds WHERE package = 'a'",
    "namespace": "SELECT namespace FROM nodes WHERE namespace <> 'builtin'",
}
"""The query for the stored value of each key."""


@pytest.mark.parametrize(
    ("key", "number"),
    [("version", "1.10"), ("version", "3"), ("version", "2024"), ("namespace", "7")],
)
def test_numbers_are_read_as_texts(tmp_path: Path, key: str, number: str) -> None:
    """A number where Spack writes a text is one problem, and keeps its digits."""
    text = index(record(node("a", **{key: "NUMBER"})), record(node("b"))).decode()
    text = text.replace('"NUMBER"', number).replace('"version": "8"', '"version": 8')
    message = f"the key spec.{key} is a number and read as a text: 1 record has it"

    assert problems_of(tmp_path, text) == [("number_for_text", message)]
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        assert conn.execute(STORED[key]).fetchall() == [(number,)]


def test_a_number_in_a_variant_is_read_as_a_text(tmp_path: Path) -> None:
    """Variants such as cxxstd=17 may be written as numbers."""
    whole = index(record(node("a", parameters={"cxxstd": 17, "shared": True}))).decode()

    assert problems_of(tmp_path, whole) == [
        (
            "number_for_text",
            "the key spec.parameters.cxxstd is a number and read as a text: 1 record has it",
        )
    ]


FAULTS: dict[str, tuple[Any, str]] = {
    "another hash": (
        {**record(node("a")), "spec": node("b")},
        "its spec has the hash",
    ),
    "no node": (
        {"spec": {"name": "a", "hash": hash_of("a")}},
        "spec.arch is not an object",
    ),
    "a word for a flag": (
        record(node("a"), installed="yes"),
        "has installed 'yes', expected",
    ),
    "a prefix that is a list": (
        record(node("a"), installed=True, path=[]),
        "has path []",
    ),
    "no namespace": (record(node("a", namespace=None)), "has the namespace ''"),
    "a name that is an option": (
        record(node("a", version="--help")),
        "has the version",
    ),
    "text that turns": (
        record(node("a", parameters={"x": "a\u202eb"})),
        "the character",
    ),
    "an edge to no hash": (
        record(node("a", {**edge("b", "link"), "hash": "B"})),
        "'B' is not a hash, expected 32 characters of a-z and 2-7",
    ),
    "an edge to a long name": (
        record(node("a", edge("b" * 201, "link"))),
        "has a package of 201 characters, expected at most 200",
    ),
}
"""A record, and words of its fault."""


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_record_that_cannot_be_kept_is_named(tmp_path: Path, name: str) -> None:
    """By its hash, beside the other records of the index, and nothing is written."""
    broken_record, words = FAULTS[name]
    installs = {hash_of("a"): broken_record, hash_of("c"): record(node("c"))}
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
    (tmp_path / "index.json").write_bytes(
        json.dumps(WHOLE).encode().replace(b'"1.0"', text, 1)
    )

    faults, _ = check(tmp_path / "index.json")

    assert faults
    for fault in faults:
        assert words in str(fault)
        assert str(fault).isprintable()


@pytest.mark.parametrize(
    "path", [(), ("database",), ("database", "installs", hash_of("gcc"), "spec")]
)
def test_a_message_repeats_little_of_the_file(path: KeyPath, tmp_path: Path) -> None:
    """A key of any length, known or not, leaves a message that a terminal can show."""
    data = json.loads(json.dumps(WHOLE))
    changed = data
    for key in path:
        changed = changed[key]
    changed["k" * 1_000_000] = 1
    (tmp_path / "index.json").write_text(json.dumps(data))

    faults, problems = check(tmp_path)

    (only,) = [*faults, *problems]
    assert len(only.message) < 500
    assert "kkk..." in only.message


FILES: dict[str, dict[str, Any]] = {
    "specfile 5": {
        "spec": {
            "_meta": {"version": 5},
            "nodes": [node("a", edge("b", "link")), node("b")],
        },
        "buildcache_layout_version": 2,
        "binary_cache_checksum": {"hash_algorithm": "sha256", "hash": "ab"},
    },
    "specfile 2": {
        "spec": {
            "_meta": {"version": 2},
            "nodes": [old_node("a", "6", "b"), old_node("b", "6")],
        }
    },
    "specfile 1": {
        "spec": [old_node("a", "5", "b"), old_node("b", "5")],
        "full_hash": "x",
        "buildinfo": {"relative_prefix": "p", "relative_rpaths": False},
    },
}
FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: text.encode(),
    "signed": lambda text: signed(text).encode(),
    "packed": lambda text: gzip.compress(text.encode()),
    "yaml": lambda text: yaml.safe_dump(json.loads(text)).encode(),
}


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("name", sorted(FILES))
def test_every_form_is_read_alike(name: str, form: str) -> None:
    """JSON or YAML, clear-signed, packed: the same nodes, the binary's own first."""
    version, entries = read_spec_file(FORMS[form](json.dumps(FILES[name])))

    nodes = [entry.node for entry in entries]
    assert [node.name for node in nodes] == ["a", "b"]
    assert nodes[0].edges[0].hash == hash_of("b")
    assert version == int(name[-1])
    assert [entry.is_binary for entry in entries] == [True, False]
    assert [entry.unknown for entry in entries] == [frozenset(), frozenset()]


@pytest.mark.parametrize(
    "path", sorted(MIRRORS.glob("v2*/build_cache/*")), ids=lambda p: p.name
)
def test_real_files_are_read(path: Path) -> None:
    """Of Spack 0.16 to 0.23: the hash in the file's name is that of the first node."""
    _, entries = read_spec_file(path.read_bytes())

    nodes = [entry.node for entry in entries]
    assert nodes[0].hash in path.name
    hashes = {entry.node.hash for entry in entries}
    for entry in entries:
        assert {edge.hash for edge in entry.node.edges} <= hashes


BROKEN = {
    "empty": (b"", "broken spec file"),
    "a lockfile": (
        b'{"_meta": {}, "roots": [], "concrete_specs": {}}',
        "cover spack.lock",
    ),
    "cut": (json.dumps(FILES["specfile 5"]).encode()[:-40], "broken spec file"),
    "nested": (b'{"spec": ' + b"[" * 1_000_000, "broken spec file"),
    "closed YAML": (
        b"spec: " + b"[" * 100_000 + b"]" * 100_000,
        "nested more than 32 levels",
    ),
    "no number": (
        b'spec: 1\nfull_hash: !!int ""\n',
        "broken YAML: this is not a value of type int",
    ),
    "YAML that grows": (b"spec: &a [*a]\nbuildinfo: {a: *a}", r"\*a contains itself"),
    "no nodes": (
        b'{"spec": {"_meta": {"version": 2}, "nodes": []}}',
        "has 0 nodes, expected 1",
    ),
    "too many nodes": (
        json.dumps(
            {"spec": {"_meta": {"version": 2}, "nodes": [0] * (NODE_LIMIT + 1)}}
        ).encode(),
        "has 10,001 nodes",
    ),
    "a key twice in YAML": (b"spec: []\nfull_hash: x\nfull_hash: y", "a repeated key"),
    "a number without end": (
        b'{"spec": [], "full_hash": ' + b"1" * 5000 + b"}",
        "broken spec",
    ),
    "no hash": (
        json.dumps(
            replaced(FILES["specfile 5"], ("spec", "nodes", 1, "hash"), "b")
        ).encode(),
        "'b' is not a hash, expected 32 characters",
    ),
    "two names": (
        json.dumps({"spec": [{**old_node("a", "5"), **old_node("b", "5")}]}).encode(),
        "has 2 names, expected one",
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_is_no_spec_file_is_named(name: str) -> None:
    """In words, whatever it is instead."""
    data, words = BROKEN[name]
    with pytest.raises(LineFault, match=words):
        read_spec_file(data)


class KeyInFile(NamedTuple):
    """A value within a file: the name and content of the file, and the path of keys."""

    name: str
    content: Any
    path: KeyPath


def keys_in_files() -> Iterator[KeyInFile]:
    """Yield each value of indexes and of spec files."""
    for content in (WHOLE, *OLD.values()):
        for path in key_paths(content):
            yield KeyInFile("index.json", content, path)
    for content in FILES.values():
        for path in key_paths(content):
            yield KeyInFile("build_cache/a.spec.json", content, path)


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(st.sampled_from(list(keys_in_files())), st.sampled_from(OTHERS))
def test_another_type_of_any_value_is_refused_or_kept(
    key: KeyInFile, other: Any
) -> None:
    """A file is refused in words, with no traceback and no file, or its database is a
    source.
    """
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "in")
        output = Path(folder, "x.db")
        changed = sources / key.name
        changed.parent.mkdir(parents=True)
        changed.write_text(json.dumps(replaced(key.content, key.path, other)))
        try:
            build(sources, output)
        except InputError as error:
            assert all(str(fault).isprintable() for fault in error.faults)
            assert all(fault.path.startswith(str(sources)) for fault in error.faults)
            assert "please report it" not in str(error)
            assert not output.exists()
            return
        again = Path(folder, "y.db")
        build(output, again)
        assert again.read_bytes() == output.read_bytes()


def test_keys_that_are_not_known_are_told(tmp_path: Path) -> None:
    """In the file, in a node and below it, as in an index: each is noted once."""
    content: dict[str, Any] = json.loads(json.dumps(FILES["specfile 5"]))
    content["later"] = {"x": "y"}
    content["spec"]["_meta"]["odd"] = {"x": "y"}
    for each_node in content["spec"]["nodes"]:
        each_node["odd"] = [1]
    (tmp_path / "build_cache").mkdir()
    (tmp_path / "build_cache" / "a.spec.json").write_text(json.dumps(content))

    faults, problems = check(tmp_path)

    assert faults == ()
    assert [problem.message for problem in problems] == [
        "the key later is not known and left out: 1 record has it",
        "the key spec._meta.odd is not known and left out: 1 record has it",
        "the key spec.odd is not known and left out: 2 records have it",
    ]


@given(st.text(st.characters(codec="ascii", exclude_characters="\r"), max_size=200))
def test_the_text_of_a_signed_message_comes_back(text: str) -> None:
    """With lines that begin with a dash, and without its signature."""
    text = f"{{{text}"
    assert without_signature(signed(text).encode()) == text.encode()
    assert without_signature(text.encode()) == text.encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "broken address of a mirror: "),
        (b'{"url": "https://a", "more": 1}', "broken address of a mirror: "),
        (b'{"url": "\xff"}', "broken address of a mirror: "),
        (b"[" * 100_000, "broken address of a mirror: "),
        (
            b'{"url": "somewhere"}',
            "the address of a mirror is not a URL, expected one such as",
        ),
        (
            b'{"url": "https://a b"}',
            "the address of a mirror is not a URL, expected one such as",
        ),
    ],
)
def test_what_is_not_an_address_is_refused(data: bytes, message: str) -> None:
    """The fault is what is wrong with the file."""
    with pytest.raises(IndexFault, match=message):
        read_address(data)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("form", sorted(PACK))
@given(data=st.binary(max_size=3000))
def test_what_was_packed_comes_back(form: str, data: bytes) -> None:
    """Whatever it is, and as it is if it is not packed."""
    assert decompressed(PACK[form](data), 3000) == data
    assert decompressed(b"{" + data, 1) == b"{" + data


@pytest.mark.parametrize("form", sorted(PACK))
def test_a_bomb_is_refused(form: str) -> None:
    """Ten megabytes of zeros have a few kilobytes."""
    with pytest.raises(IndexFault, match=r"has more than 1,000,000 bytes"):
        decompressed(PACK[form](bytes(10_000_000)), 1_000_000)


@pytest.mark.parametrize("form", sorted(PACK))
def test_what_is_cut_or_broken_is_refused(form: str) -> None:
    """At any place."""
    whole = PACK[form](bytes(range(256)) * 50)

    for end in (5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(IndexFault, match="broken compression"):
            decompressed(whole[:end], 2**20)
    with pytest.raises(IndexFault, match="broken compression"):
        decompressed(whole[:4] + b"\xff" * 40, 2**20)
