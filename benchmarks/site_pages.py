"""Time the site's pages: `python -m benchmarks.site_pages spack-cache.db`.

Starts one server process as `spack-cache-db serve` does, asks for each page some times after a
warm-up, and prints the median, the bytes as they travel, and the ratio to a request of
`/-/versions.json`, which costs nothing but the server itself. With Chromium installed it also
prints when the first rows of a package stand on the screen.
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import click
import httpx

from benchmarks.chromium import FLAGS
from benchmarks.server import PLAIN_PAGE, ServerError, serving

LARGEST = "SELECT name FROM packages ORDER BY configuration_count DESC, name LIMIT 1"
MIDDLE = """
SELECT name FROM packages ORDER BY spec_count DESC, name
LIMIT 1 OFFSET (SELECT count(*) / 2 FROM packages)
"""
MOST_LISTED = "SELECT hash FROM specs ORDER BY release_count DESC, hash LIMIT 1"
RELEASE = "SELECT name FROM releases ORDER BY position LIMIT 1"
STACK = "SELECT name FROM stacks WHERE NOT is_root ORDER BY spec_count DESC, name LIMIT 1"


@dataclass(frozen=True, slots=True)
class Page:
    """One page to time, and the goal for it in milliseconds, where there is one."""

    name: str
    path: str
    goal: float | None = None


def pages_of(database: Path) -> list[Page]:
    """Choose the heaviest pages that the file has."""
    conn = sqlite3.connect(f"file:{database}?immutable=1", uri=True)
    try:
        largest, middle, most_listed, release, stack = (
            conn.execute(sql).fetchone()[0]
            for sql in (LARGEST, MIDDLE, MOST_LISTED, RELEASE, STACK)
        )
    finally:
        conn.close()
    facets = "_facet=compiler&_facet=os&_facet=target"
    return [
        Page("versions.json", PLAIN_PAGE),
        Page("home", "/", 10),
        Page("package, most configurations", f"/package/{largest}", 25),
        Page("package, filtered", f"/package/{largest}?release={release}&target=x86_64_v3", 25),
        Page("package, release and stack", f"/package/{largest}?release={release}&stack={stack}"),
        Page("package, middling", f"/package/{middle}", 25),
        Page("spec, in most releases", f"/spec/{most_listed}", 10),
        Page("find, one package", f"/find?q={largest}+target%3Dx86_64_v3", 30),
        Page("find, everywhere", "/find?q=%25gcc+target%3Dx86_64_v3", 30),
        Page("release", f"/release/{release}"),
        Page("stack", f"/stack/{stack}"),
        Page("configurations, stock", f"/spack-cache/configurations?{facets}", 60),
    ]


def time_page(client: httpx.Client, path: str, requests: int) -> tuple[float, int]:
    """Return the median milliseconds of a request, and the bytes of the body as they travel."""
    taken = []
    size = 0
    for number in range(requests + 3):
        start = time.perf_counter()
        with client.stream("GET", path) as answer:
            size = sum(len(part) for part in answer.iter_raw())
        if answer.status_code != httpx.codes.OK:
            raise click.ClickException(f"{path}: status {answer.status_code}")
        if number >= 3:
            taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken), size


def first_rows(address: str, path: str, times: int = 5) -> float | None:
    """Return the median milliseconds until a package's first rows are there, in Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    taken = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(times):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(address + path, wait_until="commit")
            page.wait_for_selector("#configurations tbody tr")
            taken.append((time.perf_counter() - start) * 1000)
            page.close()
        browser.close()
    return statistics.median(taken)


@click.command()
@click.argument("database", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--requests", default=50, show_default=True, help="Warm requests for each page.")
def main(database: Path, requests: int) -> None:
    """Time the pages of the site over DATABASE."""
    pages = pages_of(database)
    try:
        with serving(database) as server:
            address = f"http://127.0.0.1:{server.port}"
            headers = {"accept-encoding": "gzip"}
            with httpx.Client(base_url=address, headers=headers, timeout=30) as client:
                timed = [(page, *time_page(client, page.path, requests)) for page in pages]
            rows = first_rows(address, pages[2].path)
    except ServerError as error:
        raise click.ClickException(str(error)) from error
    baseline = timed[0][1]
    click.echo(f"{'page':32}{'median ms':>10}{'goal':>7}{'ratio':>7}{'KB sent':>9}")
    for page, median, size in timed:
        goal = f"{page.goal:.0f}" if page.goal else ""
        ratio = median / baseline
        click.echo(f"{page.name:32}{median:10.1f}{goal:>7}{ratio:7.1f}{size / 1000:9.1f}")
    shown = "no Chromium here" if rows is None else f"{rows:.0f} ms (goal 300)"
    click.echo(f"First rows of a package in Chromium: {shown}")


if __name__ == "__main__":
    main()
