"""`python -m benchmarks.crowd FILE`: time the first page while 32 clients send slow
SQL.

Compare the ratio to an idle server: the clients run on the same machine.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from benchmarks.built import file_argument
from benchmarks.client import load
from benchmarks.report import Measure, goals_table
from benchmarks.server import Server, ServerError, serving

CROWD = 32
"""Clients with slow SQL."""
MANY = 100_000
"""More requests than the time is enough for."""
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
    options = []
    if workers is not None:
        options = ["--workers", str(workers)]
    try:
        with serving(file, options=options) as server:
            measures = asyncio.run(_measures(server))
    except ServerError as error:
        raise click.ClickException(str(error)) from error
    click.echo(goals_table(measures))
    if not all(measure.met for measure in measures):
        raise SystemExit(1)


async def _measures(server: Server) -> list[Measure]:
    """Measure the server alone, and then among clients with slow statements."""
    idle = await load(server.port, PAGES, requests=200, seconds=SECONDS)

    # The crowd begins before the pages are asked for, and ends after them.
    crowd_load = load(
        server.port, [ENDLESS], clients=CROWD, requests=MANY, seconds=SECONDS
    )
    crowd = asyncio.create_task(crowd_load)
    await asyncio.sleep(SECONDS / 5)
    among = await load(server.port, PAGES, requests=MANY, seconds=SECONDS / 2)
    statements = await crowd

    ratio = among.median_ms / idle.median_ms
    # A statement that ran until its time limit is a bad request.
    run_count = statements.count(400)
    refused_count = statements.count(503)
    failed_count = among.failed + idle.failed
    latencies = [
        Measure("idle, median", idle.median_ms, "ms"),
        Measure("in the crowd, median", among.median_ms, "ms", GOAL_MS),
        Measure("in the crowd, 99th percentile", among.worst_ms, "ms", GOAL_MS),
        Measure("median, in the crowd ÷ idle", ratio),
    ]
    counts = [
        Measure("pages in the crowd", len(among.replies), digits=0),
        Measure("failed pages", failed_count, "", 0, digits=0),
        Measure("SQL of the crowd run", run_count, digits=0),
        Measure("SQL of the crowd refused with 503", refused_count, digits=0),
    ]
    return latencies + counts


if __name__ == "__main__":
    main()
