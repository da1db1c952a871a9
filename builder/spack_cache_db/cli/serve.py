"""The commands that publish a database: `serve` with its socket, `site` and `export-static`."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import NoReturn

import click

from spack_cache_db.cli.options import GivenPath, file_argument
from spack_cache_db.cli.output import fail, say
from spack_cache_db.cli.signals import SIGNALS
from spack_cache_db.errors import BuilderError, reason
from spack_cache_db.site import site_folder

_BACKLOG = 2048
_LAST_STREAM = 2
_FIRST_LISTENER = 3
"""The number of the first socket that a process is started with (sd_listen_fds(3))."""


@click.command()
@file_argument
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--no-sql", is_flag=True, help="Refuse visitors' own SQL; canned queries still work.")
@click.option("--cors", is_flag=True, help="Let other websites read the data and the file.")
@click.option(
    "--allow-embedding",
    "embedding",
    metavar="ORIGIN",
    multiple=True,
    help="Let pages of ORIGIN (https://host) show the site in a frame. Repeatable.",
)
@click.option(
    "--proxy",
    metavar="ADDRESS",
    help="Trust X-Forwarded-Proto and X-Forwarded-For from the proxy at this address.",
)
@click.option(
    "--metadata",
    type=GivenPath(exists=True, dir_okay=False, path_type=Path),
    help="YAML or JSON with a title, permissions, plugins or settings that replace the site's.",
)
@click.option(
    "--setting",
    "settings",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Datasette setting. Repeatable.",
)
@click.option(
    "--plugins-dir",
    type=GivenPath(exists=True, file_okay=False, path_type=Path),
    help="Folder with your own Datasette plugins.",
)
@click.option(
    "--base-url",
    metavar="PATH",
    help="Path below which a proxy publishes the site, such as /cache/.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Number of processes; one that hangs, grows too large or dies is replaced.",
)
def serve(
    file: Path,
    host: str,
    port: int,
    no_sql: bool,
    cors: bool,
    embedding: tuple[str, ...],
    proxy: str | None,
    metadata: Path | None,
    settings: tuple[tuple[str, str], ...],
    plugins_dir: Path | None,
    base_url: str | None,
    workers: int | None,
) -> None:
    """Serve a database with Datasette, read-only.

    If a build replaces FILE, the server shows the old content until it gets SIGHUP or is restarted.
    SIGHUP ends a server that was started in a terminal.

    Example: spack-cache-db serve dist/spack-cache.db --port 8001
    """
    # Datasette takes longer to load than all that its options need.
    from spack_cache_db.cli.server import (
        SiteOptions,
        check_database,
        checked_setting,
        datasette,
        read_metadata,
        served,
    )
    from spack_cache_db.site.allowances import is_origin
    from spack_cache_db.site.middleware import App
    from spack_cache_db.site.sandbox.statements import bound_heap
    from spack_cache_db.site.uvicorn_server import run_here

    if workers is not None and find_spec("uvicorn_worker") is None:
        fail("--workers needs gunicorn; install it with: pip install 'spack-cache-db[workers]'")
    for origin in embedding:
        if not is_origin(origin):
            fail(f"--allow-embedding {origin}: expected an origin such as https://example.org")
    if proxy is not None and not _are_addresses(proxy):
        fail(f"--proxy {proxy}: expected an IP address such as 127.0.0.1, or a network of them")
    site_folder()
    given = [*settings, *([("base_url", base_url)] if base_url is not None else [])]
    options = SiteOptions(
        sql=not no_sql,
        cors=cors,
        metadata=read_metadata(metadata) if metadata else {},
        settings={name: checked_setting(name, value) for name, value in given},
        plugins_dir=plugins_dir,
        embedding=embedding,
    )
    bound_heap()
    _open_closed_streams()
    # A terminal that closes sends SIGHUP as well.
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    for each in SIGNALS:
        # Until the server runs, which ends in its own way; there is nothing to read anew yet.
        if signal.getsignal(each) is not signal.SIG_IGN:
            ends = has_terminal or each != signal.SIGHUP
            signal.signal(each, (lambda *_: sys.exit(0)) if ends else (lambda *_: None))
    with served(file) as opened, listen(host, port) as listener:

        def make_app() -> App:
            app: App = datasette(opened, options).app()
            return app

        def reload() -> bool:
            try:
                check_database(file)
            except BuilderError as error:
                say(f"SIGHUP: {error}. The old content is still served.")
                return False
            return True

        say(f"Serving {file} on {address_of(listener)} until interrupted (Ctrl-C).")
        kept = os.dup(listener.fileno())
        on_hangup = None if has_terminal else reload
        if workers is None:
            is_over = run_here(make_app(), listener, proxy, on_hangup)
        else:
            from spack_cache_db.site.gunicorn_server import run_workers

            is_over = run_workers(make_app, listener, workers, proxy, on_hangup)
    _give_up_unread()
    if not is_over:
        _start_again(kept)


def _open_closed_streams() -> None:
    """Let what is written to a closed standard output or error be lost.

    uvicorn needs both, and the next files and sockets would get the numbers of closed ones, here
    and in the processes that are started.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST_STREAM:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(_LAST_STREAM, "w")


def _give_up_unread() -> None:
    """Forget what is left to be written to a reader who has left.

    Python would try to write it at its end, and end with status 120
    (docs.python.org/3/library/signal.html, "Note on SIGPIPE").
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _are_addresses(text: str) -> bool:
    try:
        for each in text.split(","):
            ip_network(each.strip(), strict=False)
    except ValueError:
        return text == "*"
    return True


def _start_again(listener: int) -> NoReturn:
    """Begin this command anew, with a socket on which visitors are waiting meanwhile."""
    os.dup2(listener, _FIRST_LISTENER)
    os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class ListenError(BuilderError):
    """Nothing can be served at this address."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port; port 0 takes a free one.

    A socket with which this process was started is taken instead (sd_listen_fds(3)).

    Raises:
        ListenError: there is no such host, or the port is not to be had.
    """
    if os.environ.pop("LISTEN_PID", None) == str(os.getpid()):
        return socket.socket(fileno=_FIRST_LISTENER)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # A name with both kinds of address is asked for by the older kind.
        family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
        # asyncio sets this only on sockets that say they are TCP, which these do not; without it
        # answers of more than one piece wait for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, ValueError) as error:
        raise ListenError(_message(error, host, port)) from None


def address_of(listener: socket.socket) -> str:
    """Return the address of a listening socket as one types it into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _message(error: Exception, host: str, port: int) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return f"port {port} is in use; choose another with --port, or a free one with --port 0"
    if code == errno.EACCES:
        return f"no permission for port {port}; choose one above 1023 with --port"
    what = f"--host {host}: {reason(error)}"
    return f"{what}; use an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them"


@click.command()
def site() -> None:
    """Print the path of the folder with the site's files.

    Pass it to Datasette: datasette "$(spack-cache-db site)" -i spack-cache.db
    """
    click.echo(site_folder())


@click.command()
@file_argument
@click.option(
    "-o",
    "--output",
    type=GivenPath(file_okay=False, path_type=Path),
    required=True,
    help="Folder to write: a new one, or that of an earlier export.",
)
def export_static(file: Path, output: Path) -> None:
    """Write a site that any web server can serve.

    The site is a copy of FILE and one page that searches packages, shows install commands and runs
    SQL in the browser. The web server must support range requests.

    Example: spack-cache-db export-static dist/spack-cache.db -o public
    """
    from spack_cache_db.site import static_site

    told = static_site.export_static(file, output)
    say(f"{output}: index.html and {told['database']}, {told['size'] / 1e6:.1f} MB")
