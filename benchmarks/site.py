"""`python -m benchmarks.site FILE...`: measure every kind of page on the real
server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import click

from benchmarks.chromium import find_chromium, first_shown
from benchmarks.client import Load, load
from benchmarks.measure import FOLDER
from benchmarks.report import NOTES, Measure, goals_table, table, write_section
from benchmarks.server import Server, ServerError, serving
from benchmarks.targets import LARGEST, PageKind, knows_dependencies, page_kinds

MANY = 16
"""Clients at the same time."""
TURNS = 5
"""Turns of measuring the plainest page and another one."""
PLAIN = 40
"""Requests of the plainest page in each turn."""
ROWS = "#configurations tbody tr"
"""The selector of the rows of a package's page."""
HEAD = (
    "page",
    "CPU ms",
    "÷ plain",
    "median",
    "p99",
    f"median, {MANY}",
    f"p99, {MANY}",
    "req/s",
    "goal",
    "met",
)


@dataclass(slots=True)
class Cost:
    """The responses to requests of one client, and the server's processor time."""

    load: Load = field(default_factory=Load)
    cpu_seconds: float = 0.0

    @property
    def milliseconds(self) -> float:
        """Processor time for one request."""
        return 1000 * self.cpu_seconds / len(self.load.replies)


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1)
@click.option(
    "--soak",
    type=int,
    default=0,
    help="Then send so many requests, and measure the memory.",
)
@click.option("--write", is_flag=True, help="Put the tables into benchmarks/NOTES.md.")
def main(files: tuple[Path, ...], soak: int, write: bool) -> None:
    """Measure each kind of page of the FILES' sites with 1 and 16 clients on loopback.

    The default FILES are those of `make bench`. For a database with dependency data,
    only the pages that show it are measured.
    """
    for file in files or (FOLDER / "bench.db", FOLDER / "index.db"):
        if not file.is_file():
            raise click.ClickException(
                f"{file}: no such file; create it with `make bench`"
            )
        kinds = page_kinds(file)
        try:
            with serving(file) as server:
                section, text = _measured(server, kinds, soak)
        except ServerError as error:
            raise click.ClickException(str(error)) from error
        click.echo(text)
        if write:
            write_section(NOTES, section, text)


def _measured(server: Server, kinds: list[PageKind], soak: int) -> tuple[str, str]:
    """Return the name of a section of NOTES.md, and its text."""
    server.settle()
    if knows_dependencies(kinds):
        return "dependencies table", asyncio.run(_report(server, kinds, 0))
    text = asyncio.run(_report(server, kinds, soak))
    # Last, because Chromium competes with the server for the processor.
    return "site table", f"{text}\n\n{_on_screen(server, kinds)}"


async def _report(server: Server, kinds: list[PageKind], soak: int) -> str:
    """Return the table of all kinds of pages, and of the memory after many requests."""
    plain = kinds[0]
    rows = []
    for kind in kinds:
        # By one client, in turns with the plainest page; then by many.
        plain_cost, cost = await _in_turns(server, plain, kind)
        crowd = await load(
            server.port,
            kind.targets,
            clients=MANY,
            requests=4 * kind.requests,
            seconds=10,
        )
        rows.append(_row(kind, plain_cost, cost, crowd))
    megabytes = server.resident_bytes / 1e6
    text = f"{table(HEAD, rows)}\n\nResident memory: {megabytes:.0f} MB."
    if soak:
        text += f"\n\n{await _soak(server, kinds, soak)}"
    return text


def _row(kind: PageKind, plain_cost: Cost, cost: Cost, crowd: Load) -> list[str]:
    """Return the row of a kind of page."""
    alone = cost.load
    cpu = cost.milliseconds
    ratio = cpu / plain_cost.milliseconds
    rate = f"{crowd.per_second:.1f}"
    failed_count = alone.failed + crowd.failed
    if failed_count:
        rate += f" ({failed_count} failed)"
    latencies = (alone.median_ms, alone.worst_ms, crowd.median_ms, crowd.worst_ms)
    _, _, goal, verdict = Measure(kind.name, ratio, "x", kind.goal).cells()
    return [
        kind.name,
        f"{cpu:.1f}",
        f"{ratio:.1f}",
        *(f"{latency:.1f}" for latency in latencies),
        rate,
        goal,
        verdict,
    ]


async def _in_turns(
    server: Server, plain: PageKind, kind: PageKind
) -> tuple[Cost, Cost]:
    """Measure the plainest page and another kind in turns, because a machine's speed
    varies; return the costs of both.
    """
    every = list(islice(cycle(kind.targets), kind.requests))
    # The first requests of a kind are slower.
    await load(server.port, every, requests=min(3, len(every)))

    plain_cost = Cost()
    cost = Cost()
    step = max(len(every) // TURNS, 1)
    for start in range(0, len(every), step):
        part = every[start : start + step]
        await _add_requests(server, plain_cost, plain.targets, PLAIN)
        await _add_requests(server, cost, part, len(part))
    return plain_cost, cost


async def _add_requests(
    server: Server, cost: Cost, targets: Sequence[str], count: int
) -> None:
    """Send requests by one client, and add what they cost."""
    cpu_before = server.cpu_seconds
    part = await load(server.port, targets, requests=count, seconds=10)
    cost.cpu_seconds += server.cpu_seconds - cpu_before
    cost.load.replies += part.replies
    cost.load.seconds += part.seconds


def _on_screen(server: Server, kinds: list[PageKind]) -> str:
    """Return the measurement of the time until Chromium shows the rows of the largest
    package.
    """
    name = "first rows of the largest package in Chromium"
    chromium = find_chromium()
    if chromium is None:
        return "First rows of the largest package: Chromium is not installed."
    address = f"http://127.0.0.1:{server.port}"
    target_of = {kind.name: kind.targets[0] for kind in kinds}
    largest = address + target_of[LARGEST]
    plainest = address + kinds[0].targets[0]

    first = first_shown(chromium, largest, ROWS)
    following = first_shown(chromium, largest, ROWS, before=f"{address}/")
    plain = first_shown(chromium, plainest, "pre")
    by_browser = [
        Measure(f"{name}, first visit", first.by_browser, "ms", 200, digits=0),
        Measure(f"{name}, next page", following.by_browser, "ms", digits=0),
        Measure("versions.json, first visit", plain.by_browser, "ms", digits=0),
    ]
    with_messages = [
        Measure(f"{name}, and messages", first.by_benchmark, "ms", digits=0),
        Measure("versions.json, and messages", plain.by_benchmark, "ms", digits=0),
    ]
    return goals_table(by_browser + with_messages)


async def _soak(server: Server, kinds: list[PageKind], requests: int) -> str:
    """Request all kinds of pages in turn, and return the memory after each tenth."""
    # One target of each kind, then the next one of each.
    short = [kind for kind in kinds if kind.requests >= 100]
    longest = max(len(kind.targets) for kind in short)
    mixed = []
    for number in range(longest):
        for kind in short:
            mixed.append(kind.targets[number % len(kind.targets)])

    step = max(requests // 10, 1)
    failed_count = 0
    rows = []
    memory = []
    for count in range(step, requests + 1, step):
        part = await load(server.port, mixed, clients=4, requests=step, seconds=600)
        failed_count += part.failed
        megabytes = server.resident_bytes / 1e6
        memory.append(megabytes)
        rows.append([f"{count:,}", f"{megabytes:.1f} MB"])
    growth = memory[-1] / memory[0]
    measures = [
        Measure("memory, last tenth ÷ first", growth, "x", 1.05, digits=3),
        Measure("failed requests", failed_count, "", 0, digits=0),
    ]
    return f"{table(['requests', 'resident'], rows)}\n\n{goals_table(measures)}"


if __name__ == "__main__":
    main()
