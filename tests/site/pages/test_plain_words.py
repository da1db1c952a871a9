"""Plain words in place of a spec: each means what the file has under that name."""

from __future__ import annotations

import sqlite3
from typing import Any
from urllib.parse import quote_plus

import pytest

from spack_cache_db.query.answers import find
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.plain_words import Reading, read_words
from tests.site.addresses import get


def reading(conn: sqlite3.Connection, text: str) -> Reading | None:
    """Return what words ask for."""
    return read_words(conn, read_lookups(conn), text)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hdf5 zen3", "hdf5 target=:zen3"),
        ("torch aarch64", "py-torch target=aarch64:"),
        ("netcdf-c 4.9", "netcdf-c@4.9"),
        ("hdf5 with mpi", "hdf5 +mpi"),
        ("spack install hdf5", "hdf5"),
        ("spack install hdf5@1.14 +mpi", "hdf5@1.14 +mpi"),
        ("ubuntu24.04", "os=ubuntu24.04"),
        ("gcc@13", "%gcc@13"),
        ("gcc-13", "%gcc@13"),
        ("gcc 11", "%gcc@11"),
        ("hdf5 gcc 11.4", "hdf5 %gcc@11.4"),
        ("hdf5 1.14 gcc 13", "hdf5@1.14 %gcc@13"),
        ("hdf5 built with gcc for linux", "hdf5 platform=linux %gcc"),
        ("zen4", "target=:zen4"),
        ("aarch64", "target=aarch64:"),
        ("HDF5, MPI", "hdf5 +mpi"),
        ("I want torch with cuda", "py-torch +cuda"),
        ("torch cuda rhel8", "py-torch +cuda os=rhel8"),
        ("/aaaaaaa", "/aaaaaaa"),
        ("aaaa", "/aaaa"),
        ("dddd", "/dddd"),
        ("zlib shared", "zlib +shared"),
        ("zlib @1.3 shared", "zlib@1.3 +shared"),
        ("hdf5 %gcc@13 target=zen3", "hdf5 target=zen3 %gcc@13"),
        ("hdf5 on icelake", "hdf5 target=:icelake"),
        ("hdf5 ubuntu24.04 zen3 gcc@13", "hdf5 os=ubuntu24.04 target=:zen3 %gcc@13"),
    ],
)
def test_words_are_a_spec(conn: sqlite3.Connection, text: str, spec: str) -> None:
    """Words are read as somebody means them who does not know Spack's syntax."""
    assert reading(conn, text) == Reading(spec)


def test_places_narrow(conn: sqlite3.Connection) -> None:
    """A release and a stack among the words narrow the answer."""
    assert reading(conn, "hdf5 in develop for hep") == Reading("hdf5", "develop", "hep")
    assert reading(conn, "e4s v0.23.1") == Reading("", "v0.23.1", "e4s")


@pytest.mark.parametrize(
    "text", ["", "with", "torch", "hdf5 nothingelse", "xyz", "12", "x " * 40, "1.2 3"]
)
def test_what_means_nothing_is_not_guessed(conn: sqlite3.Connection, text: str) -> None:
    """One word that the file does not know, and nothing is read."""
    assert reading(conn, text) is None


def test_every_reading_can_be_asked(conn: sqlite3.Connection) -> None:
    """What is read is a spec that the file can answer."""
    words = ("hdf5", "mpi", "zen3", "gcc", "13", "develop", "ubuntu24.04", "linux", "torch", "cuda")
    for first in words:
        for second in words:
            found = reading(conn, f"{first} {second}")
            if found is not None and found.spec:
                find(conn, found.spec, release=found.release, stack=found.stack)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hdf5 with mpi", "/find?q=hdf5+%2Bmpi"),
        ("spack install hdf5", "/find?q=hdf5"),
        ("hdf5 zen3 develop", "/find?q=hdf5+target%3D%3Azen3&release=develop"),
        ("zen4", "/packages?host=zen4"),
        ("aarch64", "/packages?has=aarch64"),
        ("gcc@13", "/find?q=%25gcc%4013"),
        ("e4s develop", "/packages?release=develop&stack=e4s"),
        ("dddd", "/find?q=%2Fdddd"),
    ],
)
async def test_the_search_box_takes_words(datasette: Any, text: str, address: str) -> None:
    """Plain words lead to the spec that they mean, which stands in the box and can be changed."""
    answer = await get(datasette, f"/find?q={quote_plus(text)}")

    assert answer.status_code == 302, answer.text
    assert answer.headers["location"] == address
    assert (await get(datasette, address)).status_code in (200, 302)


@pytest.mark.asyncio
async def test_words_that_mean_nothing_lead_to_names(datasette: Any) -> None:
    """The names of packages with one of the words are listed; the parser speaks last."""
    answer = await get(datasette, "/find?q=fast+hdf5+please+unknown")

    assert "Nothing here matches all of these words" in answer.text
    assert 'href="/package/hdf5"' in answer.text
