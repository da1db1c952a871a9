"""What a server does when it has started, before anybody asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.sandbox.pool import Pool
from spack_cache_db.site.warm_start import FIRST_PAGES
from tests.serving import PATIENCE
from tests.site.conftest import site


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_first_page_is_made_before_anybody_asks(
    samples_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has started reads nothing of the file for it any more."""
    asked: list[Any] = []
    run = Pool.run

    async def counted(self: Pool, *args: Any) -> Any:
        asked.append(args)
        return await run(self, *args)

    monkeypatch.setattr(Pool, "run", counted)
    datasette = site(samples_file)
    app = datasette.app()
    ends, started = asyncio.Event(), asyncio.Event()
    messages = iter(["startup"])

    async def receive() -> dict[str, Any]:
        for each in messages:
            return {"type": f"lifespan.{each}"}
        await ends.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: dict[str, Any]) -> None:
        started.set()

    living = asyncio.ensure_future(app({"type": "lifespan"}, receive, send))
    await asyncio.wait_for(started.wait(), PATIENCE)
    before = -1
    async with asyncio.timeout(PATIENCE):
        while len(asked) > before:
            before = len(asked)
            await asyncio.sleep(2)
    assert before > 0
    assert (await datasette.client.get("/")).status_code == 200
    assert len(asked) == before
    for path in FIRST_PAGES:
        assert (await datasette.client.get(path)).status_code == 200, path
    ends.set()
    await asyncio.wait_for(living, PATIENCE)
