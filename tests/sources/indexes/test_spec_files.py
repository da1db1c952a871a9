"""sources.indexes.index_records: what lies beside each binary of a mirror that has no index."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build, check
from spack_cache_db.errors import InputError, LineFault
from spack_cache_db.sources.indexes import NODE_LIMIT, read_spec_file
from tests.indexes import (
    MIRRORS,
    OTHERS,
    edge,
    hash_of,
    node,
    old_node,
    replaced,
    signed,
    ways,
)

FILES: dict[str, dict[str, Any]] = {
    "specfile 5": {
        "spec": {"_meta": {"version": 5}, "nodes": [node("a", edge("b", "link")), node("b")]},
        "buildcache_layout_version": 2,
        "binary_cache_checksum": {"hash_algorithm": "sha256", "hash": "ab"},
    },
    "specfile 2": {
        "spec": {"_meta": {"version": 2}, "nodes": [old_node("a", "6", "b"), old_node("b", "6")]},
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
PLACES = [(name, way) for name, value in sorted(FILES.items()) for way in ways(value)]


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("name", sorted(FILES))
def test_every_form_says_the_same(name: str, form: str) -> None:
    """JSON or YAML, clear-signed, packed: the same nodes, the binary's own first."""
    found = read_spec_file(FORMS[form](json.dumps(FILES[name])), 2**20)

    nodes = [entry.node for entry in found.entries]
    assert [each.name for each in nodes] == ["a", "b"]
    assert nodes[0].edges[0].hash == hash_of("b")
    assert found.version == int(name[-1])
    assert [(each.is_binary, each.unknown) for each in found.entries] == [
        (True, frozenset()),
        (False, frozenset()),
    ]


@pytest.mark.parametrize("path", sorted(MIRRORS.glob("v2*/build_cache/*")), ids=lambda p: p.name)
def test_real_files_are_read(path: Path) -> None:
    """Of Spack 0.16 to 0.23: the hash in the file's name is that of the first node."""
    found = read_spec_file(path.read_bytes(), 2**20)

    nodes = [entry.node for entry in found.entries]
    assert nodes[0].hash in path.name
    ends = {edge.hash for each in nodes for edge in each.edges}
    assert ends <= {each.hash for each in nodes}


BROKEN = {
    "empty": (b"", "broken spec file"),
    "a lockfile": (b'{"_meta": {}, "roots": [], "concrete_specs": {}}', "cover spack.lock"),
    "cut": (json.dumps(FILES["specfile 5"]).encode()[:-40], "broken spec file"),
    "nested": (b'{"spec": ' + b"[" * 1_000_000, "broken spec file"),
    "closed YAML": (b"spec: " + b"[" * 100_000 + b"]" * 100_000, "nested more than 32 levels"),
    "no number": (
        b'spec: 1\nfull_hash: !!int ""\n',
        "broken YAML: this is not a value of type int",
    ),
    "no time": (
        b"spec: 1\nfull_hash: !!timestamp x",
        "broken YAML: this is not a value of type time",
    ),
    "YAML that grows": (b"spec: &a [*a]\nbuildinfo: {a: *a}", r"\*a contains itself"),
    "no nodes": (b'{"spec": {"_meta": {"version": 2}, "nodes": []}}', "has 0 nodes, expected 1"),
    "too many nodes": (
        json.dumps({"spec": {"_meta": {"version": 2}, "nodes": [0] * (NODE_LIMIT + 1)}}).encode(),
        "has 10,001 nodes",
    ),
    "a key twice in YAML": (b"spec: []\nfull_hash: x\nfull_hash: y", "a repeated key"),
    "no UTF-8": (b'{"spec": "\xed\xa0\x80"}', "not UTF-8: byte 0xed"),
    "a number without end": (b'{"spec": [], "full_hash": ' + b"1" * 5000 + b"}", "broken spec"),
    "no hash": (
        json.dumps(replaced(FILES["specfile 5"], ("spec", "nodes", 1, "hash"), "b")).encode(),
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
        read_spec_file(data, 2**20)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.sampled_from(PLACES), st.sampled_from(OTHERS))
def test_another_type_in_any_place_is_told_or_kept(place: tuple[str, Any], other: Any) -> None:
    """A mirror is refused in words, with no traceback and no file, or its database is a source."""
    name, way = place
    with tempfile.TemporaryDirectory() as folder:
        mirror, output = Path(folder, "mirror"), Path(folder, "x.db")
        (mirror / "build_cache").mkdir(parents=True)
        text = json.dumps(replaced(FILES[name], way, other))
        (mirror / "build_cache" / "a.spec.json").write_text(text)
        try:
            build(mirror, output)
        except InputError as error:
            assert "please report it" not in str(error)
            assert not output.exists()
            return
        build(output, Path(folder, "y.db"))
        assert Path(folder, "y.db").read_bytes() == output.read_bytes()


def test_keys_that_are_not_known_are_told(tmp_path: Path) -> None:
    """In the file, in a node and below it, as in an index: each is noted once."""
    said: dict[str, Any] = json.loads(json.dumps(FILES["specfile 5"]))
    for each in said["spec"]["nodes"]:
        each["odd"] = [1]
    said["later"] = said["spec"]["_meta"]["odd"] = {"x": "y"}
    (tmp_path / "build_cache").mkdir()
    (tmp_path / "build_cache" / "a.spec.json").write_text(json.dumps(said))

    faults, problems = check(tmp_path)

    assert faults == ()
    assert [each.message for each in problems] == [
        "the key later is not known and left out: 1 record has it",
        "the key spec._meta.odd is not known and left out: 1 record has it",
        "the key spec.odd is not known and left out: 2 records have it",
    ]
