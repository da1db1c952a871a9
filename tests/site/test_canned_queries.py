"""The canned queries of metadata.yml, in whichever Datasette."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.many import EVERY_ANSWER
from tests.metadata import QUERIES
from tests.site.addresses import get


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("name", QUERIES)
async def test_every_query_has_a_page(datasette: Any, name: str) -> None:
    """Each has its title, a field for each parameter, and rows as JSON."""
    page = await get(datasette, f"/spack-cache/{name}")
    rows = await get(datasette, f"/spack-cache/{name}.json?_shape=array")

    assert page.status_code == rows.status_code == 200
    assert QUERIES[name]["title"] in page.text
    fields = re.findall(r'<input[^>]*name="(\w+)"', page.text)
    assert set(QUERIES[name].get("params", [])) <= {*fields}
    assert isinstance(rows.json(), list)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", {"missing_for_family", "newest_versions", "most_hashes"}),
        (
            "/package/hdf5?release=develop&host=zen3&version=1.9",
            {
                "targets_of_package?package=hdf5&release=develop",
                "releases_of_version?package=hdf5&version=1.9",
                "specs_of_package?package=hdf5&host=zen3",
                "variant_values_of_package?package=hdf5",
                "most_hashes?package=hdf5",
            },
        ),
        (
            "/package/hdf5",
            {
                "targets_of_package?package=hdf5",
                "releases_of_version?package=hdf5&version=1.14.10",
                "variant_values_of_package?package=hdf5",
                "most_hashes?package=hdf5",
            },
        ),
        ("/stack/e4s", {"packages_of_stack?stack=e4s"}),
    ],
)
async def test_pages_lead_to_queries(datasette: Any, path: str, expected: set[str]) -> None:
    """With what the page is about filled in; each leads to rows, and none to an error."""
    page = await get(datasette, path)
    links = [unescape(each) for each in re.findall(r'href="([^"]*)"', page.text)]
    asked = [each for each in links if each.split("?")[0].rpartition("/")[2] in QUERIES]

    assert expected <= {each.rpartition("/")[2].split("?has=")[0] for each in asked}
    for each in asked:
        name, _, query = each.partition("?")
        rows = await get(datasette, f"{name}.json?{query}&_shape=array")
        assert rows.json()
        assert not any(row["error"] for row in rows.json()), each


SHAPES = (
    "",
    ".json",
    ".json?_shape=array",
    ".json?_shape=objects",
    ".json?_shape=arrays",
    ".json?_shape=array&_size=max",
    ".json?_shape=array&_nl=on",
    ".csv",
    ".csv?_size=max",
    ".csv?_stream=on",
    ".csv?_stream=on&_size=max",
)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("number", range(len(SHAPES)))
async def test_every_shape_says_that_there_is_more(number: int, many: Any) -> None:
    """Each query, as a page, as JSON and as CSV, has 999 rows and names the page of the next.

    Each in some shapes, because a shape is made of any rows in the same way.
    """
    form, _, options = SHAPES[number].partition("?")
    for name, (params, *_) in [*EVERY_ANSWER.items()][number % 3 :: 3]:
        query = "&".join([urlencode(params), options])
        answer = await get(many, f"/spack-cache/{name}{form}?{query}")

        assert answer.status_code == 200, (name, answer.text)
        words = re.sub("<[^>]*>", "", answer.text)
        assert re.search(r"(?i)row 1000( of \d+)? is on page 2", words), name
        assert "row 999 " not in words
