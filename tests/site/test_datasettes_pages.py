"""Datasette's own pages as this site serves them: links, data, and what visitors were promised."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from typing import Any

import pytest

from tests.site.addresses import DATASETTES, get


@pytest.mark.slow
@pytest.mark.asyncio
async def test_every_link_leads_somewhere(datasette: Any) -> None:
    """What Datasette's pages link to is there, and our list of tools leaves none of it out."""
    links = set()
    for path in DATASETTES:
        answer = await get(datasette, path)
        found = [unescape(each) for each in re.findall(r'(?:href|src)="(/[^"#]*)', answer.text)]
        assert found, path
        links |= {*{re.sub(r"\d+|=[^&]*", "", each): each for each in sorted(found)}.values()}

    for link in sorted(links):
        linked = await get(datasette, link)
        assert linked.status_code in (200, 302), (link, linked.text[:500])


@pytest.mark.asyncio
async def test_data_is_the_same_in_every_form(datasette: Any) -> None:
    """The rows of a table come as arrays, objects, lines, CSV and a CSV stream."""
    table = "/spack-cache/listings"
    objects = (await get(datasette, f"{table}.json?_shape=array&_size=max")).json()
    lines = (await get(datasette, f"{table}.json?_shape=array&_nl=on&_size=max")).text
    texts = [
        (await get(datasette, f"{table}.csv{query}")).text
        for query in ("?_size=max", "?_stream=on", "?_stream=on&_size=2")
    ]

    assert len(objects) == 56
    assert len(lines.splitlines()) == 56
    for text in texts:
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["spec"] for row in rows] == [str(each["spec"]) for each in objects]


@pytest.mark.asyncio
async def test_pages_of_json_lead_on(datasette: Any) -> None:
    """The Link header of a page of JSON leads to the next, until all rows were given."""
    address, found = "/spack-cache/specs.json?_shape=array&_size=10", []
    while address:
        answer = await get(datasette, address)
        found += [row["id"] for row in answer.json()]
        following = re.search(r'<http://[^/]+(/[^>]*)>; rel="next"', answer.headers.get("link", ""))
        address = following[1] if following else ""

    assert found == [*range(1, 24)]
