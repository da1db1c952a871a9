"""What people call a thing finds the package that does it."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.packages import described_packages, summary_of
from tests.package_data import described, published, write_packages
from tests.paths import DATA

SEARCHES = {
    "fast fourier transform": "fftw",
    "python bindings for MPI": "py-mpi4py",
    "json library": "json-c",
    "xml parser": "expat",
    "message passing interface": "mpich",
    "sparse solvers on gpus": "ghost",
    "compile flags config": "pkgconfig",
    "secure sockets tls": "openssl",
    "geospatial raster": "gdal",
    "lossless compression": "zstd",
    "density functional theory": "octopus",
    "finite elements": "mfem",
}


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of the descriptions of 1,170 of Spack's packages, and of their dependents."""
    folder = tmp_path_factory.mktemp("descriptions")
    texts = json.loads(gzip.decompress((DATA / "descriptions.json.gz").read_bytes()))
    packages = [
        published(
            name, description=text, dependent_to=described(*(f"u{at}" for at in range(count)))
        )
        for name, (text, count) in texts.items()
    ]
    build(write_packages(folder / "in", *packages), folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("text", SEARCHES)
def test_a_search_has_what_people_expect_among_the_first_three(
    text: str, conn: sqlite3.Connection
) -> None:
    """Words in any form and order, as people type them."""
    found = described_packages(conn, text, 3)
    assert SEARCHES[text] in found


def test_a_name_comes_before_a_description(conn: sqlite3.Connection) -> None:
    """And nothing is found by no word, or by one that nobody uses."""
    assert described_packages(conn, "hdf5", 3)[0] == "hdf5"
    for nothing in ("", "zzzz", '"', "* ( ^", "of the"):
        assert described_packages(conn, nothing, 3) == []


def test_a_summary_is_one_printable_line() -> None:
    """The first sentence, or the beginning of a long one."""
    assert summary_of("FFTW is a library\nfor 3.14 things. It is fast.\n") == (
        "FFTW is a library for 3.14 things."
    )
    assert summary_of("a\x1b[31m\u202e") == "a\\x1b[31m\\u202e"
    assert len(summary_of("word " * 100)) <= 160
