"""Virtual packages as the root of a query: answered where package data says what
provides them.
"""

import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.why_not import why_not
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.spack.parser import parse_query
from tests.indexes import edge, index, node, old_node, record
from tests.package_data import described, published, write_packages
from tests.pagetexts import page, spec, write


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of two packages, one of which provides a virtual one."""
    folder = tmp_path_factory.mktemp("virtual")
    needs = [{"name": "mpi", "description": "The package mpich."}]
    data = write_packages(
        folder / "data",
        published("mpich", "4.0"),
        published("hdf5", "1.14", dependencies=needs),
    )
    pages = write(
        folder / "pages",
        mpich=page("mpich", specs=[spec(1, target="zen3"), spec(2, target="zen4")]),
        hdf5=page("hdf5", specs=[spec(3, target="zen3", variants=["+mpi"])]),
    )
    build([pages, data], folder / "x.db")
    return folder / "x.db"


def found(file: Path, text: str) -> set[tuple[str, str]]:
    """Return the packages and targets that a query finds."""
    return {
        (answer.configuration.package, answer.configuration.target)
        for answer in find(file, text)
    }


def test_a_virtual_root_finds_its_providers(file: Path) -> None:
    """With all else that is asked of them; the answer says which they are."""
    assert found(file, "mpi") == {("mpich", "zen3"), ("mpich", "zen4")}
    assert found(file, "mpi target=zen4") == {("mpich", "zen4")}

    conn = sqlite3.connect(file)
    question = Question(read_lookups(conn), parse_query("mpi os=none"))
    notes = question.notes
    why = why_not(question)
    conn.close()

    assert notes[0] == "the virtual package mpi is known to be provided by mpich"
    assert why.sentences()[0].startswith("without os=none: 2 configurations")
    assert why.known is None


@pytest.mark.parametrize("text", ["mpi@3:", "mpi+x", "mpi@3 target=zen4"])
def test_what_recipes_alone_say_is_refused(text: str, file: Path) -> None:
    """A version of a virtual package is none of its providers'."""
    with pytest.raises(UnsupportedQuery, match="ask for a provider by name: mpich"):
        find(file, text)


def test_what_nothing_says_is_refused(file: Path) -> None:
    """A virtual package without a known provider, and a dependency of which pages say
    nothing.
    """
    with pytest.raises(UnsupportedQuery, match="blas is a virtual package"):
        find(file, "blas")
    known = r"'\^mpi'; build it .* mirror; mpi is known to be provided by mpich; 'hdf5\+mpi'"
    with pytest.raises(UnsupportedQuery, match=known):
        find(file, "hdf5 ^mpi")
    with pytest.raises(
        UnsupportedQuery, match=r"for '\^blas'; build it from an index or a mirror$"
    ):
        find(file, "hdf5 ^blas")


def test_what_records_say_is_known_as_well(tmp_path: Path) -> None:
    """A provider that a dependency of the index names beside that of the data."""
    needs = [{"name": "mpi", "description": "The package mpich."}]
    data = write_packages(
        tmp_path / "data",
        published("mpich", dependencies=described("openmpi")),
        published("hdf5", dependencies=needs),
    )
    (tmp_path / "index.json").write_bytes(
        index(
            record(node("hdf5", edge("openmpi", "link", virtuals=("mpi",)))),
            record(node("openmpi", edge("zlib", "link"))),
            record(node("mpich")),
            record(node("zlib")),
        )
    )
    build([tmp_path / "index.json", data], tmp_path / "x.db")

    assert {package for package, _ in found(tmp_path / "x.db", "mpi")} == {
        "mpich",
        "openmpi",
    }
    assert {package for package, _ in found(tmp_path / "x.db", "mpi ^zlib")} == {
        "openmpi"
    }
    assert {package for package, _ in found(tmp_path / "x.db", "hdf5 ^mpi")} == {"hdf5"}


@pytest.mark.parametrize("version", ["5", "6"])
def test_known_providers_answer_for_old_indexes(version: str, tmp_path: Path) -> None:
    """Their edges do not say what they provide: the others are not known to need it,
    and a note.
    """
    needs = [{"name": "mpi", "description": "The package mpich."}]
    data = write_packages(
        tmp_path / "data", published("mpich"), published("a", dependencies=needs)
    )
    old = (
        old_node("a", version, "mpich"),
        old_node("b", version, "a"),
        old_node("c", version),
    )
    records = [record(each) for each in (*old, old_node("mpich", version))]
    (tmp_path / "index.json").write_bytes(index(*records, version=version))
    build([tmp_path / "index.json", data], tmp_path / "x.db")

    assert {package for package, _ in found(tmp_path / "x.db", "^mpi")} == {"a", "b"}
    assert {package for package, _ in found(tmp_path / "x.db", "b ^mpi")} == {"b"}
    assert {package for package, _ in found(tmp_path / "x.db", "%mpi")} == {"a"}
    for text in ("^blas", "^mpi=mpich"):
        assert find(tmp_path / "x.db", text) == []

    conn = sqlite3.connect(tmp_path / "x.db")
    notes = Question(read_lookups(conn), parse_query("c ^mpi")).notes
    conn.close()

    assert any("known to be provided by mpich" in note for note in notes)
