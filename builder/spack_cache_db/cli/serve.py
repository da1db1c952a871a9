"""The command `serve`: checks its options, opens the socket, and starts the server."""

from __future__ import annotations

import errno
import importlib.util
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.databases import file_argument
from spack_cache_db.cli.forms import fail, say
from spack_cache_db.cli.parameters import GivenPath, flag, value_option
from spack_cache_db.errors import BuilderError, printable, reason
from spack_cache_db.site.folder import site_folder
from spack_cache_db.site.origins import is_origin

if TYPE_CHECKING:
    from spack_cache_db.serve.datasette_app import SiteOptions

_BACKLOG = 256
"""Connections that the system queues until a process of the server accepts them."""

_UNUSED_SECONDS = 30
"""How long the system keeps a connection on which no request arrives."""

_MCP_PLUGIN = "datasette_mcp"
"""The module of the plugin by which assistants (MCP) read the site."""


@click.command()
@file_argument
@value_option(
    "--host", "ADDRESS", "Address to listen on.", default="127.0.0.1", show_default=True
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=8001,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@flag("--no-sql", "Refuse visitors' own SQL; canned queries still work.")
@flag(
    "--mcp",
    "Require the plugin datasette-mcp, and print the address of its tools for assistants.",
)
@flag("--cors", "Let other websites read the data and the file.")
@value_option(
    "--allow-embedding",
    "ORIGIN",
    "Let pages of ORIGIN (https://host) show the site in a frame. Repeatable.",
    multiple=True,
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
@value_option(
    "--setting", "NAME VALUE", "Datasette setting. Repeatable.", nargs=2, multiple=True
)
@click.option(
    "--plugins-dir",
    type=GivenPath(exists=True, file_okay=False, path_type=Path),
    help="Folder with your own Datasette plugins.",
)
@value_option(
    "--base-url",
    "PATH",
    "Path below which a proxy publishes the site, such as /cache/.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes, each for one request at a time.  [default: two per core, 4 to 8]",
)
@value_option(
    "--allow-host",
    "NAME",
    "Name that browsers may call this server by, besides localhost. Repeatable.",
    multiple=True,
)
@value_option(
    "--stale",
    "DAYS",
    "Report a database older than this at /-/health.json with status 503.",
    type=click.FloatRange(min=0, min_open=True),
)
@click.option(
    "--access-log/--no-access-log", help="Write a line of log for each request."
)
def serve(
    file: Path,
    host: str,
    port: int,
    proxy: str | None,
    workers: int | None,
    **options: Any,
) -> None:
    """Serve a database with Datasette, read-only.

    If another database is moved to FILE, the next request shows it.

    Example: spack-cache-db serve dist/spack-cache.db --port 8001
    """
    # Imported late: Click finds most mistakes in options before, and Datasette takes
    # long to import.
    from spack_cache_db.database_file import open_database
    from spack_cache_db.serve.server import Server, ServerOptions, default_workers

    click.echo(printable(f"Loading {file} ..."), err=True)
    _check_options(options["allow_embedding"], proxy, needs_mcp=options["mcp"])
    # An installation without the site's files is an error now, not at the first page.
    site_folder()
    site_options = _site_options(options)

    # Ctrl-C while the server starts is no error. Its processes handle signals
    # themselves.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))

    # A fault of the database helps more than a port that is in use, so it comes first.
    open_database(file).close()
    listener = listen(host, port)
    server_options = ServerOptions(
        workers=workers or default_workers(),
        hosts=_allowed_hosts(listener, options["allow_host"], proxy),
        proxy=proxy,
        access_log=options["access_log"],
    )
    server = Server(file, site_options, server_options, listener)

    address = address_of(listener)
    say(f"Serving {file} on {address} until interrupted (Ctrl-C).")
    if options["mcp"]:
        say(f"Assistants connect to {address}-/mcp (Streamable HTTP).")
    # Python would keep these lines for a pipe until the end of the process.
    sys.stdout.flush()
    server.run()


def _check_options(
    embedding: Sequence[str], proxy: str | None, *, needs_mcp: bool
) -> None:
    """End the command if an option has a wrong value, or a plugin is missing."""
    for origin in embedding:
        if not is_origin(origin):
            expected = "expected an origin such as https://example.org"
            fail(f"--allow-embedding {origin}: {expected}")
    if proxy is not None and not _are_addresses(proxy):
        expected = "expected an IP address such as 127.0.0.1, or a network of them"
        fail(f"--proxy {proxy}: {expected}")
    if needs_mcp and importlib.util.find_spec(_MCP_PLUGIN) is None:
        fail("--mcp needs datasette-mcp: pip install 'spack-cache-db[mcp]'")


def _site_options(options: Mapping[str, Any]) -> SiteOptions:
    """Return the options of the command that are for the site."""
    from spack_cache_db.serve.datasette_app import SiteOptions
    from spack_cache_db.serve.metadata import read_metadata

    metadata = {}
    if options["metadata"]:
        metadata = read_metadata(options["metadata"])
    # --base-url is short for a setting.
    settings = list(options["setting"])
    if options["base_url"] is not None:
        settings.append(("base_url", options["base_url"]))
    return SiteOptions(
        sql=not options["no_sql"],
        cors=options["cors"],
        metadata=metadata,
        settings=settings,
        plugins_dir=options["plugins_dir"],
        embedding=options["allow_embedding"],
        stale_days=options["stale"],
    )


def _are_addresses(text: str) -> bool:
    """Return whether text is a list of addresses and networks, or `*` for all of them.

    Such as `127.0.0.1` or `127.0.0.1, 10.0.0.0/8`.
    """
    if text == "*":
        return True
    for part in text.split(","):
        try:
            ip_network(part.strip(), strict=False)
        except ValueError:
            return False
    return True


def _allowed_hosts(
    listener: socket.socket, names: Sequence[str], proxy: str | None
) -> frozenset[str] | None:
    """Return the names that the header `Host` of a request may have; None for any.

    A server for other machines has a name that only its owner knows, and a proxy sends
    its own name. So names are checked if the owner lists them (`--allow-host`), or if
    only this machine reaches the server.
    """
    address = listener.getsockname()[0]
    is_for_others = proxy is not None or not ip_address(address).is_loopback
    if is_for_others and not names:
        return None
    return frozenset(name.lower() for name in names)


class ListenError(BuilderError):
    """The server cannot listen on this address."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port; port 0 takes a free one.

    Raises:
        ListenError: there is no such host, or the port is in use or forbidden.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # A name such as localhost may have addresses of both kinds: prefer IPv4.
        family, *_, address = min(addresses, key=lambda info: info[0] != socket.AF_INET)
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
        # Browsers open connections before they need them. On Linux, a process gets a
        # connection only when it has a request, so that it never waits for one.
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _UNUSED_SECONDS
            )
    except (OSError, ValueError) as error:
        raise ListenError(_why_not_listening(host, port, error)) from None
    return listener


def _why_not_listening(host: str, port: int, error: OSError | ValueError) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        advice = "choose another with --port, or a free one with --port 0"
        return f"port {port} is in use; {advice}"
    if code == errno.EACCES:
        advice = "choose one above 1023 with --port"
        return f"no permission for port {port}; {advice}"
    advice = "use an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them"
    return f"--host {host}: {reason(error)}; {advice}"


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket, such as `http://127.0.0.1:8001/`."""
    host, port = listener.getsockname()[:2]
    is_ipv6 = ":" in host
    if is_ipv6:
        host = f"[{host}]"
    return f"http://{host}:{port}/"
