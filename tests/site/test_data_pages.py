"""What Datasette's own pages show first."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.metadata import QUERIES
from tests.site.addresses import get

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
async def test_the_database_begins_with_queries(datasette: Any) -> None:
    """Queries stand first, then views, then the tables, releases before all others."""
    page = (await get(datasette, "/spack-cache")).text
    names = re.findall(r'href="/spack-cache/(\w+)"', page)

    queries = [names.index(each) for each in QUERIES if each in names]
    assert queries == sorted(queries)
    assert max(queries) < names.index("builds") < names.index("build_listings")
    assert names.index("build_listings") < names.index("releases") < names.index("packages")
    assert names.index("packages") < names.index("compilers")
    assert len(names) == len(set(names))
    assert re.search(r"most_hashes\">[^<]+</a></dt><dd>[A-Z][^<]{10,}</dd>", page)
    groups = dict.fromkeys(each["group"] for name, each in QUERIES.items() if name in names)
    assert re.findall("<h3>([^<]*)</h3>\n<dl", page) == [*groups]
    assert re.search(r">builds</a></dt><dd>One row per binary", page)
    assert 'aria-label="SQL"' in page
