"""CORS: what a page of another site may read, asked by a real browser and header by header."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.serving import serving
from tests.site.conftest import serving_directory, site

DATA = ("/spack-cache/specs.json?_size=1", "/spack-cache/specs.csv?_size=1", "/spack-cache.db")
READ = """async (url) => {
    const part = await fetch(url + "/spack-cache.db", {headers: {"Range": "bytes=0-15"}});
    const head = await fetch(url + "/spack-cache.db", {method: "HEAD"});
    const rows = await fetch(url + "/spack-cache/specs.json?_shape=array&_size=1");
    const table = await fetch(url + "/spack-cache/specs.csv?_size=1");
    return {
        status: part.status,
        range: part.headers.get("content-range"),
        length: part.headers.get("content-length"),
        size: Number(head.headers.get("content-length")),
        ranges: head.headers.get("accept-ranges"),
        etag: head.headers.get("etag"),
        text: (await part.text()).slice(0, 15),
        link: rows.headers.get("link"),
        rows: (await rows.json()).length,
        csv: (await table.text()).trim().split("\\n").length,
    };
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and keeps no log."""

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another site, on a port of its own: another origin to a browser."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "index.html").write_text("<!doctype html><title>a notebook</title>")
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def read_from(page_url: str, server_url: str, chromium: str) -> Any:
    """Let a page of one site read another, in Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_url)
        found = page.evaluate(READ, server_url)
        browser.close()
    return found


def is_readable(found: Any, database: Path) -> bool:
    """Whether a browser has read all that Datasette Lite and DuckDB-WASM need."""
    size = database.stat().st_size
    assert found["text"] == "SQLite format 3"
    assert (found["status"], found["length"], found["size"]) == (206, "16", size)
    assert found["range"] == f"bytes 0-15/{size}"
    assert found["ranges"] == "bytes"
    assert len(found["etag"]) == 66
    assert 'rel="next"' in found["link"]
    assert (found["rows"], found["csv"]) == (1, 2)
    return True


@pytest.mark.slow
def test_another_site_reads_file_and_data(
    database: Path, elsewhere: str, chromium: str, tmp_path: Path
) -> None:
    """With `serve --cors` a page of another origin reads parts of the file, JSON and CSV."""
    with serving(database, "--cors", temporary=tmp_path) as server:
        assert is_readable(read_from(elsewhere, server.url, chromium), database)


@pytest.mark.slow
def test_plain_datasette_opens_the_file_too(database: Path, elsewhere: str, chromium: str) -> None:
    """Datasette's own `--cors` has the same effect."""
    with serving_directory(database, "--cors") as server:
        assert is_readable(read_from(elsewhere, server.address, chromium), database)


@pytest.mark.slow
def test_without_cors_other_sites_read_nothing(
    database: Path, elsewhere: str, chromium: str, tmp_path: Path
) -> None:
    """Unless it was asked for, a browser keeps other sites out."""
    with (
        serving(database, temporary=tmp_path) as server,
        pytest.raises(Exception, match="Failed to fetch"),
    ):
        read_from(elsewhere, server.url, chromium)


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
