"""What a search leads to, and what a word in the search box names."""

from __future__ import annotations

import html
import re
import sqlite3
from dataclasses import replace
from typing import Any
from urllib.parse import quote_plus, unquote

import pytest

from spack_cache_db.query.database import Lookups
from spack_cache_db.query.names import read_spellings
from spack_cache_db.site.pages.filters import Narrowing
from spack_cache_db.site.pages.names import LONGEST, Name, having, load_names, named, suggested
from spack_cache_db.site.pages.search import NO_TIME, FindPage, load_find
from tests.site.addresses import get


@pytest.mark.parametrize(
    ("text", "said"),
    [("hdf5 +", "name of a variant"), ("hdf5 ^mpich", "no dependency data")],
)
def test_search_says_what_is_wrong(lookups: Lookups, text: str, said: str) -> None:
    """A text that is no spec, or that pages cannot answer, has a reason and no rows."""
    page = load_find(lookups, text)

    assert page.error is not None and said in page.error
    assert page.answer is None


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("hdf5 +cuda", ["without +cuda: 5 configurations; none has a variant cuda"]),
        (
            "hdf5@1.14 target=m1",
            ["with target=:m1: 1 configuration; aarch64 runs on m1"],
        ),
        ("hdf@1", ["hdf: no package has this name (near: hdf5@1)"]),
    ],
)
def test_search_says_why_nothing_is_found(
    lookups: Lookups, text: str, sentences: list[str]
) -> None:
    """Conditions without which something is found are named, and names that are close."""
    page = load_find(lookups, text)

    assert page.why is not None
    assert [*page.why.sentences()] == sentences


def test_search_corrects_what_is_misplaced(lookups: Lookups) -> None:
    """What stands behind a compiler is offered before it."""
    page = load_find(lookups, "hdf5 %gcc@13 target=:zen3")

    assert page.error is not None and "what follows %gcc" in page.error
    assert page.why is not None and page.why.corrected == "hdf5 target=:zen3 %gcc@13"


def test_no_time_to_say_why_is_no_error(lookups: Lookups) -> None:
    """Whenever its time is over after the answer itself is known, the answer is given without."""

    def asked(steps: int) -> FindPage | None:
        left = iter(range(steps))
        lookups.conn.set_progress_handler(lambda: next(left, None) is None, 10)
        try:
            return load_find(lookups, "+cuda target=aarch64")
        except sqlite3.OperationalError:
            return None
        finally:
            lookups.conn.set_progress_handler(None, 0)

    hasty = next(page for steps in range(100_000) if (page := asked(steps)) is not None)
    whole = asked(10**9)

    assert hasty.answer is not None and hasty.why is None
    assert hasty.notes == (NO_TIME,)
    assert whole is not None and whole.why is not None and whole.why.without
    assert replace(whole, why=None) == replace(hasty, notes=())


@pytest.mark.asyncio
async def test_the_ways_out_are_links(datasette: Any) -> None:
    """Each leads to the spec without what excludes everything, or to the one that is meant."""
    excluded = await datasette.client.get("/find?q=hdf5%401.14+%2Bcuda")
    misplaced = await datasette.client.get("/find?q=hdf5+%25gcc+target%3Dzen3")

    assert 'href="/find?q=hdf5%401.14">Without +cuda: 4 configurations' in excluded.text
    words = (await datasette.client.get("/find?q=hdf5+rhel8+aarch64+nothingelse+in+develop")).text
    assert "Nothing here matches “nothingelse”" in words
    assert re.search(r'As a spec: <a href="/find\?q=hdf5%20[^"]*release=develop">', words)
    assert 'Perhaps you mean <a href="/find?q=hdf5%20target%3Dzen3%20%25gcc">' in misplaced.text


def test_an_unknown_release_is_told(lookups: Lookups) -> None:
    """What no file has is an error in words."""
    page = load_find(lookups, "hdf5 +mpi", narrowing=Narrowing(release="v9"))

    assert page.error is not None
    assert "no release is called 'v9'" in page.error


def test_a_row_can_be_opened(lookups: Lookups) -> None:
    """All hashes of one row are shown, of those that the search found."""
    first = load_find(lookups, "hdf5 +mpi target=x86_64_v3 @1.14").answer
    assert first is not None
    (row,) = first.rows
    page = load_find(lookups, "hdf5 +mpi target=x86_64_v3 @1.14", opened=row.hashes[0])

    assert page.answer is not None
    assert len(page.answer.rows[0].hashes) == 7


@pytest.fixture(scope="module")
def names(lookups: Lookups) -> tuple[Name, ...]:
    """Every name of the invented cache."""
    return load_names(lookups)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hdf5", "/package/hdf5"),
        (" HDF5 ", "/package/hdf5"),
        ("Py_Torch", "/package/py-torch"),
        ("E4S_arm", "/stack/e4s-arm"),
        ("develop-2025-04-20", "/release/develop-2025-04-20"),
        ("V0.23.1", "/release/v0.23.1"),
        ("hep", "/stack/hep"),
        ("zen3", "/packages?host=zen3"),
        ("aarch64", "/packages?has=aarch64"),
        ("GCC", "/packages?compiler=gcc"),
        ("rhel8", "/packages?os=rhel8"),
        ("hdf", None),
        ("root", None),
        ("", None),
    ],
)
def test_a_name_has_a_page(
    lookups: Lookups, names: tuple[Name, ...], text: str, address: str | None
) -> None:
    """Packages, releases, stacks and targets lead to a page each, in any spelling."""
    found = named(names, read_spellings(lookups), text)

    assert (found and found.address) == address


def test_part_of_a_name(names: tuple[Name, ...]) -> None:
    """What begins with the text comes first, then what has it elsewhere, whatever its kind."""
    found = [(each.kind, each.name) for each in having(names, "E4")]

    assert found == [("stack", "e4s"), ("stack", "e4s-arm")]
    assert [each.name for each in having(names, "vision")] == ["py-torchvision"]
    assert [each.name for each in having(names, "h")][:3] == ["hdf5", "hostile", "hep"]
    assert {"gcc": "compiler", "rhel8": "os"}.items() <= {
        each.name: each.kind for each in names
    }.items()
    assert having(names, "x" * (LONGEST + 1)) == having(names, " ") == []


def test_suggestions_are_few(names: tuple[Name, ...]) -> None:
    """At most eight names, with what they are of."""
    assert suggested(names, "torchv") == [{"name": "py-torchvision", "kind": "package"}]
    assert len(suggested(names, "e")) == 8


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "place", "address"),
    [
        # As people write it: the compiler first, and the machine's own target.
        ("hdf5@1.14 %gcc@13 +mpi target=m1", "", "hdf5@1.14 +mpi target=:m1 %gcc@13"),
        ("hdf@1.14 +mpi", "&host=zen3", "hdf5@1.14 +mpi&host=zen3"),
        ("hdf5@1.9", "&release=v0.23.1", "hdf5@1.9"),
        ("hdf5@1.9 +mpi", "&release=v0.23.1&host=zen3", "hdf5 +mpi&release=v0.23.1&host=zen3"),
    ],
)
async def test_a_way_out_keeps_what_it_does_not_name(
    datasette: Any, text: str, place: str, address: str
) -> None:
    """A search without an answer is one link from what comes nearest, on the same machine."""
    page = await get(datasette, f"/find?q={quote_plus(text)}{place}")
    links = [
        unquote(html.unescape(each)) for each in re.findall(r'href="(/find\?q=[^"]*)"', page.text)
    ]

    assert f"/find?q={address}" in links
    for link in links:
        query, *rest = link.removeprefix("/find?q=").split("&")
        found = await get(datasette, f"/find.json?q={quote_plus(query)}&{'&'.join(rest)}")
        assert found.json(), link
