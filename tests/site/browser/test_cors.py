"""A page of another site reads the file and the data in a real browser, where it is allowed to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.serving import serving
from tests.site.conftest import Server

pytestmark = pytest.mark.slow

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


def read_from(browser: Browser, page_url: str, server_url: str) -> Any:
    """Let a page of one site read another."""
    page = browser.new_page()
    try:
        page.goto(page_url)
        return page.evaluate(READ, server_url)
    finally:
        page.close()


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


def test_another_site_reads_file_and_data(
    browser: Browser, database: Path, elsewhere: str, tmp_path: Path
) -> None:
    """With `serve --cors` a page of another origin reads parts of the file, JSON and CSV."""
    with serving(database, "--cors", temporary=tmp_path) as running:
        assert is_readable(read_from(browser, elsewhere, running.url), database)


def test_without_cors_other_sites_read_nothing(
    browser: Browser, server: Server, elsewhere: str
) -> None:
    """Unless it was asked for, a browser keeps other sites out."""
    with pytest.raises(Exception, match="Failed to fetch"):
        read_from(browser, elsewhere, server.address)
