"""What is Spack's fault, and what only lacks a binary, is told apart."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.configurations import Candidates
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.explanation import why_not
from spack_cache_db.query.packages import recipe_notes
from spack_cache_db.spack.parser import parse_query
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, write


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of one binary, and of what Spack has beside it."""
    folder = tmp_path_factory.mktemp("notes")
    variants = [
        {"name": name, "default": False, "description": ""} for name in ("mpi", "shared", "cuda")
    ]
    virtual = [{"name": "blas", "description": "The package b."}]
    a = published("a", "3.0", "2.1", "1.0", "main", variants=variants, dependencies=virtual)
    data = write_packages(folder / "data", a, published("b", "1.0"), published("bare"))
    one = spec(1, versions=["1.0"], variants=["~mpi", "+shared"])
    build([write(folder / "pages", a=page("a", "develop", [one])), data], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a@5.0", ["Spack has no version 5.0 of a, its newest is 3.0"]),
        ("a@2:3", ["Spack has version 3.0 of a, no binary has it"]),
        ("a@1.0 +mpi", []),
        ("a+mpl", ["Spack has no variant 'mpl' of a (near: mpi)"]),
        ("a+cuda", ["Spack has the variant 'cuda' of a, no binary has it"]),
        ("a patches=0123", []),
        ("b", []),
        ("b@2", ["Spack has no version 2 of b, its newest is 1.0"]),
        ("bare@2 +x", []),
        ("blas", []),
        ("unknown", []),
        ("+mpi", []),
    ],
)
def test_what_spack_lacks_is_told(text: str, expected: list[str], conn: sqlite3.Connection) -> None:
    """Nothing is said of what the data does not tell."""
    assert [*recipe_notes(read_lookups(conn), parse_query(text))] == expected


def test_the_reasons_of_an_empty_answer_have_it(conn: sqlite3.Connection) -> None:
    """Behind what the binaries tell."""
    lookups = read_lookups(conn)
    for text in ("a@5.0", "b@2"):
        query = parse_query(text)
        why = why_not(Candidates(lookups), query)
        assert why.sentences()[-1] == recipe_notes(lookups, query)[-1]
