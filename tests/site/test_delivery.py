"""Around a request: it ends with its visitor, goes out in pieces, and waits for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from datasette.app import Datasette

from spack_cache_db.site import delivery, queues
from spack_cache_db.site.delivery import MOST_AHEAD, MOST_BODY, PIECE, collect, deliver
from spack_cache_db.site.queues import BOUNDS, MOST_DELAYED
from spack_cache_db.site.uvicorn_server import MOST_CONNECTIONS
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


@pytest.mark.once
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

    answering = asyncio.ensure_future(deliver(endless)(SCOPE, visitor.receive, visitor.send))
    await begun.wait()
    assert not ended.is_set()
    visitor.leaves.set()
    await asyncio.wait_for(answering, PATIENCE)
    assert ended.is_set()


@pytest.mark.once
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

    await deliver(tidy)(SCOPE, visitor.receive, visitor.send)
    assert tidied == [True]


@pytest.mark.once
@pytest.mark.asyncio
async def test_the_body_reaches_the_application() -> None:
    """What a visitor sends is passed on, in order, before it is known that the visitor has gone."""
    sent = [
        {"type": "http.request", "body": b"one", "more_body": True},
        {"type": "http.request", "body": b"two", "more_body": False},
    ]
    visitor, parts = Visitor(), iter(sent)
    scope = {**SCOPE, "method": "POST"}
    read: list[object] = []

    async def receive() -> dict[str, Any]:
        return next(parts, None) or await visitor.receive()

    async def read_all(scope: Any, receive: Any, send: Any) -> None:
        read.extend([await receive(), await receive()])
        await send({"type": "http.response.body", "body": b"thanks"})

    await deliver(read_all)(scope, receive, visitor.send)
    assert read == sent


@pytest.mark.once
@pytest.mark.asyncio
async def test_errors_are_raised() -> None:
    """What the application raises reaches the server."""
    visitor = Visitor()

    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await deliver(fail)(SCOPE, visitor.receive, visitor.send)


@pytest.mark.once
@pytest.mark.asyncio
@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 7])
async def test_large_answers_go_out_in_pieces(size: int) -> None:
    """No piece is larger than the server's buffer; together they are the answer."""
    visitor, body = Visitor(), bytes(each % 251 for each in range(size))

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": body})

    await deliver(answer)(SCOPE, visitor.receive, visitor.send)
    assert b"".join(each["body"] for each in visitor.sent) == body
    assert max(len(each["body"]) for each in visitor.sent) <= PIECE
    assert [bool(each.get("more_body")) for each in visitor.sent] == (
        [True] * (len(visitor.sent) - 1) + [False]
    )


class Slow(Visitor):
    """A visitor who takes nothing until it is time."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        """Take a message in when the time has come."""
        await self.reads.wait()
        self.sent.append(message)


@pytest.mark.once
@pytest.mark.asyncio
async def test_an_answer_is_finished_before_its_visitor_reads() -> None:
    """The application ends, and what it holds is free, while a visitor has read nothing."""
    visitor, finished = Slow(), asyncio.Event()
    body = b"x" * (20 * PIECE)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
        finished.set()

    answering = asyncio.ensure_future(deliver(answer)(SCOPE, visitor.receive, visitor.send))
    await asyncio.wait_for(finished.wait(), PATIENCE)
    assert visitor.sent == []
    visitor.reads.set()
    await asyncio.wait_for(answering, PATIENCE)
    assert b"".join(each.get("body", b"") for each in visitor.sent) == body


@pytest.mark.once
@pytest.mark.asyncio
async def test_a_stream_waits_for_its_visitor() -> None:
    """Of an answer in pieces no more is made than a little, until the visitor reads on."""
    visitor, made = Slow(), 0

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        nonlocal made
        for _ in range(50):
            await send({"type": "http.response.body", "body": b"x" * PIECE, "more_body": True})
            made += 1
        await send({"type": "http.response.body", "body": b""})

    answering = asyncio.ensure_future(deliver(stream)(SCOPE, visitor.receive, visitor.send))
    await asyncio.sleep(0.1)
    assert made * PIECE <= MOST_AHEAD
    visitor.reads.set()
    await asyncio.wait_for(answering, PATIENCE)
    assert made == 50


@pytest.mark.once
@pytest.mark.asyncio
async def test_who_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor who takes no piece within the time ends the stream; so does one who is too slow."""
    # Each piece of the one who is too slow takes far less, however busy the machine is.
    monkeypatch.setattr(delivery, "STALL_SECONDS", 0.5)
    ended = 0

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        nonlocal ended
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 99, "more_body": True})
        finally:
            ended += 1

    stuck = Slow()
    await asyncio.wait_for(deliver(endless)(SCOPE, stuck.receive, stuck.send), PATIENCE)
    trickling = Visitor()

    async def trickle(message: dict[str, Any]) -> None:
        await asyncio.sleep(0.04)

    await asyncio.wait_for(deliver(endless)(SCOPE, trickling.receive, trickle), PATIENCE)
    assert ended == 2


@pytest.mark.once
@pytest.mark.asyncio
async def test_who_sends_without_end_is_cut_off() -> None:
    """What comes with a request that has no body is not taken in for ever."""
    ended, taken = asyncio.Event(), 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        await asyncio.sleep(0)
        taken += PIECE
        return {"type": "http.request", "body": b"x" * PIECE, "more_body": True}

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    await asyncio.wait_for(deliver(endless)(SCOPE, receive, Visitor().send), PATIENCE)
    assert ended.is_set()
    assert taken < 2 * MOST_BODY


@pytest.mark.once
@pytest.mark.asyncio
async def test_the_longest_stuck_visitor_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """When too much is held for slow visitors the first of them is cut off, not the newcomer."""
    monkeypatch.setattr(delivery, "MOST_HELD", 5 * PIECE)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"x" * (2 * PIECE)})

    slow = [Slow() for _ in range(3)]
    answering = []
    for each in slow:
        answering.append(asyncio.ensure_future(deliver(answer)(SCOPE, each.receive, each.send)))
        await asyncio.sleep(0.01)
    await asyncio.wait_for(answering[0], PATIENCE)
    assert not answering[1].done()
    for each in slow:
        each.reads.set()
    await asyncio.wait_for(asyncio.gather(*answering), PATIENCE)
    assert [sum(len(part["body"]) for part in each.sent) for each in slow[1:]] == [2 * PIECE] * 2


@pytest.mark.once
@pytest.mark.asyncio
async def test_a_request_begins_when_its_body_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a form starts no work and is refused in the end; a form that is too large at once."""
    monkeypatch.setattr(delivery, "BODY_SECONDS", 0.05)
    scope = {**SCOPE, "method": "POST"}
    began: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        began.append((await receive())["body"])

    async def asked(*parts: bytes, is_whole: bool) -> list[dict[str, Any]]:
        visitor = Visitor()
        messages = [
            {"type": "http.request", "body": each, "more_body": not is_whole or each != parts[-1]}
            for each in parts
        ]

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else await visitor.receive()

        await asyncio.wait_for(collect(app)(scope, receive, visitor.send), PATIENCE)
        return visitor.sent

    assert (await asked(b"q=", b"a", is_whole=False))[0]["status"] == 408
    assert (await asked(b"x" * MOST_BODY, b"y", is_whole=True))[0]["status"] == 413
    assert began == []
    assert await asked(b"q=", b"a", is_whole=True) == []
    assert began == [b"q=a"]


@pytest_asyncio.fixture
async def patient(database: Path) -> AsyncIterator[Any]:
    """The site in process, where a statement may run for a minute."""
    datasette = site(database, sql_time_limit_ms=PATIENCE * 1000)
    yield datasette


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
    monkeypatch.setattr(queues, "REFUSAL_SECONDS", 10 * PATIENCE)
    monkeypatch.setattr(queues, "MOST_DELAYED", 1)
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


@pytest.mark.once
def test_who_waits_for_a_refusal_keeps_no_page_out() -> None:
    """All queues full and all places of those who are refused taken, there are connections left."""
    queued = sum(each.running + each.waiting for each in BOUNDS.values())

    assert queued + MOST_DELAYED < MOST_CONNECTIONS
