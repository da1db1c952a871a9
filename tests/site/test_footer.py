"""site.footer: how old the data is, below every page."""

from __future__ import annotations

from typing import Any

import pytest
from datasette.app import Datasette

from spack_cache_db.site.footer import learn, newest
from tests.site.addresses import get


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/", "/spack-cache/releases", "/nothing-here", "/stack/e4s"])
async def test_every_page_tells_the_newest_snapshot(datasette: Any, path: str) -> None:
    """Pages of ours, of Datasette and of errors end with the day of the newest snapshot."""
    page = (await get(datasette, path)).text
    footer = page[page.index("<footer") :]

    assert '<time datetime="2025-04-20">' in footer
    assert 'href="/about"' in footer


@pytest.mark.asyncio
async def test_a_site_without_a_file_has_none() -> None:
    """Where nothing is served, nothing is told, and the site starts."""
    empty = Datasette([])
    assert newest(empty) is None
    await learn(empty)
    assert newest(empty) is None
