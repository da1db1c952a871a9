"""The commands that publish a database: `serve` with its socket, `site` and `export-static`."""

from __future__ import annotations

import errno
import signal
import socket
import sys
from ipaddress import ip_network
from pathlib import Path

import click

from spack_cache_db.cli.options import GivenPath, file_argument, flag, value_option
from spack_cache_db.cli.output import fail, say
from spack_cache_db.errors import BuilderError, printable, reason
from spack_cache_db.site import is_origin, site_folder

_BACKLOG = 2048


@click.command()
@file_argument
@value_option("--host", "ADDRESS", "Address to listen on.", default="127.0.0.1", show_default=True)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@flag("--no-sql", "Refuse visitors' own SQL; canned queries still work.")
@flag("--cors", "Let other websites read the data and the file.")
@click.option(
    "--allow-embedding",
    "embedding",
    metavar="ORIGIN",
    multiple=True,
    help="Let pages of ORIGIN (https://host) show the site in a frame. Repeatable.",
)
@value_option(
    "--proxy",
    "ADDRESS",
    "Trust X-Forwarded-Proto and X-Forwarded-For from the proxy at this address.",
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
@value_option("--base-url", "PATH", "Path below which a proxy publishes the site, such as /cache/.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of server processes; one that hangs or dies is replaced.",
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
    workers: int,
) -> None:
    """Serve a database with Datasette, read-only.

    If a build replaces FILE, the server shows the old content until it gets SIGHUP or is restarted.
    SIGHUP ends a server that was started in a terminal.

    Example: spack-cache-db serve dist/spack-cache.db --port 8001
    """
    # Importing uvicorn takes longer than checking the options.
    from spack_cache_db.cli.server import SiteOptions, Supervisor, read_metadata

    click.echo(printable(f"Loading {file} ..."), err=True)
    for origin in embedding:
        if not is_origin(origin):
            fail(f"--allow-embedding {origin}: expected an origin such as https://example.org")
    if proxy is not None and not _are_addresses(proxy):
        fail(f"--proxy {proxy}: expected an IP address such as 127.0.0.1, or a network of them")
    site_folder()
    options = SiteOptions(
        sql=not no_sql,
        cors=cors,
        metadata=read_metadata(metadata) if metadata else {},
        settings=[*settings, *([("base_url", base_url)] if base_url is not None else [])],
        plugins_dir=plugins_dir,
        embedding=embedding,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        # Until the server processes run: they handle signals themselves.
        signal.signal(number, lambda *_: sys.exit(0))
    with listen(host, port) as listener:
        supervisor = Supervisor(file.absolute(), options, listener, workers, proxy)
        say(f"Serving {file} on {address_of(listener)} until interrupted (Ctrl-C).")
        supervisor.run()
    if supervisor.has_failed:
        sys.exit(2)


def _are_addresses(text: str) -> bool:
    try:
        for address in text.split(","):
            ip_network(address.strip(), strict=False)
    except ValueError:
        return text == "*"
    return True


class ListenError(BuilderError):
    """The server cannot listen on this address."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port; port 0 takes a free one.

    Raises:
        ListenError: there is no such host, or the port is in use or forbidden.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # Prefer IPv4 if a name has both kinds of address.
        family, *_, address = min(addresses, key=lambda info: info[0] != socket.AF_INET)
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
        # asyncio sets this only on sockets created with the TCP protocol number, unlike this one;
        # without it, responses in several parts wait for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, ValueError) as error:
        raise ListenError(_message(error, host, port)) from None


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _message(error: Exception, host: str, port: int) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return f"port {port} is in use; choose another with --port, or a free one with --port 0"
    if code == errno.EACCES:
        return f"no permission for port {port}; choose one above 1023 with --port"
    message = f"--host {host}: {reason(error)}"
    return f"{message}; use an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them"


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

    written = static_site.export_static(file, output)
    say(f"{output}: index.html and {written['database']}, {written['size'] / 1e6:.1f} MB")
