"""`python -m benchmarks.swap CORPUS`: publish a database under load, and count failed
requests.

It runs the real server, nginx with its cache, and `deploy/publish.sh`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks import server
from benchmarks.client import Client, Load, load
from benchmarks.measure import run_module
from benchmarks.nginx import cache_folder, nginx
from benchmarks.report import Measure, goals_table
from benchmarks.targets import page_kinds, with_query

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
    _build(releases[:-1], folder / "old.db")
    _build(releases, folder / "new.db")

    # The old one is what the site has now.
    published = folder / "published"
    published.mkdir()
    (folder / "old.db").rename(published / "spack-cache.db")
    (folder / "old.inspect.json").rename(published / "spack-cache.inspect.json")
    return releases[-1].name


def _build(sources: Sequence[Path], file: Path) -> None:
    arguments = [str(source) for source in sources]
    run_module("spack_cache_db", ["build", *arguments, "-o", str(file)])


async def _swap(folder: Path, only_new: str) -> list[Measure]:
    """Publish the new database under load; `only_new` is a page of it alone."""
    file = folder / "published" / "spack-cache.db"
    targets = list(_targets(file))
    with ExitStack() as stack:
        running = stack.enter_context(server.serving(file))
        front = stack.enter_context(nginx(folder, running.port))
        before = await Client(front).get(only_new)

        # Publish while clients ask for pages.
        is_over = asyncio.Event()
        task = asyncio.create_task(_load(front, targets, is_over))
        await asyncio.sleep(BEFORE_AND_AFTER)
        seconds = await _publish(folder, running.port)
        after = await Client(front).get(only_new)
        await asyncio.sleep(BEFORE_AND_AFTER)
        is_over.set()
        answered = await task

    is_new_shown = before.status == 404 and after.status == 200
    return _measures(answered, seconds, is_new_shown=is_new_shown)


async def _load(port: int, targets: list[str], is_over: asyncio.Event) -> Load:
    """Request pages by several clients until an event."""
    return await load(
        port,
        targets,
        clients=CLIENTS,
        requests=MOST_REQUESTS,
        seconds=300,
        until=is_over.is_set,
    )


def _targets(file: Path) -> Iterator[str]:
    """Yield pages of all kinds; half of them can come from the cache."""
    pages: list[str] = []
    for kind in page_kinds(file):
        if kind.name in LOADED:
            pages += kind.targets
    # A field that no other request has keeps a page from the cache.
    for number in range(MOST_REQUESTS // 2):
        page = pages[number % len(pages)]
        yield page
        yield with_query(page, f"_fresh={number}")


async def _publish(folder: Path, port: int) -> float:
    """Run `deploy/publish.sh` with the new database; return its time."""
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
    status = await process.wait()
    if status != 0:
        raise click.ClickException(f"{PUBLISH.name} failed")
    return time.perf_counter() - started


def _measures(answered: Load, seconds: float, *, is_new_shown: bool) -> list[Measure]:
    """Return what was measured while a database was published in some seconds."""
    count = len(answered.replies)
    cached_count = sum(reply.cache == "HIT" for reply in answered.replies)
    cached = 100 * cached_count / count
    longest = 1000 * max(reply.seconds for reply in answered.replies)
    shown = float(is_new_shown)
    counts = [
        Measure("requests", count, digits=0),
        Measure("of them from nginx's cache", cached, "%", digits=0),
        Measure("failed requests", answered.failed, "", 0, digits=0),
    ]
    times = [
        Measure("publishing took", seconds, "s"),
        Measure("median latency", answered.median_ms, "ms"),
        Measure("99th percentile", answered.worst_ms, "ms"),
        Measure("longest", longest, "ms", digits=0),
    ]
    is_new = Measure(
        "new pages shown afterwards", shown, "", 1, at_least=True, digits=0
    )
    return [*counts, *times, is_new]


if __name__ == "__main__":
    main()
