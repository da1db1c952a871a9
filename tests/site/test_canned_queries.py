"""The canned queries of metadata.yml, in whichever Datasette."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.site.addresses import get
from tests.site.conftest import SQL, metadata, site

QUERIES = metadata()["databases"]["spack-cache"]["queries"]


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
async def test_queries_stay_where_sql_is_off(database: Path) -> None:
    """With SQL off typed SQL is refused, and canned queries and our pages still answer."""
    closed = site(database, default_allow_sql=False)

    assert (await get(closed, f"{SQL}?sql=select+1")).status_code == 403
    assert (await get(closed, "/package/hdf5")).status_code == 200
    rows = await get(closed, "/spack-cache/find_spec.json?spec=hdf5&_shape=array")
    assert len(rows.json()) == 14
