"""Errors of CSV, by status or by an answer without an end; never as rows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from spack_cache_db.site.error_pages import NO_ROWS, guard_csv
from tests.site.addresses import get
from tests.site.conftest import SQL, serving_directory, site

pytestmark = pytest.mark.slow

ROWS = [b"a,b\r\n", b'1,"x\r\n"\r\n', b"2,y\r\n"]
MANY = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 900) SELECT x FROM n"
TOO_MANY = MANY.replace("SELECT x FROM", f"SELECT '{'x' * 2_000}' FROM")
"""More than a megabyte."""


async def sent_by(app: Any, path: str = "/d/t.csv", query: bytes = b"") -> list[Any]:
    """Return what an application sends to a visitor, message by message."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "GET", "headers": [], "query_string": query}
    await app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
    return sent


def received(sent: list[Any]) -> tuple[Any, bytes, bool]:
    """Return the head of what was sent, the body, and whether that came to its end."""
    start, *bodies = sent
    return start, b"".join(each["body"] for each in bodies), not bodies[-1].get("more_body")


def writing(*pieces: bytes, kind: bytes = b"text/plain; charset=utf-8", status: int = 200) -> Any:
    """Return an application that sends these pieces, as Datasette sends rows."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"Content-Type", kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


@pytest.mark.asyncio
async def test_an_error_before_the_first_row_is_a_status() -> None:
    """Where nothing was sent yet, the status says that there are no rows; a cause stays inside."""
    start, body = await sent_by(guard_csv(writing(b"[Errno 2] /secret")))

    assert start["status"] == 400
    assert body["body"].decode() == f"Error: {NO_ROWS}\n"


@pytest.mark.asyncio
async def test_a_table_larger_than_the_bound_breaks_off(database: Path) -> None:
    """Datasette's own word for "too large" is never taken for a row of a table."""
    bounded = site(database, max_csv_mb=1).app()
    query = urlencode({"sql": TOO_MANY})
    sent = await sent_by(bounded, f"{SQL}.csv", query.encode())
    text = b"".join(each["body"] for each in sent[1:]).decode()

    assert sent[0]["status"] == 200
    assert sent[-1]["more_body"]
    assert len(text) > 1_000_000
    assert "more than" not in text


def test_a_visitor_sees_that_rows_are_missing(database: Path) -> None:
    """A real server breaks the connection, so that a visitor's program ends with an error."""
    with serving_directory(database, "--setting", "max_csv_mb", "1") as server:
        address = f"{server.address}{SQL}.csv"
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            httpx.get(address, params={"sql": TOO_MANY}, timeout=60, verify=False)
        assert httpx.get(address, params={"sql": MANY}, timeout=60, verify=False).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("sql", "reason"),
    [("select nope", "no such column: nope"), ("select 1; select 2", "one statement at a time")],
)
async def test_a_refused_query_says_why(datasette: Any, sql: str, reason: str) -> None:
    """A query that is refused is a 400 with SQLite's reason, not an empty table."""
    answer = await datasette.client.get(f"{SQL}.csv", params={"sql": sql})

    assert answer.status_code == 400
    assert reason in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.asyncio
async def test_rows_of_a_query_are_all_there(datasette: Any) -> None:
    """A query's CSV has a head and each row, also where there are none."""
    many = await datasette.client.get(f"{SQL}.csv", params={"sql": MANY})
    none = await get(datasette, "/spack-cache/builds.csv?package=nope&_stream=1")

    assert len(many.text.splitlines()) == 901
    assert (none.status_code, len(none.text.splitlines())) == (200, 1)
