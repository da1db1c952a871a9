"""query.names: what is known of a name, in the same words in every answer."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.answers import find, history
from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.database import opened
from spack_cache_db.query.names import UnknownNameError, close_names, known_name
from spack_cache_db.spack.lexer import QuerySyntaxError
from tests.commands import run
from tests.conftest import Build
from tests.indexes import edge, hash_of, index, node, record
from tests.package_data import described, published, write_packages
from tests.pagetexts import page, spec, write

KNOWN = {
    "built": "1 binary",
    "glibc": "external, no binary of it is in this database",
    "gmake": "known as a dependency, no binary of it is in this database",
    "empty": "named by a page, no binary of it is in this database",
    "gromacs": "Spack has this package, no binary of it is in this database",
    "virtual": "a virtual package, known to be provided by gromacs",
    "gromac": "no package has this name (near: gromacs)",
    "builtt": "no package has this name (near: built)",
    "zzzz": "no package has this name",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of pages, an index and package data."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "index").mkdir()
    needs = [edge(name, "build", "link") for name in ("gmake", "glibc")]
    glibc = node("glibc", external={"path": "/usr", "module": None})
    records = [
        record(node("built", *needs)),
        record(node("gmake"), is_binary=False),
        record(glibc, is_binary=False),
    ]
    (folder / "index" / "index.json").write_bytes(index(*records))
    user = published("user", dependencies=described("virtual"))
    gromacs = published("gromacs", "2024.3", description="The package virtual.")
    names = published("glibc", "2.39"), published("gmake"), published("empty"), gromacs, user
    data = write_packages(folder / "data", *names)
    pages = write(folder / "pages", a=page("empty", "develop", []))
    build([folder / "index", data, pages], folder / "x.db")
    return folder / "x.db"


@pytest.mark.parametrize("name", KNOWN)
def test_each_answer_says_the_same(file: Path, tmp_path: Path, name: str) -> None:
    """The kinds of names, in `find`, `history`, `deps` and `cover`, for people and in JSON."""
    with opened(file) as lookups:
        known = known_name(lookups, name)
    assert (known.text, known.sentence) == (KNOWN[name], f"{name}: {KNOWN[name]}")
    specs = tmp_path / "specs.txt"
    specs.write_text(f"{name}@9:\n")
    if name == "virtual":
        assert known.sentence in run("find", name, file).stderr
    elif name != "built":
        for command in ("find", "history"):
            answer = run(command, f"{name}@9:", file)
            assert (answer.exit_code, answer.stdout) == (1, "")
            assert answer.stderr.startswith(f"Note: {known.sentence}\n")
        assert f"{known.sentence}" in run("cover", specs, file).stdout
        specs.write_text(f"{name.upper()}@9:\n")
        loud = run("cover", specs, file)
        if known.kind != "unknown":
            assert known.sentence in loud.stdout
            assert f"{name.upper()} is read as {name}" in loud.stderr
        specs.write_text(f"{name}@9:\n")
        assert f'"{known.sentence}' in run("cover", specs, file, "--json").stdout
    answer = run("deps", name, file)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert (known.sentence in answer.stderr) is (known.kind != "unknown")


def test_the_kind_of_a_dependency_is_said_in_the_same_words(file: Path) -> None:
    """`deps` lists what has no binary with the words that its name has."""
    shown = json.loads(run("deps", hash_of("built"), file, "--json").stdout)
    kinds = {each["package"]: each["kind"] for each in shown}
    assert kinds == {"glibc": "external", "gmake": "known as a dependency"}


def test_python_says_how_a_name_was_read(file: Path) -> None:
    """The notes of a list and of a history are those of the commands."""
    found, rows = find(file, "BUILT"), history(file, "BUILT")
    assert [each.package for each in found] == ["built"]
    assert found.notes == rows.notes == ("BUILT is read as built",)
    assert find(file, "built").notes == ()


def test_the_version_that_spack_prefers_is_the_newest(tmp_path: Path) -> None:
    """A number before a prerelease, and both before a branch, in every sentence and table."""
    versions = ("develop-1.14", "1.14.6", "1.14.3", "1.15-rc1")
    specs = [spec(at, versions=[version]) for at, version in enumerate(versions)]
    data = write_packages(tmp_path / "data", published("hdf5", "2.0", "1.14.6", "1.14.3"))
    build([write(tmp_path / "pages", a=page("hdf5", "develop", specs)), data], tmp_path / "x.db")
    file = tmp_path / "x.db"
    assert [each.version for each in find(file, "hdf5")] == [
        *("1.14.6", "1.14.3", "1.15-rc1", "develop-1.14")
    ]
    assert "no version 9 of hdf5: newest 1.14.6" in run("find", "hdf5@9", file).stderr
    assert "hdf5  1.14.6          2.0" in run("behind", file).stdout
    assert run("behind", file, "--release", "develop").stdout == run("behind", file).stdout


def test_close_names() -> None:
    """Names that are alike come first, then those that have the name as a part."""
    known = ["py-torch", "py-torchvision", "torque", "zlib", "zlib-ng"]

    assert close_names("zlibb", known) == ("zlib",)
    assert close_names("torch", known)[-2:] == ("py-torch", "py-torchvision")
    assert close_names("zz", known) == ()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"release": "develop-2025-01-06"}, "no release is called .* close: .*develop-2025-04-20"),
        ({"stack": "e4z"}, "no stack is called 'e4z'; close: e4s"),
        ({"stack": "root"}, "no stack is called 'root'"),
        ({"host": "zen33"}, "archspec knows no target 'zen33'; close: zen3, "),
        ({"host": "qqq"}, "archspec knows no target 'qqq'; expected a name such as zen3"),
    ],
)
def test_unknown_names(samples: sqlite3.Connection, options: dict[str, Any], reason: str) -> None:
    """An unknown release, stack or machine is an error that names what is close."""
    with pytest.raises(UnknownNameError, match=reason):
        find(samples, "py-mpi4py", **options)


def test_limits_and_errors(samples: sqlite3.Connection) -> None:
    """At most so many records, none if none are wanted; a text that is no spec has a caret."""
    counts = [len(find(samples, "py-mpi4py", limit=limit)) for limit in (None, 0, 2, 1000)]
    assert counts == [7, 0, 2, 7]
    with pytest.raises(QuerySyntaxError, match=r"\n +\^\n"):
        find(samples, "hdf5@@1")


def test_a_virtual_name_that_is_a_package_is_found(built: Build) -> None:
    """A name that is virtual in Spack is refused, unless the database has such a package."""
    conn = built(a=page("iconv", "develop", [spec(6)]))
    assert len(find(conn, "iconv@1: ~cuda")) == 1
    with pytest.raises(UnsupportedQuery, match="virtual package"):
        find(conn, "mpi")
