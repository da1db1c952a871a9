"""query.names: what is known of a name, in any spelling and in the same words
everywhere.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spack_cache_db
from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.history import history
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.names.spellings import Spellings, close_names, read_spellings
from spack_cache_db.query.open.lookups import opened, read_lookups
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
    names = (
        published("glibc", "2.39"),
        published("gmake"),
        published("empty"),
        gromacs,
        user,
    )
    data = write_packages(folder / "data", *names)
    pages = write(folder / "pages", a=page("empty", "develop", []))
    build([folder / "index", data, pages], folder / "x.db")
    return folder / "x.db"


@pytest.mark.parametrize("name", KNOWN)
def test_each_answer_says_the_same(file: Path, tmp_path: Path, name: str) -> None:
    """The kinds of names, in `find`, `history`, `deps` and `cover`, for people and in
    JSON.
    """
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
    assert known.sentence in answer.stderr


def test_the_kind_of_a_dependency_is_said_in_the_same_words(file: Path) -> None:
    """`deps` lists what has no binary with the words that its name has."""
    shown = json.loads(run("deps", hash_of("built"), file, "--json").stdout)
    kinds = {each["package"]: each["kind"] for each in shown}
    assert kinds == {"glibc": "external", "gmake": "known as a dependency"}


def test_python_says_how_a_name_was_read(file: Path) -> None:
    """The notes of a list and of a history are those of the commands."""
    found = find(file, "BUILT")
    rows = history(file, "BUILT")
    assert [answer.package for answer in found] == ["built"]
    assert found.notes == rows.notes == ("BUILT is read as built",)
    assert find(file, "built").notes == ()


def test_the_version_that_spack_prefers_is_the_newest(tmp_path: Path) -> None:
    """A number before a prerelease, and both before a branch, in every sentence and
    table.
    """
    versions = ("develop-1.14", "1.14.6", "1.14.3", "1.15-rc1")
    specs = [spec(at, versions=[version]) for at, version in enumerate(versions)]
    data = write_packages(
        tmp_path / "data", published("hdf5", "2.0", "1.14.6", "1.14.3")
    )
    build(
        [write(tmp_path / "pages", a=page("hdf5", "develop", specs)), data],
        tmp_path / "x.db",
    )
    file = tmp_path / "x.db"

    assert [answer.version for answer in find(file, "hdf5")] == [
        "1.14.6",
        "1.14.3",
        "1.15-rc1",
        "develop-1.14",
    ]
    assert "no version 9 of hdf5: newest 1.14.6" in run("find", "hdf5@9", file).stderr
    assert "hdf5  1.14.6          2.0" in run("behind", file).stdout
    assert (
        run("behind", file, "--release", "develop").stdout == run("behind", file).stdout
    )


def test_close_names() -> None:
    """Names that are alike come first, then those that have the name as a part, or are
    one.
    """
    known = ["py-torch", "py-torchvision", "torque", "zlib", "zlib-ng"]

    assert close_names("zlibb", known) == ("zlib",)
    assert close_names("torch", known)[-2:] == ("py-torch", "py-torchvision")
    assert close_names("ZLIB2-devel", known) == ("zlib",)
    assert close_names("zz", known) == ()
    assert close_names("glibc", known) == ()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"release": "develop-2025-01-06"},
            "no release is called .* close: .*develop-2025-04-20",
        ),
        ({"stack": "e4z"}, "no stack is called 'e4z'; close: e4s"),
        ({"stack": "root"}, "no stack is called 'root'"),
        ({"host": "zen33"}, "archspec knows no target 'zen33'; close: zen3, "),
        (
            {"host": "qqq"},
            "archspec knows no target 'qqq'; expected a name such as zen3",
        ),
    ],
)
def test_unknown_names(
    samples: sqlite3.Connection, options: dict[str, Any], reason: str
) -> None:
    """An unknown release, stack or machine is an error that names what is close."""
    with pytest.raises(UnknownNameError, match=reason):
        find(samples, "py-mpi4py", **options)


def test_limits_and_errors(samples: sqlite3.Connection) -> None:
    """At most so many records, none if none are wanted; a text that is no spec has a
    caret.
    """
    counts = [
        len(find(samples, "py-mpi4py", limit=limit)) for limit in (None, 0, 2, 1000)
    ]

    assert counts == [7, 0, 2, 7]
    with pytest.raises(QuerySyntaxError, match=r"\n +\^\n"):
        find(samples, "hdf5@@1")


def test_a_virtual_name_that_is_a_package_is_found(built: Build) -> None:
    """A name that is virtual in Spack is refused, unless the database has such a
    package.
    """
    conn = built(a=page("iconv", "develop", [spec(6)]))
    assert len(find(conn, "iconv@1: ~cuda")) == 1
    with pytest.raises(UnsupportedQuery, match="virtual package"):
        find(conn, "mpi")


NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "package": {"a-b": ("a-b",), "c-d": ("c-d", "c_d")},
    "release": {"a-b": ("a_b",)},
}


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=40, max_size=40))
def test_every_spelling_of_a_name_is_read(
    samples: sqlite3.Connection, changes: list[tuple[bool, bool]]
) -> None:
    """Capitals, `_` for `-` and `-` for `_` lead to each name of every kind, and to no
    other.
    """
    spellings = read_spellings(read_lookups(samples))

    for kind, names in spellings.names.items():
        for name in (each for some in names.values() for each in some):
            spelled = "".join(
                {"-": "_", "_": "-"}.get(char, char)
                if swaps
                else char.upper()
                if raises
                else char
                for char, (swaps, raises) in zip(name, changes * 2, strict=False)
            )
            assert spellings.canonical(kind, spelled) == name


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("package", "A_B", "a-b"),
        ("package", " A-b ", "a-b"),
        ("package", "c_d", "c_d"),
        ("package", "c-d", "c-d"),
        ("package", "C-D", "C-D"),
        ("package", "ab", "ab"),
        ("release", "A-B", "a_b"),
        ("stack", "A-B", "A-B"),
        ("hash", "ABC", "abc"),
    ],
)
def test_only_one_name_is_meant(kind: str, text: str, name: str) -> None:
    """A name stays as it is, and so does a text that is a spelling of several names or
    of none.
    """
    assert Spellings(NAMES).canonical(kind, text) == name


@pytest.mark.parametrize(
    ("spec", "spelled"),
    [
        ("py-mpi4py", "Py_MPI4Py"),
        ("py-mpi4py@4: %gcc@13", "PY-MPI4PY@4: %GCC@13"),
        (
            "py-mpi4py target=:zen3 os=ubuntu22.04",
            "py-mpi4py target=:ZEN3 os=Ubuntu22.04",
        ),
        ("/2feova4", "/2FEOVA4"),
        ("py-mpi4py target=x86_64_v3", "py-mpi4py target=X86-64-v3"),
    ],
)
def test_specs_are_read_in_any_spelling(
    samples_file: Path, spec: str, spelled: str
) -> None:
    """Python and the commands find the same, and the commands say how they read a
    name.
    """
    found = spack_cache_db.find(samples_file, spec)

    assert found
    assert spack_cache_db.find(samples_file, spelled) == found
    assert "read as" in run("find", spelled, samples_file).stderr
    assert "read as" not in run("find", spec, samples_file).stderr


@pytest.mark.parametrize(
    "command",
    [
        (
            "find",
            "py-mpi4py",
            "FILE",
            "--release",
            "Develop",
            "--stack",
            "E4S",
            "--host",
            "ZEN3",
        ),
        ("history", "py-mpi4py", "FILE", "--stack", "E4S", "--host", "ZEN3"),
        ("cover", "py-mpi4py", "FILE", "--release", "Develop", "--stack", "E4S"),
        ("diff", "develop-2025-04-20", "develop", "FILE", "--package", "PY_MPI4PY"),
        ("diff", "DEVELOP-2025-04-20:E4S", "Develop:E4S", "FILE", "--host", "ZEN3"),
    ],
)
def test_options_are_read_in_any_spelling(
    samples_file: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A name after an option narrows as the name itself does, with a note."""
    specs = tmp_path / "specs.txt"
    specs.write_text("py-mpi4py\n")
    given = {
        "FILE": samples_file,
        "py-mpi4py": specs if command[0] == "cover" else "py-mpi4py",
    }
    spelled = run(*(given.get(each, each) for each in command))
    lower = (
        each if each == "FILE" else each.lower().replace("py_", "py-")
        for each in command
    )
    plain = run(*(given.get(each, each) for each in lower))

    assert (spelled.exit_code, spelled.stdout) == (plain.exit_code, plain.stdout)
    assert spelled.stdout
    assert "read as" in spelled.stderr
