"""What is installed comes first in every answer, and is loaded instead of installed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.errors import ArgumentError
from spack_cache_db.query.answers import find
from spack_cache_db.query.coverage import cover
from spack_cache_db.query.installation import (
    Commands,
    Origin,
    install_binary,
    install_example,
    install_spec,
    installations_of,
    read_origin,
)
from spack_cache_db.query.retention import retention
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.trees import installed, write_tree


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a tree with versions 1 to 3 of a, and a mirror with versions 2 to 4."""
    folder = tmp_path_factory.mktemp("both")

    def of(version: int) -> dict[str, object]:
        return node("a", version=f"{version}.0", hash=hash_of(f"a{version}"))

    ours = [installed(of(at), explicit=at == 1, path=f"/opt/a-{at}") for at in (1, 2, 3)]
    needs = installed(node("top", {**edge("a3", "link"), "name": "a"}), explicit=True)
    tree = write_tree(folder / "opt", [*ours, needs])
    mirror = folder / "mirrors" / "develop" / "e4s"
    mirror.mkdir(parents=True)
    theirs = [record(of(at)) for at in (2, 3, 4)]
    (mirror / "index.json").write_bytes(index(*theirs, record(node("other"))))
    build([tree, folder / "mirrors"], folder / "x.db")
    return folder / "x.db"


def test_what_is_installed_is_found_first(both: Path) -> None:
    """First what somebody asked for, then what else is installed, then what could be installed."""
    assert [each.version for each in find(both, "a")] == ["1.0", "3.0", "2.0", "4.0"]
    assert [each.version for each in find(both, "a", release="develop")] == ["3.0", "2.0", "4.0"]


def test_only_what_was_asked_for_is_found(both: Path) -> None:
    """`explicit` leaves out dependencies and what could be had; other conditions hold as well."""
    assert [(each.package, each.version) for each in find(both, "*", explicit=True)] == [
        ("a", "1.0"),
        ("top", "1.0"),
    ]
    assert [each.package for each in find(both, "* ^a", explicit=True)] == ["top"]
    assert find(both, "* ^top", explicit=True) == find(both, "a@4", explicit=True) == []
    assert find(both, "a", explicit=True, release="develop") == []
    assert run("find", "--explicit", "a", both, "--csv").stdout.splitlines()[1].startswith("a,1.0")
    assert run("find", "--explicit", "a@4", both).exit_code == 1


def test_an_installed_spec_is_loaded(both: Path) -> None:
    """The command, the prefix, whether it was asked for, and when; a mirror's is installed."""
    with closing(sqlite3.connect(both)) as conn:
        first = install_binary(conn, "a", hash_of("a1"))
        (same,) = installations_of(conn, "a", hash_of("a1"))
        newest = install_binary(conn, "a", hash_of("a4"))
        mirrored = install_spec(conn, "a", hash_of("a3"), "develop")
        example = install_example(conn, "installed")
    load = f"spack load a/{hash_of('a1')[:7]}"
    assert (
        first
        == same
        == Commands(
            (load,),
            "installed",
            load=load,
            prefix="/opt/a-1",
            is_explicit=True,
            installed_at="2023-12-06 00:00:00",
        )
    )
    assert same.commands == (load,)
    assert newest is not None and newest.commands[-1].startswith("spack install --cache-only a/")
    assert mirrored.commands[-1].startswith("spack install --cache-only a/")
    assert example.commands == ("spack load a",)


@pytest.mark.parametrize(
    ("release", "statuses"),
    [
        (None, ["installed", "installed", "binary", "none", "binary"]),
        ("installed", ["installed", "installed", "near", "none", "near"]),
        ("develop", ["binary", "near", "binary", "none", "binary"]),
    ],
)
def test_what_is_installed_needs_no_binary(
    both: Path, release: str | None, statuses: list[str]
) -> None:
    """`installed` comes before `binary`; within a release only what that one has counts."""
    specs = ["a", "a@1", "a@4", "b", "other"]
    found = cover(both, specs, release=release)
    if release == "installed":
        statuses = [*statuses[:4], found.specs[4].status]
    assert [each.status for each in found.specs] == statuses
    assert found.available == sum(each in ("installed", "binary") for each in statuses)


def test_a_catalogue_says_that_it_is_of_installed_software(both: Path, tmp_path: Path) -> None:
    """Trees alone are no build cache; beside a mirror, both are named."""
    build(write_tree(tmp_path / "opt", [installed(node("a"))]), tmp_path / "x.db")
    tree = "the installation installed"
    for path, origin in (
        (tmp_path / "x.db", Origin("Installed software", tree, None, False)),
        (both, Origin("Build cache", f"{tree} and a mirror", None, False)),
    ):
        with closing(sqlite3.connect(path)) as conn:
            assert read_origin(conn) == origin


def test_an_installed_tree_keeps_no_binary_of_a_mirror(both: Path, tmp_path: Path) -> None:
    """Answers name what is installed first, so a mirror beside a tree has to be named."""
    path = tmp_path / "specs.txt"
    path.write_text("a@2:\n")
    with pytest.raises(ArgumentError, match="give the mirror's release"):
        retention(both, [path])
    done = run("cover", path, both, "--keeplist")
    assert (done.exit_code, done.stdout) == (2, "")

    assert retention(both, [path], release="develop").keep == (hash_of("a3"),)
    done = run("cover", path, both, "--keeplist", "--release", "develop")
    assert (done.exit_code, done.stdout.split()) == (0, [hash_of("a3")])
