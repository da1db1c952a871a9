"""Facets that are counted once say what Datasette's own say, and stay small."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from datasette import facets as datasette_facets

from spack_cache_db.site.datasette065 import (
    MOST_KEPT,
    MOST_ROWS,
    KeptFacet,
    Remembering,
)
from spack_cache_db.site.datasettes import Recent
from tests.site.conftest import site

TABLE = "/spack-cache/configurations.json"
QUERIES = (
    "",
    "?compiler=1",
    "?_search=hdf5",
    "?_size=2",
    "?_size=2&_next=2",
    "?_facet_size=1",
    "?_facet=platform",
    "?_nofacet=1",
)
OTHERS = ("versions", "targets", "variants", "pages", "facet_values", "problems")


async def facets(datasette: Any, address: str) -> Any:
    """The facets of a table's page."""
    answer = await datasette.client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.json()["facet_results"]


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "address",
    [*(TABLE + query for query in QUERIES), *(f"/spack-cache/{name}.json" for name in OTHERS)],
)
async def test_facets_are_datasettes_own(
    datasette: Any, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Values, labels, counts and links are those of Datasette's facets, also the second time."""
    found = [await facets(datasette, address) for _ in range(2)]
    monkeypatch.setattr(datasette_facets, "ColumnFacet", KeptFacet.__base__)
    expected = await facets(datasette, address)

    assert found == [expected, expected]
    assert expected or "_nofacet" in address


@pytest.mark.asyncio
async def test_a_facet_is_shown_once(datasette: Any) -> None:
    """A facet that the address asks for as well is shown once, and can be taken away again."""
    found = await facets(datasette, f"{TABLE}?_facet=compiler")

    assert sorted(found) == ["compiler", "os", "target"]
    assert {name for name, facet in found.items() if facet["hideable"]} == {"compiler"}


@pytest.mark.asyncio
@pytest.mark.parametrize(("immutable", "again"), [(True, 0), (False, 3)])
async def test_only_a_file_that_may_change_is_counted_again(
    database: Path, asked: list[str], immutable: bool, again: int
) -> None:
    """The same page asked again counts no column, unless the file is not served as immutable."""
    served = site(database, immutable=immutable)

    counts = []
    for _ in range(2):
        await facets(served, TABLE)
        counts.append(sum("as value, count(*) as count" in sql for sql in asked))

    assert counts == [3, 3 + again]


@pytest.mark.asyncio
@pytest.mark.parametrize("immutable", [True, False])
async def test_labels_are_looked_up_once(database: Path, asked: list[str], immutable: bool) -> None:
    """The same rows have the same labels the second time, which are not looked up again."""
    served = site(database, immutable=immutable)
    pages, counts = [], []
    for _ in range(2):
        answer = await served.client.get("/spack-cache/configurations")
        pages.append(re.findall("<td.*?</td>", answer.text))
        counts.append(sum("where id in (?" in sql for sql in asked))

    assert pages[0] == pages[1]
    assert any("gcc@" in cell for cell in pages[0])
    assert (counts[0] > 0, counts[1] == counts[0]) == (True, immutable)


class Reader:
    """Stands for Datasette: counts what it is asked, and answers with so many rows."""

    name = "reader"

    def __init__(self, rows: int = 1) -> None:
        self.rows = rows
        self.asked = 0

    async def execute(self, database: str, sql: str, params: Any, **options: Any) -> list[int]:
        """Answer a query."""
        self.asked += 1
        return [0] * self.rows


@pytest.mark.asyncio
async def test_the_memory_is_bounded() -> None:
    """Only so much is remembered; what was not asked for the longest is forgotten first."""
    reader, recent = Reader(), Recent(MOST_KEPT)
    remembering = Remembering(reader, recent)
    for number in range(MOST_KEPT + 1):
        await remembering.execute("file", "first", {})
        await remembering.execute("file", "other", {"p0": number})

    assert len(recent) == MOST_KEPT
    assert reader.asked == MOST_KEPT + 2


@pytest.mark.asyncio
@pytest.mark.parametrize(("rows", "text"), [(MOST_ROWS + 1, "short"), (1, "long" * 1_000)])
async def test_nothing_large_is_remembered(rows: int, text: str) -> None:
    """Neither an answer of many rows nor one to a long search is remembered."""
    reader, recent = Reader(rows), Recent(MOST_KEPT)

    for _ in range(2):
        await Remembering(reader, recent).execute("file", "select", {"p0": text})

    assert (reader.asked, len(recent)) == (2, 0)


def test_the_rest_is_datasettes() -> None:
    """Everything else that a facet asks Datasette for is Datasette's."""
    assert Remembering(Reader(), Recent(1)).name == "reader"
