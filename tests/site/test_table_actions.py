"""site.table_actions: our links in Datasette's menu of a table or view."""

import re
from html import unescape
from typing import Any

import pytest

from spack_cache_db.schema import tables, views
from spack_cache_db.site.table_actions import CHANGES, PAGES, STACK_LISTS


async def links_of(datasette: Any, path: str) -> dict[str, str]:
    """Return the addresses in the menu of a page of Datasette, by their label."""
    answer = await datasette.client.get(path)
    assert answer.status_code == 200, path
    menu = answer.text.partition("actions-menu-links")[2].partition("</details>")[0]
    found = re.findall(r'<a href="([^"]*)"[^>]*>\s*([^<]*?)\s*<', menu)
    return {unescape(label): unescape(address) for address, label in found}


@pytest.mark.asyncio
@pytest.mark.parametrize("name", sorted({*PAGES, *CHANGES, *STACK_LISTS}))
async def test_every_link_leads_to_a_page(datasette: Any, name: str) -> None:
    """Each table and view has the links that concern it, and all of them are
    answered.
    """
    assert name in views.VIEWS or name in {table.name for table in tables.TABLES}
    links = await links_of(datasette, f"/spack-cache/{name}")

    assert ("Count by stack" in links) is (name in STACK_LISTS)
    assert ("Feed of the changes" in links) is (name in CHANGES)
    assert (PAGES.get(name) in links.values()) is (name in PAGES)
    for address in links.values():
        assert (await datasette.client.get(address)).status_code == 200, address


@pytest.mark.asyncio
async def test_links_keep_the_filters(datasette: Any) -> None:
    """The counts are those of the filtered rows from the first one on; so is the
    feed.
    """
    path = "/spack-cache/builds?package=hdf5&target__not=x%26y&_size=1"
    links = await links_of(datasette, f"{path}&_next=1")

    assert links["Count by stack"] == f"{path}&_facet_stack=stacks"
    assert links["Feed of the changes of hdf5"] == "/feed.atom?package=hdf5"
    again = await links_of(datasette, links["Count by stack"])
    assert again["Count by stack"] == links["Count by stack"]
