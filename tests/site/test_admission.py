"""Around a request: it ends with its visitor, goes out in pieces, and waits for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from datasette.app import Datasette

from spack_cache_db.site import admission
from spack_cache_db.site.admission import MOST_DELAYED, PIECE, end_with_visitor
from spack_cache_db.site.protocol import MOST_CONNECTIONS
from spack_cache_db.site.queues import BOUNDS
from tests.site.conftest import site

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": []}
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
# Datasette 1.0 has an address for SQL, to which it leads from the old one.
SQL = f"/spack-cache{'' if hasattr(Datasette, 'metadata') else '/-/query'}.json?_shape=arrays&sql="
PATIENCE = 60


class Visitor:
    """A visitor's side of a request: says when it leaves, and keeps what it is sent."""

    def __init__(self) -> None:
        self.leaves = asyncio.Event()
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        """Leave when the time has come."""
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Take a message in."""
        self.sent.append(message)


@pytest.mark.asyncio
async def test_work_ends_when_the_visitor_leaves() -> None:
    """An answer without an end is cancelled in the moment in which its visitor goes."""
    visitor, begun, ended = Visitor(), asyncio.Event(), asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    answering = asyncio.ensure_future(
        end_with_visitor(endless)(SCOPE, visitor.receive, visitor.send)
    )
    await begun.wait()
    assert not ended.is_set()
    visitor.leaves.set()
    await asyncio.wait_for(answering, PATIENCE)
    assert ended.is_set()


@pytest.mark.asyncio
async def test_what_follows_a_complete_answer_is_done() -> None:
    """The server reports a visitor as gone once the answer is complete; the rest still happens."""
    visitor, tidied = Visitor(), []

    async def tidy(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"all"})
        visitor.leaves.set()
        for _ in range(10):
            await asyncio.sleep(0)
        tidied.append(True)

    await end_with_visitor(tidy)(SCOPE, visitor.receive, visitor.send)
    assert tidied == [True]


@pytest.mark.asyncio
async def test_the_body_reaches_the_application() -> None:
    """What a visitor sends is passed on, in order, before it is known that the visitor has gone."""
    sent = [
        {"type": "http.request", "body": b"one", "more_body": True},
        {"type": "http.request", "body": b"two", "more_body": False},
    ]
    visitor, parts = Visitor(), iter(sent)
    read: list[object] = []

    async def receive() -> dict[str, Any]:
        return next(parts, None) or await visitor.receive()

    async def read_all(scope: Any, receive: Any, send: Any) -> None:
        read.extend([await receive(), await receive()])
        await send({"type": "http.response.body", "body": b"thanks"})

    await end_with_visitor(read_all)(SCOPE, receive, visitor.send)
    assert read == sent


@pytest.mark.asyncio
async def test_errors_are_raised() -> None:
    """What the application raises reaches the server."""
    visitor = Visitor()

    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await end_with_visitor(fail)(SCOPE, visitor.receive, visitor.send)


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 7])
async def test_large_answers_go_out_in_pieces(size: int) -> None:
    """No piece is larger than the server's buffer; together they are the answer."""
    visitor, body = Visitor(), bytes(each % 251 for each in range(size))

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": body})

    await end_with_visitor(answer)(SCOPE, visitor.receive, visitor.send)
    assert b"".join(each["body"] for each in visitor.sent) == body
    assert max(len(each["body"]) for each in visitor.sent) <= PIECE
    assert [bool(each.get("more_body")) for each in visitor.sent] == (
        [True] * (len(visitor.sent) - 1) + [False]
    )


@pytest_asyncio.fixture
async def patient(database: Path) -> AsyncIterator[Any]:
    """The site in process, where a statement may run for a minute."""
    datasette = site(database, sql_time_limit_ms=PATIENCE * 1000)
    yield datasette
    datasette.executor.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_pages_come_while_sql_is_full(patient: Any) -> None:
    """With visitors' SQL full to its bound the next is refused, and pages and searches come.

    When its visitors go their statements are interrupted, and the next one's is answered.
    """
    bound = BOUNDS["data"]

    async def ask(path: str) -> Any:
        return await patient.client.get(path)

    every = [
        asyncio.create_task(ask(f"{SQL}{ENDLESS.replace('+', '%2B')}&n={each}"))
        for each in range(bound.running + bound.waiting + 1)
    ]
    done, _ = await asyncio.wait(every, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    refused = done.pop().result()
    asked = [each for each in every if not each.done()]
    assert len(asked) == bound.running + bound.waiting
    assert refused.status_code == 503
    assert refused.json()["error"].startswith("The server has as many requests")
    assert int(refused.headers["retry-after"]) > 0
    page = await ask("/spack-cache/specs")
    assert page.status_code == 503
    assert page.text.startswith("Error: The server has")
    assert page.headers["x-content-type-options"] == "nosniff"
    for path in ("/", "/package/hdf5", "/find?q=hdf5+%2Bmpi", "/static/site.css"):
        assert (await ask(path)).status_code == 200
    assert not any(each.done() for each in asked)

    for each in asked:
        each.cancel()
    await asyncio.wait(asked, timeout=PATIENCE)
    answer = await asyncio.wait_for(ask(f"{SQL}select+1"), PATIENCE / 2)
    assert answer.json()["rows"] == [[1]]


@pytest.mark.asyncio
async def test_a_refusal_takes_its_time(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is refused waits, so that asking again is no load; only so many wait, others do not."""
    monkeypatch.setattr(admission, "REFUSAL_SECONDS", 10 * PATIENCE)
    monkeypatch.setattr(admission, "MOST_DELAYED", 1)
    datasette = site(database, sql_time_limit_ms=PATIENCE * 1000)
    bound = BOUNDS["data"]
    asked = [
        asyncio.create_task(datasette.client.get(f"{SQL}{ENDLESS.replace('+', '%2B')}&n={each}"))
        for each in range(bound.running + bound.waiting + 2)
    ]
    done, waiting = await asyncio.wait(asked, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)

    assert [each.result().status_code for each in done] == [503]
    assert len(waiting) == len(asked) - 1
    for each in asked:
        each.cancel()
    await asyncio.wait(asked, timeout=PATIENCE)
    datasette.executor.shutdown(cancel_futures=True)


def test_who_waits_for_a_refusal_keeps_no_page_out() -> None:
    """All queues full and all places of those who are refused taken, there are connections left."""
    queued = sum(each.running + each.waiting for each in BOUNDS.values())

    assert queued + MOST_DELAYED < MOST_CONNECTIONS
