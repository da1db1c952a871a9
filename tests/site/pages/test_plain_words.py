"""Plain words in place of a spec: each means what the file has under that name."""

import html
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.database_file import open_database
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.words.reader import read_words
from spack_cache_db.query.words.reading import Reading
from tests.pagetexts import page, spec, write
from tests.site.addresses import get

TOKEN = re.compile(
    r'<li class="token"><span>(.*?)</span><b>(.*?)</b>(.*?)</li>', re.DOTALL
)
MACHINE = re.compile(r" ?target=:(\w+)")


def reading(conn: sqlite3.Connection, text: str) -> Reading | None:
    """Return what words ask for, without the words themselves."""
    found = read_words(read_lookups(conn), text)
    return found and replace(found, package="", rest=(), switches=())


def read_as(spec: str, **more: Any) -> Reading:
    """Return the reading that asks for a spec, whose machine stands beside it."""
    machine = MACHINE.search(spec)
    return Reading(MACHINE.sub("", spec).strip(), host=machine and machine[1], **more)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hdf5 zen3", "hdf5 target=:zen3"),
        ("torch aarch64", "py-torch target=aarch64:"),
        ("netcdf-c 4.9", "netcdf-c@4.9"),
        ("hdf5 with mpi", "hdf5 +mpi"),
        ("gcc-13", "%gcc@13"),
        ("hdf5 gcc 11.4", "hdf5 %gcc@11.4"),
        ("hdf5 built with gcc for linux", "hdf5 platform=linux %gcc"),
        ("torch cuda rhel8", "py-torch +cuda os=rhel8"),
        ("aaaa", "/aaaa"),
        ("zlib @1.3 shared", "zlib@1.3 +shared"),
        ("hdf5 ubuntu24.04 zen3 gcc@13", "hdf5 os=ubuntu24.04 target=:zen3 %gcc@13"),
    ],
)
def test_words_are_a_spec(conn: sqlite3.Connection, text: str, spec: str) -> None:
    """Words are read as somebody means them who does not know Spack's syntax."""
    assert reading(conn, text) == read_as(spec)


def test_places_narrow(conn: sqlite3.Connection) -> None:
    """A release and a stack among the words narrow the answer."""
    assert reading(conn, "hdf5 in develop for hep") == Reading("hdf5", "develop", "hep")
    assert reading(conn, "e4s v0.23.1") == Reading("", "v0.23.1", "e4s")


def test_a_system_without_a_name_is_part_of_none(tmp_path: Path) -> None:
    """A page may say an empty name: words are read as they are without it."""
    pages = write(
        tmp_path / "pages", zlib=page("zlib", specs=[spec(1, os=""), spec(2)])
    )
    build([str(pages)], tmp_path / "built.db")

    with closing(open_database(tmp_path / "built.db")) as conn:
        assert reading(conn, "zlib ubuntu") == Reading("zlib os=ubuntu24.04")
        assert reading(conn, "fuzz") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hdf5 nothingelse", Reading("hdf5", left_out=("nothingelse",))),
        ("fast hdf5 please unknown", Reading("hdf5", left_out=("fast", "unknown"))),
        ("torch without zlib", Reading("py-torch", left_out=("without zlib",))),
        # Of a platform, a system and a target in one word, all count or none.
        ("hdf5 linux-foo-bar", Reading("hdf5", left_out=("linux-foo-bar",))),
        (
            "hdf5 linux-ubuntu22.04-foo",
            Reading("hdf5", left_out=("linux-ubuntu22.04-foo",)),
        ),
        ("hdf5 linux-foo-zen3", Reading("hdf5", left_out=("linux-foo-zen3",))),
        ("python_pip", Reading("", words=("python_pip",))),
        (
            "torch python_pip zen3",
            read_as("py-torch target=:zen3", words=("python_pip",)),
        ),
        ("torch cuda 12", Reading("py-torch +cuda", left_out=("12",))),
    ],
)
def test_other_words_are_looked_for(
    conn: sqlite3.Connection, text: str, expected: Reading
) -> None:
    """What is no part of a spec is looked for in configurations; what none has is left
    out.
    """
    assert reading(conn, text) == expected


@pytest.mark.parametrize(
    "text", ["", "with", "xyz", "12", "x " * 40, "1.2 3", 'a"b', "* OR"]
)
def test_what_means_nothing_is_not_guessed(conn: sqlite3.Connection, text: str) -> None:
    """Where the file knows none of the words, nothing is read."""
    assert reading(conn, text) is None


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("kokkos cuda 12.4", "kokkos +cuda ^cuda@12.4"),
        ("petsc openmpi 5", "petsc ^openmpi@5"),
        ("openmpi without cuda", "openmpi ~cuda"),
        ("python mpi4py", "py-mpi4py"),
        ("oneapi", "%intel-oneapi-compilers"),
        ("clang 17", "%llvm@17"),
        ("x86-64-v3", "target=:x86_64_v3"),
        ("arm64", "target=aarch64:"),
        ("hdf5 on mac", "hdf5 platform=darwin"),
        ("ubuntu 24.04 zlib", "zlib os=ubuntu24.04"),
        ("what is there for zen4?", "target=:zen4"),
        ("hdf5 1.14.x", "hdf5@1.14"),
        ("build_type=Release zstd", "zstd build_type=Release"),
    ],
)
def test_words_are_a_spec_of_an_index(
    real_index: sqlite3.Connection, text: str, spec: str
) -> None:
    """Where dependencies are known, another package among the words is one."""
    assert reading(real_index, text) == read_as(spec)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        # Systems with less of their version than the file has, or more; by other names;
        # unknown.
        ("jammy", "os=ubuntu22.04"),
        ("rhel 8.9", "os=rhel8"),
        ("debian", "os=debian12"),
        ("amazon linux", "os=amzn2023"),
        ("macos", "platform=darwin"),
        ("linux-ubuntu22.04-zen3", "platform=linux os=ubuntu22.04 target=:zen3"),
        # Processors by the names of those who sell them.
        ("apple silicon", "target=:m1"),
        ("apple m2", "platform=darwin target=:m2"),
        ("epyc milan hdf5", "hdf5 target=:zen3"),
        ("ice lake", "target=:icelake"),
        ("avx512", "target=:x86_64_v4"),
        ("zlib graviton3 arm64", "zlib target=:neoverse_v1"),
        # Compilers by the names of their commands; languages; virtual packages.
        ("gfortran 13", "%gcc@13"),
        ("kokkos radeon", "kokkos +rocm"),
        ("parallel hdf5", "hdf5 +mpi"),
        ("acl automake", "acl ^automake"),
        # Versions as other programs write them.
        ("hdf5 >= 1.12", "hdf5@1.12:"),
        ("cmake-3.27.9", "cmake@3.27.9"),
        ("hdf5 (1.14.3)", "hdf5@1.14.3"),
        # Sentences, commands of other programs, other languages.
        ("conda install python=3.11", "python@3.11"),
        ("comment installer hdf5 avec mpi pour zen3", "hdf5 +mpi target=:zen3"),
    ],
)
def test_words_are_what_people_call_things(
    all_sources: sqlite3.Connection, text: str, spec: str
) -> None:
    """Systems, processors, compilers and versions have other names than Spack's."""
    assert reading(all_sources, text) == read_as(spec)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hdf5 with mpi", "/package/hdf5?variant=%2Bmpi"),
        ("python torch", "/package/py-torch"),
        ("https://github.com/HDFGroup/hdf5/issues", "/package/hdf5"),
        ("zen4", "/packages?host=zen4"),
        ("aarch64", "/packages?has=aarch64"),
        ("rhel8", "/packages?os=rhel8"),
        ("gcc", "/packages?compiler=gcc"),
        ("Py_Torch", "/package/py-torch"),
        ("DDDDDDD", "/spec/ddddddd"),
        ("develop", "/release/develop"),
        ("E4S", "/stack/e4s"),
    ],
)
async def test_the_search_box_takes_words(
    datasette: Any, text: str, address: str
) -> None:
    """Plain words lead to the page of the package, release or stack that they name."""
    answer = await get(datasette, f"/find?q={quote_plus(text)}")

    assert answer.status_code == 302, answer.text
    assert answer.headers["location"] == address
    assert (await get(datasette, address)).status_code in (200, 302)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hdf5@1.12 for my zen3", ["package hdf5@1.12", "machine zen3"]),
        ("pytorch epyc milan", ["package py-torch", "machine zen3"]),
        ("gcc@13", ["compiler gcc 13"]),
        ("gcc 13", ["compiler gcc 13"]),
        ("%gcc@13", ["compiler gcc 13"]),
        ("e4s develop", ["stack e4s", "release develop"]),
        ("almalinux 8", ["system almalinux8"]),
        ("hdf5 with mpi arm", ["package hdf5", "option +mpi", "machine any aarch64"]),
    ],
)
async def test_what_was_understood_can_be_removed(
    datasette: Any, text: str, expected: list[str]
) -> None:
    """The box keeps the words, and each part of the answer is a token with a link to
    the search without it.
    """
    answer = await get(datasette, f"/find?q={quote_plus(text)}")

    assert answer.status_code == 200, answer.text
    assert f'name="q" value="{text}"' in answer.text
    tokens = TOKEN.findall(answer.text)
    assert [f"{label} {part}" for label, part, _ in tokens] == expected
    for _, part, links in tokens:
        removing = re.findall(r'href="([^"]*)" aria-label="Remove', links)
        assert len(removing) == 1, part
        without = await get(datasette, html.unescape(removing[0]))
        assert without.status_code in (200, 302)


@pytest.mark.asyncio
async def test_a_typed_machine_replaces_the_chosen_one(datasette: Any) -> None:
    """In words and in a spec, and the page says so."""
    for text in ("hdf5 for arm", "hdf5 target=aarch64:"):
        answer = await get(datasette, f"/find?q={quote_plus(text)}&host=zen3")
        assert "You typed a machine, so your zen3 is not used." in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "text", ["zlib==1.3", "zlib=1.3", "zlib >= 1.3, < 1.4", "zlib~=1.3.0"]
)
async def test_versions_of_other_package_managers_are_answered(
    datasette: Any, text: str
) -> None:
    """A version as pip or conda writes it is read as Spack's, in the page and in its
    JSON.
    """
    page = await get(datasette, f"/find?q={quote_plus(text)}")
    rows = (await get(datasette, f"/find.json?q={quote_plus(text)}")).json()

    assert page.status_code == 200
    assert "in Spack, a version is written behind an @" in page.text
    assert {row["package"] for row in rows} == {"zlib"}


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["newest", "with", "please the"])
async def test_words_that_mean_nothing_are_quoted(datasette: Any, text: str) -> None:
    """A search for words that are left out elsewhere says which words it searched
    for.
    """
    page = await get(datasette, f"/find?q={quote_plus(text)}")

    assert f"“{text.split()[0]}" in page.text
    assert "“”" not in page.text


@pytest.mark.asyncio
async def test_other_words_are_answered_with_rows(datasette: Any) -> None:
    """Where no package is meant; values narrow the rows."""
    page = (await get(datasette, "/find?q=python_pip")).text

    assert "<span>words</span><b>python_pip</b>" in page
    assert '<a href="/package/py-torch">py-torch</a>' in page
    assert (
        'href="/find?q=py-torch%20python_pip">py-torch</a> <span class="quiet">2</span>'
        in page
    )


@pytest.mark.asyncio
async def test_a_compiler_leads_to_what_it_built(index_site: Any) -> None:
    """The name of a compiler that is a package as well leads to what the compiler
    built.
    """
    package = (await get(index_site, "/package/llvm")).text
    llvm = (await get(index_site, "/packages?compiler=llvm")).text
    gcc = (await get(index_site, "/find?q=gcc@13")).text

    assert '<a href="/packages?compiler=llvm">' in package
    assert '<a href="/package/bzip2?compiler=llvm">' in llvm
    assert "<b>gcc 13</b>" in gcc
    assert re.search(r"packages? ha(s|ve) a binary built with gcc 13", gcc)


@pytest.mark.asyncio
async def test_the_search_box_takes_commands(datasette: Any) -> None:
    """A command is answered for its spec, and the page says what was skipped."""
    command = "[me@login ~]$ spack install --fresh -j 8 'hdf5 os=debian12'"
    answer = await get(datasette, f"/find?q={quote_plus(command)}")

    assert answer.status_code == 200, answer.text
    assert "skipped: install --fresh -j 8" in answer.text
