"""The command `serve`."""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from spack_cache_db.cli.listener import address_of, listen
from spack_cache_db.cli.options import GivenPath
from spack_cache_db.cli.signals import SIGNALS
from spack_cache_db.cli.site import site_folder
from spack_cache_db.cli.terminal import say


@click.command()
@click.argument("file", type=GivenPath(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on; 0 finds a free one.",
)
@click.option("--no-sql", is_flag=True, help="Refuse SQL that visitors type; canned queries stay.")
@click.option("--cors", is_flag=True, help="Let pages of other sites read the data and the file.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Serve in so many processes, started again when one hangs, grows or dies.",
)
def serve(file: Path, host: str, port: int, no_sql: bool, cors: bool, workers: int | None) -> None:
    """Serve a database with Datasette, read-only.

    FILE may be built anew meanwhile: what was opened is served until the server is started again.
    """
    # Datasette takes longer to load than all that its options need.
    from spack_cache_db.cli.server import datasette, served
    from spack_cache_db.site.process import run_here
    from spack_cache_db.site.wrapper import App

    if workers is not None and find_spec("uvicorn_worker") is None:
        raise click.ClickException(
            "--workers needs gunicorn; install it with: pip install 'spack-cache-db[workers]'"
        )
    site_folder()
    for each in SIGNALS:
        # Until the server runs, which ends in its own way.
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, lambda *_: sys.exit(0))
    with served(file) as opened, listen(host, port) as listener:

        def make_app() -> App:
            app: App = datasette(opened, sql=not no_sql, cors=cors).app()
            return app

        say(f"Serving {file} on {address_of(listener)} until interrupted (Ctrl-C).")
        if workers is None:
            run_here(make_app(), listener)
        else:
            from spack_cache_db.site.workers import run_workers

            run_workers(make_app, listener, workers)
