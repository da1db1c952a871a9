"""The command `serve`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import click

from spack_cache_db.cli.server import datasette_command
from spack_cache_db.cli.server import site as prepared_site


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on.",
)
@click.option("--no-sql", is_flag=True, help="Refuse SQL that visitors type; canned queries stay.")
def serve(file: Path, host: str, port: int, no_sql: bool) -> None:
    """Serve FILE with Datasette, read-only, until interrupted."""
    with prepared_site(file) as folder:
        command = datasette_command(folder, host=host, port=port, sql=not no_sql)
        sys.exit(_run(command))


def _run(command: list[str]) -> int:
    """Run a command to its end; what ends this process ends that one."""
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            return max(process.wait(), 0)
        except KeyboardInterrupt:
            continue
