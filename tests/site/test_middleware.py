"""Around every answer: what is let in, headers, caching, compression."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.middleware import guard
from tests.site.addresses import DATASETTES, OWN, get
from tests.site.conftest import site

pytestmark = pytest.mark.slow

TOOLS = (
    "/-/threads",
    "/-/messages",
    "/-/allow-debug",
    "/-/patterns",
    "/-/permissions",
    "/-/databases.json",
    "/-/config.json",
    "/-/actor.json",
    "/-/versions/x",
    "//-/threads",
    "/%2D/threads",
    "/spack-cache/-/create",
    "/spack-cache/-/queries/store",
    "/spack-cache/-/queries/analyze?sql=select+1",
    "/spack-cache/-/execute-write",
    "/spack-cache/specs/-/insert",
    "/spack-cache/specs/1/-/delete",
)
WRITTEN = ("", "/specs", "/x/-/y", "/cover")
MISSING = ("/package/nope", "/nothing-here", "/spack-cache/nope")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*OWN, *DATASETTES, *MISSING])
async def test_every_page_is_safe_and_cacheable(datasette: Any, path: str) -> None:
    """Every page has its language and a policy for scripts and caches; ours has no inline code."""
    answer = await get(datasette, path)
    policy = answer.headers["content-security-policy"]

    assert "unsafe-eval" not in policy and "http" not in policy
    if path not in DATASETTES:
        assert "unsafe-inline" not in policy
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", answer.text)
    if path in MISSING:
        return
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "max-age=3600" in answer.headers["cache-control"]
    assert '<html lang="en">' in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize("header", ["Cookie", "Authorization"])
async def test_no_other_site_watches_the_page_of_somebody_who_is_known(
    datasette: Any, header: str
) -> None:
    """Its window has no opener from elsewhere; a page for everybody does without."""
    name, expected = "cross-origin-opener-policy", "same-origin"

    known = await datasette.client.get("/", headers={header: "a=b"})

    assert known.headers[name] == expected
    assert {"Cookie", "Authorization"} <= {*re.split(", *", known.headers["vary"])}
    assert name not in (await datasette.client.get("/")).headers


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_writes_are_refused(datasette: Any, method: str) -> None:
    """No page takes any method but reading ones; `/cover` alone takes a form."""
    for path in (
        "/",
        "/find",
        "/coverx",
        "/cover.html",
        *(f"/spack-cache{end}" for end in WRITTEN),
    ):
        answer = await datasette.client.request(method, path)
        assert answer.status_code == 405, path
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
        assert "read-only" in answer.text


@pytest.mark.asyncio
async def test_counting_is_no_writing(datasette: Any) -> None:
    """The button of Datasette 1.0 that counts rows may ask with POST; 0.65 has none."""
    answer = await datasette.client.post("/spack-cache/builds/-/count?package=hdf5")

    assert answer.status_code in (200, 404)
    assert answer.status_code == 404 or answer.json()["count"] == 14


@pytest.mark.asyncio
@pytest.mark.parametrize("tool", TOOLS)
async def test_tools_are_closed(datasette: Any, tool: str) -> None:
    """Datasette's debugging tools and forms, and what tells about the machine, are not answered."""
    assert (await get(datasette, tool)).status_code == 404


@pytest.mark.asyncio
async def test_pages_are_compressed(datasette: Any) -> None:
    """Pages travel compressed to who can read that, and plain to who cannot."""
    plain = await get(datasette, "/package/hdf5", **{"accept-encoding": "identity"})
    packed = await get(datasette, "/package/hdf5", **{"accept-encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert packed.num_bytes_downloaded < plain.num_bytes_downloaded / 2


@pytest.mark.asyncio
async def test_a_long_address_is_refused(datasette: Any) -> None:
    """An address that is far too long is told so."""
    answer = await get(datasette, "/find?q=" + "x" * 40_000)

    assert answer.status_code == 414
    assert "longer than" in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [("gzip", True), ("gzip;q=0", False), ("br, gzip; q=0.0, x", False), ("gzip;q=0.5", True)],
)
async def test_gzip_is_sent_to_whom_takes_it(
    datasette: Any, accepted: str, is_packed: bool
) -> None:
    """`gzip;q=0` says that gzip is not taken (RFC 9110, 12.4.2)."""
    answer = await datasette.client.get("/about", headers={"accept-encoding": accepted})

    assert (answer.headers.get("content-encoding") == "gzip") is is_packed


@pytest.mark.asyncio
async def test_a_body_says_its_length(datasette: Any) -> None:
    """A body in chunks, whose every byte may be one, is refused before it is read."""
    read: list[bytes] = []

    async def chunks() -> AsyncIterator[bytes]:
        read.append(b"q=hdf5")
        yield read[-1]

    refused = await datasette.client.post("/cover.json", content=chunks())
    answered = await datasette.client.post("/cover.json", content=b"q=hdf5")

    assert (refused.status_code, answered.status_code) == (411, 200)
    assert read == []


@pytest.mark.asyncio
async def test_without_sql_the_field_is_refused_everywhere(database: Path) -> None:
    """Where visitors may send no SQL, nothing looks at what they send as such."""
    closed = site(database, default_allow_sql=False)
    statuses = {
        f"{path}?{field}": (await closed.client.get(f"{path}?{field}=select+1")).status_code
        for path in ("/spack-cache", "/spack-cache/specs", "/", "/spack-cache.json")
        for field in ("sql", "s%71l")
    }
    assert statuses == dict.fromkeys(statuses, 403)
    assert (await closed.client.get("/spack-cache/most_hashes?package=hdf5")).status_code == 200


@pytest.mark.asyncio
async def test_long_cookies_are_not_read(datasette: Any) -> None:
    """A cookie of 30 kB, or one of backslashes, costs no more than none; others reach Datasette."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]).get(b"cookie"))

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    for cookie in (b"a=1", b'a="' + b"\\" * 30_000, b"a=" + b"x" * 5_000, b'a="\\1"'):
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b""}
        await guard(datasette, app, {**scope, "headers": [(b"cookie", cookie)]}, receive, send)
    assert seen == [b"a=1", None, None, None]
