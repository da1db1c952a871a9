"""`python -m benchmarks.crowd FILE`: time the first page while 32 clients send slow
SQL.

Compare the ratio to an idle server: the clients run on the same machine.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from benchmarks.built import file_argument
from benchmarks.client import Load, load
from benchmarks.report import Measure, goals_table
from benchmarks.server import Server, ServerError, serving

CROWD = 32
SECONDS = 10.0
GOAL_MS = 200
PAGES = ("/", "/static/parts.css")
ENDLESS = (
    "/spack-cache.json?sql=WITH+RECURSIVE+n(x)+AS+(SELECT+1+UNION+ALL+SELECT+x%2B1+FROM+n)"
    "+SELECT+count(*)+FROM+n"
)
"""A statement that runs until its time limit, two seconds."""


@click.command()
@file_argument
@click.option("--workers", type=int, help="Serve in so many processes.")
def main(file: Path, workers: int | None) -> None:
    """Measure FILE's first page, alone and among 32 clients with slow SQL."""
    options = [] if workers is None else ["--workers", str(workers)]
    try:
        with serving(file, options=options) as server:
            measures = asyncio.run(_measures(server))
    except ServerError as error:
        raise click.ClickException(str(error)) from error
    click.echo(goals_table(measures))
    if not all(measure.met for measure in measures):
        raise SystemExit(1)


async def _measures(server: Server) -> list[Measure]:
    idle = await load(server.port, PAGES, requests=200, seconds=SECONDS)
    crowd = asyncio.create_task(
        load(server.port, [ENDLESS], clients=CROWD, requests=100_000, seconds=SECONDS)
    )
    await asyncio.sleep(SECONDS / 5)
    among = await load(server.port, PAGES, requests=100_000, seconds=SECONDS / 2)
    statements = await crowd
    refused = sum(reply.status == 503 for reply in statements.replies)
    alone_ms, among_ms = idle.latency()[0], among.latency()[0]
    return [
        Measure("idle, median", alone_ms, "ms"),
        Measure("in the crowd, median", among_ms, "ms", GOAL_MS),
        Measure("in the crowd, 99th percentile", among.latency()[1], "ms", GOAL_MS),
        Measure("median, in the crowd ÷ idle", among_ms / alone_ms),
        Measure("pages in the crowd", len(among.replies), digits=0),
        Measure("failed pages", among.failed + idle.failed, "", 0, digits=0),
        Measure("SQL of the crowd run", _run(statements), digits=0),
        Measure("SQL of the crowd refused with 503", refused, digits=0),
    ]


def _run(statements: Load) -> int:
    return sum(reply.status == 400 for reply in statements.replies)


if __name__ == "__main__":
    main()
