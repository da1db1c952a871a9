"""CORS: what a page of another site may read, header by header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import site

pytestmark = pytest.mark.slow

DATA = ("/spack-cache/specs.json?_size=1", "/spack-cache/specs.csv?_size=1", "/spack-cache.db")


@pytest.fixture(scope="module")
def opened(database: Path) -> Any:
    """The site in process, open to others."""
    return site(database, cors=True)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*DATA, "/", "/spack-cache/nothing.json", "/nothing"])
async def test_every_answer_says_it_once(opened: Any, path: str) -> None:
    """Data, pages and errors say so, once: two such headers are none to a browser."""
    answer = await opened.client.get(path, headers={"origin": "https://lite.datasette.io"})
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]
    (exposed,) = answer.headers.get_list("access-control-expose-headers")
    for name in ("Content-Range", "Accept-Ranges", "Content-Length", "ETag", "Link"):
        assert name in exposed.split(", ")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", DATA)
async def test_a_browser_may_ask_first(opened: Any, path: str) -> None:
    """The question before a request with a range is answered with what is allowed, and no body."""
    asked = {
        "origin": "https://shell.duckdb.org",
        "access-control-request-method": "GET",
        "access-control-request-headers": "range,if-range",
    }
    answer = await opened.client.options(path, headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "GET" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert {"range", "if-range"} <= set(allowed)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*DATA, "/"])
async def test_without_cors_nothing_is_said(datasette: Any, path: str) -> None:
    """Unless it was asked for: no header for others, and OPTIONS tells only the methods."""
    for answer in (await datasette.client.get(path), await datasette.client.options(path)):
        assert not [each for each in answer.headers if each.startswith("access-control-")]
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
