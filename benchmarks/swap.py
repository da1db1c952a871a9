"""`python -m benchmarks.swap CORPUS`: publish a database under load, and count failed
requests.

It runs the real server, nginx with its cache, and `deploy/publish.sh`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks import server
from benchmarks.client import Client, Load, load
from benchmarks.measure import run_module
from benchmarks.nginx import cache_folder, nginx
from benchmarks.report import Measure, goals_table
from benchmarks.targets import page_kinds

PUBLISH = Path(__file__).parent.parent / "deploy" / "publish.sh"
LOADED = ("home", "package", "spec", "find", "JSON, 100 rows")
CLIENTS = 8
BEFORE_AND_AFTER = 2.0
MOST_REQUESTS = 100_000


@click.command()
@click.argument("corpus", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(corpus: Path) -> None:
    """Publish a database of all of CORPUS over one that lacks its last release."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        last = _build_both(corpus, folder)
        measures = asyncio.run(_swap(folder, f"/release/{last}"))
    click.echo(goals_table(measures))
    if not all(measure.met for measure in measures):
        raise SystemExit(1)


def _build_both(corpus: Path, folder: Path) -> str:
    """Build the old and the new database; return the release that only the new one
    has.
    """
    releases = sorted(path for path in (corpus / "_cache").iterdir() if path.is_dir())
    for output, paths in (("old.db", releases[:-1]), ("new.db", releases)):
        run_module(
            "spack_cache_db", ["build", *map(str, paths), "-o", str(folder / output)]
        )
    published = folder / "published"
    published.mkdir()
    (folder / "old.db").rename(published / "spack-cache.db")
    (folder / "old.inspect.json").rename(published / "spack-cache.inspect.json")
    return releases[-1].name


async def _swap(folder: Path, only_new: str) -> list[Measure]:
    file = folder / "published" / "spack-cache.db"
    targets = list(_targets(file))
    with ExitStack() as stack:
        running = stack.enter_context(server.serving(file))
        front = stack.enter_context(nginx(folder, running.port))
        before = await Client(front).get(only_new)
        ended = asyncio.Event()
        task = asyncio.create_task(_load(front, targets, ended))
        await asyncio.sleep(BEFORE_AND_AFTER)
        seconds = await _publish(folder, running.port)
        after = await Client(front).get(only_new)
        await asyncio.sleep(BEFORE_AND_AFTER)
        ended.set()
        return _measures(
            await task,
            seconds,
            is_new_shown=before.status == 404 and after.status == 200,
        )


async def _load(port: int, targets: list[str], ended: asyncio.Event) -> Load:
    return await load(
        port,
        targets,
        clients=CLIENTS,
        requests=MOST_REQUESTS,
        seconds=300,
        until=ended.is_set,
    )


def _targets(file: Path) -> Iterator[str]:
    """Yield pages of all kinds; half of them can come from the cache."""
    pages = [
        page
        for kind in page_kinds(file)
        if kind.name in LOADED
        for page in kind.targets
    ]
    for number in range(MOST_REQUESTS // 2):
        page = pages[number % len(pages)]
        yield page
        yield f"{page}{'&' if '?' in page else '?'}_fresh={number}"


async def _publish(folder: Path, port: int) -> float:
    settings = {
        "SPACK_CACHE_FOLDER": str(folder),
        "SPACK_CACHE_HEALTH": f"http://127.0.0.1:{port}/-/health.json",
        "SPACK_CACHE_START": "true",
        "SPACK_CACHE_PROXY_CACHE": str(cache_folder(folder)),
    }
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        str(PUBLISH), str(folder / "new.db"), env={**os.environ, **settings}
    )
    if await process.wait():
        raise click.ClickException(f"{PUBLISH.name} failed")
    return time.perf_counter() - started


def _measures(done: Load, seconds: float, *, is_new_shown: bool) -> list[Measure]:
    cached = sum(reply.cache == "HIT" for reply in done.replies)
    middle, worst = done.latency()
    return [
        Measure("requests", len(done.replies), digits=0),
        Measure(
            "of them from nginx's cache",
            100 * cached / len(done.replies),
            "%",
            digits=0,
        ),
        Measure("failed requests", done.failed, "", 0, digits=0),
        Measure("publishing took", seconds, "s"),
        Measure("median latency", middle, "ms"),
        Measure("99th percentile", worst, "ms"),
        Measure(
            "longest",
            1000 * max(reply.seconds for reply in done.replies),
            "ms",
            digits=0,
        ),
        Measure(
            "new pages shown afterwards",
            float(is_new_shown),
            "",
            1,
            at_least=True,
            digits=0,
        ),
    ]


if __name__ == "__main__":
    main()
