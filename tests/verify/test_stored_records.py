"""verify.stored_records: an index is held against the file, and what the file has lost is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.sources.indexes import write_address
from spack_cache_db.verify import verify
from tests.indexes import MIRRORS, edge, hash_of, index, node, old_node, record

TARGET = {"name": "zen3", "vendor": "AMD", "features": ["avx"], "generation": 0, "parents": ["zen"]}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An index that says something of every kind."""
    arch = {"platform": "linux", "platform_os": "debian12", "target": TARGET}
    spliced = {"name": "b", "hash": hash_of("b")}
    outside: dict[str, object] = {"path": "/usr", "module": None, "extra_attributes": {}}
    records = [
        record(node("a", edge("b", "build", "link", virtuals=("mpi",)), arch=arch)),
        record(node("b", build_spec=spliced, patches=["a" * 64])),
        record(node("c", external=outside), is_binary=False, explicit=True),
    ]
    path = tmp_path / "index.json"
    path.write_bytes(index(*records))
    return path


LOSSES = [
    ("DELETE FROM dependencies", "dependencies is "),
    ("UPDATE dependency_types SET types = 'run'", "dependencies is "),
    ("UPDATE dependency_virtuals SET virtuals = '' WHERE virtuals = 'mpi'", "dependencies is "),
    ("UPDATE dependencies SET direct = 1", "dependencies is "),
    ("DELETE FROM splices", "spec.build_spec is "),
    ("UPDATE nodes SET namespace = 'x'", 'spec.namespace is "builtin", the file has "x"'),
    ("UPDATE nodes SET package_hash = NULL", "spec.package_hash is "),
    ("UPDATE nodes SET external = NULL", "spec.external is "),
    ("UPDATE nodes SET parameters = '{}'", "spec.parameters is "),
    ("UPDATE nodes SET rest = '{}'", "spec.annotations is "),
    ("UPDATE target_descriptions SET description = '{}'", "spec.arch.target is "),
    ("UPDATE records SET ref_count = 7", "ref_count is 1, the file has 7"),
    ("UPDATE records SET in_buildcache = NULL", "in_buildcache is "),
    ("UPDATE records SET rest = NULL", "explicit is true, the file has none"),
    ("UPDATE versions SET name = '9'", "spec.version is "),
    ("UPDATE operating_systems SET name = '9'", "spec.arch.platform_os is "),
    ("DELETE FROM records WHERE spec = 1", "has the spec "),
    ("DELETE FROM listings", "lists the spec "),
    ("DELETE FROM stack_set_members", "lists the spec "),
    ("DELETE FROM mirrors", "is an index of root in root, the file has none from there"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "words"), LOSSES, ids=[each for each, _ in LOSSES])
def test_whatever_is_lost_is_named(
    source: Path, tmp_path: Path, statement: str, words: str
) -> None:
    """By the record's hash, the key, and both values."""
    build(source, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", source).differences == ()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute(statement)
        connection.commit()

    found = verify(tmp_path / "x.db", source).differences

    assert any(words in str(each) for each in found)


def test_what_only_the_file_has_is_named(source: Path, tmp_path: Path) -> None:
    """A record that is gone from an index, and a key."""
    build(source, tmp_path / "x.db")
    said = json.loads(source.read_text())
    del said["database"]["installs"][hash_of("c")]
    del said["database"]["installs"][hash_of("b")]["spec"]["patches"]
    source.write_text(json.dumps(said))

    found = [str(each) for each in verify(tmp_path / "x.db", source).differences]

    assert found == [
        f"{source}: does not have the spec {hash_of('c')}, the file does",
        f"{source}: the spec {hash_of('b')}: spec.patches is not there, the file has "
        f'["{"a" * 64}"]',
    ]


def test_indexes_that_disagree_are_each_given_back(tmp_path: Path) -> None:
    """In one release and in two: configurations, dependencies, what else a node says."""
    variants = [
        node("a", edge("b", "link"), version="1"),
        node("a", edge("b", "build"), version="2", namespace="mine"),
        node("a", version="3", arch={"platform": "p", "platform_os": "o", "target": TARGET}),
    ]
    for number, spec in enumerate(variants * 2):
        release, stack = ("one", "two")[number > 2], f"s{number % 3}"
        folder = tmp_path / "in" / release / stack
        folder.mkdir(parents=True)
        shown = record(spec, is_binary=number != 1)
        (folder / "index.json").write_bytes(index(shown, record(node("b"))))

    build(tmp_path / "in", tmp_path / "x.db")

    found = verify(tmp_path / "x.db", tmp_path / "in")
    assert (found.indexes, found.records, found.differences) == (6, 12, ())


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_old_indexes_are_given_back(tmp_path: Path, version: str) -> None:
    """Whatever their words for edges; another type is a difference."""
    records = [{"spec": old_node("a", version, "b")}, {"spec": old_node("b", version)}]
    path = tmp_path / "index.json"
    path.write_bytes(index(*records, version=version))
    build(path, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", path).differences == ()

    records[0] = {"spec": old_node("a", version, "b", types=("run",))}
    path.write_bytes(index(*records, version=version))
    (found,) = verify(tmp_path / "x.db", path).differences
    assert f"the spec {hash_of('a')}: dependencies is " in str(found)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE listings SET size = '7'", "its tarball has 82 bytes, the file says 7"),
        ("UPDATE tarball_prefixes SET url = 'x' || url", "the file says xhttps://"),
    ],
)
def test_sizes_and_addresses_are_those_of_the_manifests(
    tmp_path: Path, statement: str, words: str
) -> None:
    """A mirror of layout 3 says them beside its index; what the file lost of them is named."""
    mirror = tmp_path / "mirror"
    shutil.copytree(MIRRORS / "v3", mirror)
    (mirror / "mirror.json").write_bytes(write_address("https://cache.example.org/v1"))
    build(mirror, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", mirror).differences == ()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute(statement)
        connection.commit()

    found = verify(tmp_path / "x.db", mirror).differences

    assert len(found) == 5
    assert all(words in str(each) for each in found)


def test_a_tarball_of_layout_2_lies_within_its_mirror(tmp_path: Path) -> None:
    """There, its address follows from the address of the mirror."""
    mirror = tmp_path / "mirror"
    shutil.copytree(MIRRORS / "v2", mirror)
    (mirror / "mirror.json").write_bytes(write_address("https://cache.example.org/v1"))
    build(mirror, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", mirror).differences == ()

    (mirror / "mirror.json").write_bytes(write_address("https://elsewhere.example.org"))
    assert len(verify(tmp_path / "x.db", mirror).differences) == 4


@pytest.mark.slow
def test_the_file_is_the_same_whoever_reads(tmp_path: Path) -> None:
    """Whatever `--jobs` is, and wherever the input lies."""
    shutil.copytree(MIRRORS, tmp_path / "elsewhere")
    build(MIRRORS, tmp_path / "x.db", jobs=1)
    build(tmp_path / "elsewhere", tmp_path / "y.db", jobs=3)
    assert (tmp_path / "x.db").read_bytes() == (tmp_path / "y.db").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("releases", [("v1", "v1"), ("v1", "v2")])
@pytest.mark.parametrize("listed", [(False, False), (True, False), (False, True), (True, True)])
def test_indexes_may_call_one_spec_by_different_names(
    releases: tuple[str, str], listed: tuple[bool, bool], tmp_path: Path
) -> None:
    """Whether they list it or not: the file gives each back in its own words, edges as well."""
    for at, (release, is_binary) in enumerate(zip(releases, listed, strict=True)):
        name = f"name{at}"
        dependency = {**edge(name, "link"), "hash": hash_of("shared")}
        spliced = {"name": name, "hash": hash_of("shared")}
        folder = tmp_path / "in" / release / f"stack{at}"
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(
            index(
                record(node(name, hash=hash_of("shared")), is_binary=is_binary),
                record(node(f"user{at}", dependency, build_spec=spliced)),
            )
        )
    report = build(tmp_path / "in", tmp_path / "x.db")
    # Its name, and the hash of its recipe.
    assert report.problems == 2
    assert verify(tmp_path / "x.db", tmp_path / "in").differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("releases", [("v1", "v1"), ("v1", "v2")])
@pytest.mark.parametrize("recorded", [(False, False), (True, False), (False, True)])
def test_indexes_may_call_what_has_no_record_by_different_names(
    releases: tuple[str, str], recorded: tuple[bool, bool], tmp_path: Path
) -> None:
    """Each index is given back in its own words, and each that has no record is a problem."""
    for at, (release, has_record) in enumerate(zip(releases, recorded, strict=True)):
        name = f"name{at}"
        dependency = {**edge(name, "link"), "hash": hash_of("shared")}
        own = [record(node(name, hash=hash_of("shared")))] if has_record else []
        folder = tmp_path / "in" / release / f"stack{at}"
        folder.mkdir(parents=True)
        user = node(f"user{at}", dependency, build_spec={"name": name, "hash": hash_of("shared")})
        (folder / "index.json").write_bytes(index(*own, record(user)))

    report = build(tmp_path / "in", tmp_path / "x.db")

    assert report.problems == recorded.count(False)
    assert verify(tmp_path / "x.db", tmp_path / "in").differences == ()
