"""Queues: who answers what, how many at once, how many wait."""

from __future__ import annotations

import asyncio

import pytest

from spack_cache_db.site import delivery, queues
from spack_cache_db.site.middleware import Message, Receive, Scope, Send
from spack_cache_db.site.queues import BOUNDS, STREAMS, Bound, Queue, QueueFull, admit, queue_name
from spack_cache_db.site.sandbox.pool import Quota

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("path", "query", "name"),
    [
        ("/", "", "pages"),
        ("/package/hdf5", "variant=%2Bmpi", "pages"),
        ("/spec/aaaaaaa", "_stream=on", "pages"),
        ("/robots.txt", "", "pages"),
        ("/find", "q=hdf5", "search"),
        ("/spack-cache", "sql=select+1", "data"),
        ("/spack-cache.json", "sql=select+1", "data"),
        ("/spack-cache/specs", "", "data"),
        ("/spack-cache/specs.csv", "_streams=on", "data"),
        ("/nothing", "", "data"),
        ("/spack-cache/specs.csv", "_size=max&_stream=on", "streams"),
        ("/spack-cache/specs", "_format=csv&%5Fstream=1", "streams"),
        ("/spack-cache.db", "", "files"),
        ("/static/site.css", "", None),
        ("/-/static/app.css", "", None),
    ],
)
def test_every_kind_of_request_has_its_queue(path: str, query: str, name: str | None) -> None:
    """Own pages, searches, data, streams and downloads are told apart; static files never wait."""
    assert queue_name(path, query.encode()) == name


def test_all_together_stay_below_the_bound_on_connections() -> None:
    """Who is turned away is told so: a queue is full before connections are cut."""
    from spack_cache_db.site.uvicorn_server import MOST_CONNECTIONS

    assert sum(each.running + each.waiting for each in BOUNDS.values()) < MOST_CONNECTIONS


@pytest.mark.asyncio
async def test_turns_are_taken_in_order() -> None:
    """One at a time here; who waits is next, and who finds no place is told at once."""
    queue, said, go_on = (
        Queue(Bound(running=1, waiting=1, quota=Quota("", 1, rank=0))),
        [],
        asyncio.Event(),
    )

    async def visit(name: str) -> None:
        async with queue.turn():
            said.append(name)
            await go_on.wait()

    first, second = asyncio.create_task(visit("first")), asyncio.create_task(visit("second"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(QueueFull):
        await visit("third")
    assert said == ["first"]
    go_on.set()
    await asyncio.gather(first, second)
    await visit("fourth")
    assert said == ["first", "second", "fourth"]


@pytest.mark.asyncio
async def test_who_leaves_gives_the_place_to_another() -> None:
    """Cancelled while waiting or while answered: the place is free again."""
    queue = Queue(Bound(running=1, waiting=1, quota=Quota("", 1, rank=0)))

    async def visit() -> None:
        async with queue.turn():
            await asyncio.Event().wait()

    for _ in range(3):
        answered, waiting = asyncio.create_task(visit()), asyncio.create_task(visit())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await visit()
        waiting.cancel()
        answered.cancel()
        await asyncio.wait([answered, waiting])
    async with queue.turn():
        pass


@pytest.mark.asyncio
async def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited too long is turned away."""
    monkeypatch.setattr(queues, "PATIENCE_SECONDS", 0.01)
    queue = Queue(Bound(running=1, waiting=1, quota=Quota("", 1, rank=0)))
    async with queue.turn():
        with pytest.raises(QueueFull):
            async with queue.turn():
                pass
    async with queue.turn():
        pass


@pytest.mark.asyncio
async def test_who_is_behind_loses_to_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Visitors who take nothing of their streams keep no place; who reads on keeps his own."""
    monkeypatch.setattr(queues, "BEHIND_SECONDS", 0.05)
    monkeypatch.setitem(BOUNDS, STREAMS, Bound(running=2, waiting=1, quota=Quota("", 1, rank=2)))
    piece = {"type": "http.response.body", "body": b"x" * delivery.PIECE, "more_body": True}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not ended.is_set():
            await send(piece)
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    class Site:
        def setting(self, _: str) -> str:
            return ""

    served = delivery.deliver(admit(app, Site()))
    ended = asyncio.Event()

    def visit(*, reads: bool) -> tuple[asyncio.Task[None], list[Message]]:
        got: list[Message] = []

        async def send(message: Message) -> None:
            got.append(message)
            await asyncio.sleep(0.001)
            if message["type"] == "http.response.body" and not reads:
                await asyncio.Event().wait()

        scope = {
            "type": "http", "method": "GET", "path": "/a.csv", "query_string": b"_stream=on",
        }  # fmt: skip
        receive = asyncio.Event().wait
        return asyncio.create_task(served(scope, receive, send)), got  # type: ignore[arg-type]

    reader, read = visit(reads=True)
    slow = [visit(reads=False) for _ in range(2)]
    await asyncio.sleep(0.02)
    _, refused = visit(reads=True)
    await asyncio.sleep(0.2)
    newcomers = [visit(reads=True) for _ in range(2)]
    await asyncio.sleep(0.2)
    ended.set()
    await asyncio.wait_for(asyncio.gather(reader, *(task for task, _ in newcomers)), 5)

    assert not refused
    assert all(task.done() and len(got) == 2 for task, got in slow)
    for got in (read, *(got for _, got in newcomers)):
        assert (got[0]["status"], got[-1].get("more_body", False)) == (200, False)
