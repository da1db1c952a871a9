"""`python -m benchmarks.proxy FILE`: requests per second behind nginx, cached and
uncached.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.nginx import nginx
from benchmarks.report import table
from benchmarks.server import ServerError, serving
from benchmarks.targets import PageKind, page_kinds

SECONDS = 4
CONNECTIONS = 16
RATE = re.compile(r"Requests/sec:\s*([\d.]+)")
REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)")
BROKEN = re.compile(r"(Socket .*)")
"""Lines in the output of wrk."""
MEASURED = ("home", "package, the largest", "spec", "find", "configurations, 3 facets")


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
def main(file: Path) -> None:
    """Measure FILE's site directly, behind nginx, and cached."""
    if not shutil.which("wrk"):
        raise click.ClickException(
            "this load needs wrk: install Debian's package of that name"
        )
    kinds = [kind for kind in page_kinds(file) if kind.name in MEASURED]
    # A row for each kind, to which each server adds a cell.
    rows = [[kind.name] for kind in kinds]
    try:
        with _ports(file) as ports:
            for port in ports.values():
                for row, kind in zip(rows, kinds, strict=True):
                    row.append(_rate(port, kind))
    except ServerError as error:
        raise click.ClickException(str(error)) from error
    click.echo(table(["req/s", *ports], rows))


@contextmanager
def _ports(file: Path) -> Iterator[dict[str, int]]:
    """Serve a file directly, through nginx, and through nginx with its cache; yield the
    ports.
    """
    with (
        TemporaryDirectory() as plain,
        TemporaryDirectory() as cached,
        serving(file) as server,
        nginx(Path(plain), server.port, cache=False) as plain_port,
        nginx(Path(cached), server.port, cache=True) as cached_port,
    ):
        yield {
            "serve": server.port,
            "nginx": plain_port,
            "nginx with cache": cached_port,
        }


def _rate(port: int, kind: PageKind) -> str:
    """Return the requests per second of one page, as `wrk` measures them."""
    url = f"http://127.0.0.1:{port}{kind.targets[0]}"
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "10s"]
    command = ["wrk", *options, url]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = RATE.search(output)
    if rate is None:
        return "no rate"
    # A rate with failures says nothing about the server.
    text = f"{float(rate[1]):,.0f}"
    failures = REFUSED.search(output) or BROKEN.search(output)
    if failures is not None:
        text += f" ({failures[1]} failed)"
    return text


if __name__ == "__main__":
    main()
