"""What a server does when it has started, before anybody asks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from spack_cache_db.site.loaders import read_early
from spack_cache_db.site.sandbox.pool import Pool
from spack_cache_db.site.warm_start import FIRST_PAGES
from tests.paths import ROOT
from tests.serving import PATIENCE
from tests.site.addresses import OWN, UNKNOWN
from tests.site.conftest import SQL, site


@asynccontextmanager
async def living(datasette: Any) -> AsyncIterator[None]:
    """Start the application of a Datasette as a server does, and end it."""
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

    lifespan = asyncio.ensure_future(app({"type": "lifespan"}, receive, send))
    await asyncio.wait_for(started.wait(), PATIENCE)
    yield
    ends.set()
    await asyncio.wait_for(lifespan, PATIENCE)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_first_page_is_made_before_anybody_asks(
    samples_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has started reads nothing of the file for it any more."""
    asked: list[Any] = []
    run = Pool.run

    async def counted(self: Pool, *args: Any) -> Any:
        found = await run(self, *args)
        asked.append(args)
        return found

    monkeypatch.setattr(Pool, "run", counted)
    datasette = site(samples_file)
    async with living(datasette):
        async with asyncio.timeout(PATIENCE):
            while not any(read_early in args for args in asked):
                await asyncio.sleep(0.1)
        before = len(asked)
        assert (await datasette.client.get("/")).status_code == 200
        assert len(asked) == before
        for path in FIRST_PAGES:
            assert (await datasette.client.get(path)).status_code == 200, path


@pytest.mark.slow
@pytest.mark.asyncio
async def test_templates_are_compiled_beside_the_event_loop(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page of ours, and no table or query, has to be compiled while others wait."""
    compiled: dict[bool, set[str]] = {True: set(), False: set()}
    compile_template = Environment.compile

    def noted(self: Environment, source: Any, name: Any = None, *args: Any) -> Any:
        compiled[threading.current_thread() is threading.main_thread()].add(name)
        return compile_template(self, source, name, *args)

    monkeypatch.setattr(Environment, "compile", noted)
    datasette = site(database)
    async with living(datasette):
        async with asyncio.timeout(PATIENCE):
            while "unbuilt.html" not in compiled[False]:
                await asyncio.sleep(0.1)
        for path in (*OWN, *UNKNOWN, "/spack-cache", "/spack-cache/builds", f"{SQL}?sql=select+1"):
            assert (await datasette.client.get(path)).status_code in (200, 302, 404), path
    ours = {path.name for path in (ROOT / "templates").iterdir()}
    assert ours <= compiled[False]
    assert not ours & compiled[True]
