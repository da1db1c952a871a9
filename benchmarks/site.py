"""`python -m benchmarks.site FILE...`: measure every kind of page on the real
server.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from benchmarks.chromium import find_chromium, first_shown
from benchmarks.client import Load, load
from benchmarks.measure import FOLDER
from benchmarks.report import NOTES, Measure, goals_table, table, write_section
from benchmarks.server import Server, ServerError, serving
from benchmarks.targets import LARGEST, PageKind, knows_dependencies, page_kinds

MANY = 16
TURNS, PLAIN = 5, 40
"""Turns of measuring the plainest page and another one, and requests of the former per
turn.
"""
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
        is_graph = knows_dependencies(kinds)
        try:
            with serving(file) as server:
                server.settle()
                text = asyncio.run(_report(server, kinds, 0 if is_graph else soak))
                # Last, because Chromium competes with the server for the processor.
                text += "" if is_graph else f"\n\n{_on_screen(server, kinds)}"
        except ServerError as error:
            raise click.ClickException(str(error)) from error
        click.echo(text)
        if write:
            write_section(
                NOTES, "dependencies table" if is_graph else "site table", text
            )


async def _report(server: Server, kinds: list[PageKind], soak: int) -> str:
    rows = []
    for kind in kinds:
        plain, cpu, alone = await _in_turns(server, kinds[0], kind)
        crowd = await load(
            server.port,
            kind.targets,
            clients=MANY,
            requests=4 * kind.requests,
            seconds=10,
        )
        failed = alone.failed + crowd.failed
        latencies = [
            f"{latency:.1f}" for latency in (*alone.latency(), *crowd.latency())
        ]
        rate = f"{crowd.per_second:.1f}" + (f" ({failed} failed)" if failed else "")
        goal = Measure(kind.name, cpu / plain, "x", kind.goal)
        figures = (f"{cpu:.1f}", f"{cpu / plain:.1f}", *latencies, rate)
        rows.append([kind.name, *figures, *goal.cells()[2:]])
    text = (
        f"{table(HEAD, rows)}\n\nResident memory: {server.resident_bytes / 1e6:.0f} MB."
    )
    return f"{text}\n\n{await _soak(server, kinds, soak)}" if soak else text


async def _in_turns(
    server: Server, plain: PageKind, kind: PageKind
) -> tuple[float, float, Load]:
    """Measure the plainest page and another kind in turns, because a machine's speed
    varies.

    Returns:
        The server's CPU ms per request of each, from a single client, and the responses
        of the other kind.
    """
    every = [kind.targets[n % len(kind.targets)] for n in range(kind.requests)]
    step = max(len(every) // TURNS, 1)
    await load(server.port, every, requests=min(3, len(every)))
    least, other = Load(), Load()
    spent = [0.0, 0.0]
    for start in range(0, len(every), step):
        part = every[start : start + step]
        for index, (targets, count) in enumerate(
            ((plain.targets, PLAIN), (part, len(part)))
        ):
            before = server.cpu_seconds
            found = await load(server.port, targets, requests=count, seconds=10)
            spent[index] += server.cpu_seconds - before
            total = (least, other)[index]
            total.replies += found.replies
            total.seconds += found.seconds
    plain_ms, other_ms = (
        1000 * cpu / len(total.replies)
        for cpu, total in zip(spent, (least, other), strict=True)
    )
    return plain_ms, other_ms, other


def _on_screen(server: Server, kinds: list[PageKind]) -> str:
    """Return the measurement of the time until Chromium shows the rows of the largest
    package.
    """
    chromium = find_chromium()
    if chromium is None:
        return (
            "First rows of the largest package in Chromium: Chromium is not installed."
        )
    largest = next(kind.targets[0] for kind in kinds if kind.name == LARGEST)
    plainest = kinds[0].targets[0]
    host = f"http://127.0.0.1:{server.port}"
    first = first_shown(chromium, f"{host}{largest}", ROWS)
    next_page = first_shown(chromium, f"{host}{largest}", ROWS, before=f"{host}/")
    plain = first_shown(chromium, f"{host}{plainest}", "pre")
    name = "first rows of the largest package in Chromium"
    return goals_table(
        [
            Measure(f"{name}, first visit", first.by_browser, "ms", 200, digits=0),
            Measure(f"{name}, next page", next_page.by_browser, "ms", digits=0),
            Measure("versions.json, first visit", plain.by_browser, "ms", digits=0),
            Measure(f"{name}, and messages", first.by_benchmark, "ms", digits=0),
            Measure("versions.json, and messages", plain.by_benchmark, "ms", digits=0),
        ]
    )


async def _soak(server: Server, kinds: list[PageKind], requests: int) -> str:
    """Request all kinds of pages in turn, and return the memory after each tenth."""
    short = [kind for kind in kinds if kind.requests >= 100]
    longest = max(len(kind.targets) for kind in short)
    mixed = [
        kind.targets[n % len(kind.targets)] for n in range(longest) for kind in short
    ]
    step = max(requests // 10, 1)
    failed, rows = 0, []
    for done in range(step, requests + 1, step):
        part = await load(server.port, mixed, clients=4, requests=step, seconds=600)
        failed += part.failed
        rows.append([f"{done:,}", f"{server.resident_bytes / 1e6:.1f} MB"])
    grown = float(rows[-1][1].split()[0]) / float(rows[0][1].split()[0])
    verdict = Measure("memory, last tenth ÷ first", grown, "x", 1.05, digits=3)
    return "\n\n".join(
        [
            table(["requests", "resident"], rows),
            goals_table([verdict, Measure("failed requests", failed, "", 0, digits=0)]),
        ]
    )


if __name__ == "__main__":
    main()
