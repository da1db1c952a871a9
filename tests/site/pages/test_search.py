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
from spack_cache_db.site.pages.names import LONGEST, Name, having, load_names, suggested
from spack_cache_db.site.pages.search import NO_TIME, FindPage, load_find
from tests.site.addresses import get


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
    assert "No package matches “nothingelse”" in words
    assert re.search(r'As a spec: <a href="/find\?q=hdf5%20[^"]*release=develop">', words)
    assert 'Perhaps you mean <a href="/find?q=hdf5%20target%3Dzen3%20%25gcc">' in misplaced.text


@pytest.fixture(scope="module")
def names(lookups: Lookups) -> tuple[Name, ...]:
    """Every name of the invented cache."""
    return load_names(lookups)


def test_part_of_a_name(names: tuple[Name, ...]) -> None:
    """Names that begin with the text come first, of every kind; eight are suggested."""
    found = [(each.kind, each.name) for each in having(names, "E4")]

    assert found == [("stack", "e4s"), ("stack", "e4s-arm")]
    assert [each.name for each in having(names, "vision")] == ["py-torchvision"]
    assert [each.name for each in having(names, "h")][:3] == ["hdf5", "hostile", "hep"]
    assert {"gcc": "compiler", "rhel8": "os"}.items() <= {
        each.name: each.kind for each in names
    }.items()
    assert having(names, "x" * (LONGEST + 1)) == having(names, " ") == []
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
