"""What Datasette's own pages show first."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from spack_cache_db.site.plugin import in_order
from tests.metadata import QUERIES
from tests.site.addresses import get
from tests.site.conftest import SQL

pytestmark = pytest.mark.slow


def test_the_order_is_that_of_the_schema() -> None:
    """Releases come before compilers, other tables last, whatever Datasette hands over."""
    records = [SimpleNamespace(name=name) for name in ("mine", "compilers", "releases", "builds")]

    assert [each.name for each in in_order(records)] == ["builds", "releases", "compilers", "mine"]
    assert in_order([{"name": "mine"}, {"name": "listings"}])[0] == {"name": "listings"}


@pytest.mark.asyncio
async def test_the_database_begins_with_queries(datasette: Any) -> None:
    """Queries stand first, then views, then the tables, releases before all others."""
    page = (await get(datasette, "/spack-cache")).text
    names = re.findall(r'href="/spack-cache/(\w+)"', page)

    # Of many queries 1.0 shows the first few here.
    queries = [names.index(each) for each in QUERIES if each in names]
    assert queries
    assert max(queries) < names.index("builds") < names.index("build_listings")
    assert names.index("build_listings") < names.index("releases") < names.index("packages")
    assert names.index("packages") < names.index("compilers")
    assert len(names) == len(set(names))
    assert re.search(r"specs_of_package\">[^<]+</a></dt><dd>[A-Z][^<]{10,}</dd>", page)
    assert 'aria-label="SQL"' in page


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        "/spack-cache/configurations?_facet=os",
        "/spack-cache/find_spec?spec=hdf5",
        f"{SQL}?sql=select+1",
    ],
)
async def test_the_way_to_the_rows(datasette: Any, path: str) -> None:
    """The first link of a page with rows skips to them; what explains columns stands behind."""
    page = (await get(datasette, path)).text
    rows = page.index('id="rows"')

    assert re.search(r'<a class="skip" href="#(\w+)"', page)[1] == "rows"  # type: ignore[index]
    assert page.count('id="rows"') == 1
    assert page.find('<dl class="column-descriptions"') in (-1, *range(rows, len(page)))


@pytest.mark.asyncio
async def test_no_way_to_rows_that_are_not_there(datasette: Any) -> None:
    """A page without rows offers no way to them."""
    page = (await get(datasette, "/spack-cache/configurations?_search=nothing-has-this")).text

    assert 'class="skip"' not in page
