"""What a file says of itself: counts, whose build cache it holds, examples of
queries.
"""

import json
import sqlite3
from importlib.metadata import version
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.open.info import info
from spack_cache_db.query.open.sql import connected
from spack_cache_db.query.stored.origin import (
    Origin,
    origin_facts,
    read_examples,
    read_origin,
)
from spack_cache_db.schema.identity import SCHEMA_VERSION
from tests.conftest import Build
from tests.indexes import REAL_FILE, index, node, record
from tests.pagetexts import page, spec, write


def test_what_is_in_the_samples(samples_file: Path) -> None:
    """Counts, eras, kinds of releases and days are those of the five sample pages."""
    found = info(samples_file)

    assert found.pop("looked_at")
    assert found == {
        "file": str(samples_file),
        "size": samples_file.stat().st_size,
        "schema_version": SCHEMA_VERSION,
        "pages": 5,
        "indexes": 0,
        "records": 0,
        "listings": 425,
        "specs": 413,
        "configurations": 24,
        "dependencies": 0,
        "packages": 4,
        "releases": 2,
        "stacks": 13,
        "problems": 0,
        "known_packages": 0,
        "pages_by_format": {"A": 4, "B": 1},
        "indexes_by_format": {},
        "compared_with_spack": {},
        "releases_by_kind": {"branch": 1, "snapshot": 1},
        "first_snapshot": "2025-04-20",
        "last_snapshot": "2025-04-20",
        "as_of": "2025-04-20",
        "origin": {
            "archspec": version("archspec"),
            "spack-cache-db": version("spack-cache-db"),
            "data_license": "Apache-2.0",
            "mirror_url": "https://binaries.spack.io",
            "source_url": "https://cache.spack.io/",
        },
    }


def test_what_is_in_the_file_of_an_index(tmp_path: Path) -> None:
    """Indexes, records and dependencies are counted too; externals are no binaries of
    ours.
    """
    build(REAL_FILE, tmp_path / "x.db")
    found = info(tmp_path / "x.db")
    names = (
        "pages",
        "indexes",
        "records",
        "listings",
        "specs",
        "dependencies",
        "packages",
    )

    assert [found[name] for name in names] == [0, 1, 905, 883, 883, 6115, 226]
    assert (found["pages_by_format"], found["indexes_by_format"]) == ({}, {"8": 1})


PUBLIC = "Spack's public build cache"
CACHE = "https://cache.spack.io/"
BINARIES = "https://binaries.spack.io/develop"
OWN = "https://cache.example.org/v1"
A = "Build cache of a.org"
BOTH = "file:///srv/mirror and ghcr.io"


@pytest.mark.parametrize(
    ("urls", "has_pages", "expected"),
    [
        ((), True, Origin("Spack build cache", PUBLIC, CACHE, True)),
        (
            (BINARIES, f"{BINARIES}/e4s"),
            False,
            Origin("Spack build cache", PUBLIC, CACHE, True),
        ),
        (
            (OWN,),
            False,
            Origin(
                f"Build cache of {OWN[8:-3]}", f"the mirror at {OWN[8:-3]}", OWN, False
            ),
        ),
        (
            ("https://a.org/e4s", "https://a.org/hep", None),
            False,
            Origin(A, "the mirror at a.org and a mirror", None, False),
        ),
        (
            ("oci://ghcr.io/me/cache", BOTH[:18]),
            False,
            Origin(f"Build caches of {BOTH}", f"mirrors at {BOTH}", None, False),
        ),
        ((None,), False, Origin("Build cache", "a mirror", None, False)),
        (
            ("https://a.org",),
            True,
            Origin(A, f"{PUBLIC} and the mirror at a.org", None, False),
        ),
    ],
)
def test_whose_it_is(
    urls: tuple[str | None, ...], has_pages: bool, expected: Origin, tmp_path: Path
) -> None:
    """Pages, and mirrors in the public cache, are Spack's; others are called by their
    hosts.
    """
    for number, url in enumerate(urls):
        folder = tmp_path / "input" / "develop" / f"stack{number}"
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(record(node(f"n{number}"))))
        if url:
            (folder / "mirror.json").write_text(json.dumps({"url": url}))
    if has_pages:
        write(tmp_path / "input", page=page())
    build(tmp_path / "input", tmp_path / "x.db")

    with connected(tmp_path / "x.db") as conn:
        assert read_origin(conn) == expected
        facts = origin_facts(conn)
    # The rows of the table `origin` have what is known of this, and nothing else.
    assert facts.get("source_url") == expected.url
    assert facts.get("data_license") == ("Apache-2.0" if expected.is_public else None)
    known = {url for url in urls if url and "binaries.spack.io" not in url}
    mirrors = set(facts.get("mirror_url", "").split())
    assert mirrors >= known
    assert all("binaries.spack.io" in url for url in mirrors - known)


@pytest.mark.parametrize(
    "file", ["samples", "all_samples", "real_index", "all_sources"]
)
def test_examples_find_something(file: str, request: pytest.FixtureRequest) -> None:
    """Whatever a file holds, each of its examples has an answer in it."""
    conn: sqlite3.Connection = request.getfixturevalue(file)
    examples = read_examples(conn)

    assert examples
    for query in examples:
        assert find(conn, query), query


def test_what_is_well_known_comes_first(built: Build) -> None:
    """A package that many know comes first, with a variant that it has."""
    of_foo = [spec(number) for number in range(9)]
    without_mpi = spec(11, variants=["~mpi", "+shared"], compiler="gcc@12.1.0")
    with_mpi = spec(12, variants=["+mpi", "+shared"], target="zen3")
    conn = built(
        a=page("foo", specs=of_foo), b=page("hdf5", specs=[without_mpi, with_mpi])
    )

    assert read_examples(conn) == ("hdf5 +mpi", "foo")
