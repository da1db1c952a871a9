"""Badges are pictures that say the newest version of a package and what it is built for."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.site.addresses import get

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("package", "text"),
    [("hdf5", "1.14.10 on x86_64"), ("zlib", "1.3.1 on x86_64"), ("hostile", "1.1 on x86_64")],
)
async def test_badge_names_the_newest_version(datasette: Any, package: str, text: str) -> None:
    """The picture is SVG, and its texts fit into it; a screen reader reads the same."""
    answer = await get(datasette, f"/badge/{package}.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    picture = ElementTree.fromstring(answer.content)
    assert [each.text for each in picture.iter(f"{SVG}text")] == [package, text]
    assert picture.get("aria-label") == f"{package}: {text}"
    widths = [int(each.get("width", 0)) for each in picture.iter(f"{SVG}rect")]
    assert sum(widths) == int(picture.get("width", 0))


@pytest.mark.asyncio
async def test_package_without_a_binary_has_no_badge(datasette: Any) -> None:
    """An unknown package is 404, and no picture of nothing."""
    assert (await get(datasette, "/badge/nope.svg")).status_code == 404
