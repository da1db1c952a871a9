"""`python -m benchmarks.proxy FILE`: requests per second behind nginx, cached and
uncached.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks.nginx import nginx
from benchmarks.report import table
from benchmarks.server import ServerError, serving
from benchmarks.targets import PageKind, page_kinds

SECONDS = 4
CONNECTIONS = 16
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
    try:
        columns = _columns(file, kinds)
    except ServerError as error:
        raise click.ClickException(str(error)) from error
    rows = [
        [kind.name, *(column[n] for column in columns.values())]
        for n, kind in enumerate(kinds)
    ]
    click.echo(table(["req/s", *columns], rows))


def _columns(file: Path, kinds: list[PageKind]) -> dict[str, list[str]]:
    found = {}
    with ExitStack() as stack:
        server = stack.enter_context(serving(file)).port
        found["serve"] = [_rate(server, kind) for kind in kinds]
        for title, cache in (("nginx", False), ("nginx with cache", True)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            with nginx(folder, server, cache=cache) as port:
                found[title] = [_rate(port, kind) for kind in kinds]
    return found


def _rate(port: int, kind: PageKind) -> str:
    """Return the requests per second of one page, as `wrk` measures them."""
    url = f"http://127.0.0.1:{port}{kind.targets[0]}"
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{SECONDS}s",
        "--timeout",
        "10s",
        url,
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests/sec:\s*([\d.]+)", output)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", output) or re.search(
        r"(Socket .*)", output
    )
    rate = f"{float(found[1]) if found else 0:,.0f}"
    return f"{rate} ({failed[1]} failed)" if failed else rate


if __name__ == "__main__":
    main()
