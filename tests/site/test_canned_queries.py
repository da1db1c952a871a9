"""The canned queries of metadata.yml, in whichever Datasette."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from spack_cache_db.schema import VIEWS
from tests.metadata import QUERIES
from tests.site.addresses import get


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if "needs" not in query])
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
@pytest.mark.parametrize("path", ["/package/hdf5", "/package/hdf5?release=develop&host=zen3"])
async def test_pages_lead_to_queries_and_views(datasette: Any, path: str) -> None:
    """With what the page is about filled in; each leads to rows."""
    page = await get(datasette, path)
    links = [unescape(each) for each in re.findall(r'href="([^"]*)"', page.text)]
    asked = [each for each in links if each.split("?")[0].rpartition("/")[2] in {*QUERIES, *VIEWS}]

    assert asked
    for each in asked:
        name, _, query = each.partition("?")
        rows = await get(datasette, f"{name}.json?{query}&_shape=array")
        assert rows.json(), each


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("most_hashes{}?package=hdf6", "no package has this name (near: hdf5"),
        ("compilers_of_release{}?release=devlop", "no release is called 'devlop'; close: develop"),
        ("new_versions{}?old=v9&new=develop", "no release is called 'v9'"),
    ],
)
async def test_unknown_names_are_refused(datasette: Any, query: str, sentence: str) -> None:
    """A table without rows would say that a package has none of them."""
    page = await datasette.client.get("/spack-cache/" + query.format(""))
    json = await datasette.client.get("/spack-cache/" + query.format(".json"))
    csv = await datasette.client.get("/spack-cache/" + query.format(".csv"))

    assert {page.status_code, json.status_code, csv.status_code} == {400}
    assert sentence in unescape(page.text)
    assert sentence in json.json()["error"]
    assert sentence in csv.text


@pytest.mark.asyncio
async def test_queries_without_data_are_left_out(datasette: Any, index_site: Any) -> None:
    """Dependencies come from indexes alone; the beginning of a hash leads to the whole."""
    path = "/spack-cache/dependencies_of_hash"
    of_pages = (await get(datasette, "/spack-cache")).text

    assert (await datasette.client.get(path)).status_code == 404
    assert f'href="{path}"' not in of_pages
    assert "Dependencies</h3>" not in of_pages
    assert (await get(index_site, f"{path}.json?_shape=array")).json()


@pytest.mark.asyncio
async def test_the_beginning_of_a_hash_is_enough(index_site: Any, real_index: Any) -> None:
    """The address leads to that of the whole hash."""
    ((dag_hash,),) = real_index.execute("SELECT max(hash) FROM builds")
    path = "/spack-cache/dependents_of_hash?hash="
    answer = await index_site.client.get(f"{path}%2F{dag_hash[:9].upper()}")

    assert answer.headers["location"] == f"{path}{dag_hash}"
    assert (await index_site.client.get(f"{path}{dag_hash}")).status_code == 200
