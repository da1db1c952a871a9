"""The commands that publish a database: `serve` with its socket, `site` and
`export-static`.
"""

from __future__ import annotations

import errno
import importlib.util
import signal
import socket
import sys
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.forms import fail, say
from spack_cache_db.cli.options import GivenPath, file_argument, flag, value_option
from spack_cache_db.errors import BuilderError, printable, reason
from spack_cache_db.site.folder import site_folder
from spack_cache_db.site.origins import is_origin

_BACKLOG = 256
"""Connections that the system keeps for the processes."""
_UNUSED_SECONDS = 30
"""Time for which the system keeps a connection without a request."""

_MCP_PLUGIN = "datasette_mcp"
"""The module of the plugin that answers assistants."""


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
    # Importing Datasette takes longer than checking the options.
    from spack_cache_db.database_file import open_database
    from spack_cache_db.serve.datasette_app import SiteOptions, read_metadata
    from spack_cache_db.serve.server import Server, ServerOptions, default_workers

    click.echo(printable(f"Loading {file} ..."), err=True)
    for origin in options["allow_embedding"]:
        if not is_origin(origin):
            fail(
                f"--allow-embedding {origin}: expected an origin such as https://example.org"
            )
    if proxy is not None and not _are_addresses(proxy):
        fail(
            f"--proxy {proxy}: expected an IP address such as 127.0.0.1, or a network of them"
        )
    if options["mcp"] and importlib.util.find_spec(_MCP_PLUGIN) is None:
        fail("--mcp needs datasette-mcp: pip install 'spack-cache-db[mcp]'")
    site_folder()
    base_url, metadata = options["base_url"], options["metadata"]
    site_options = SiteOptions(
        sql=not options["no_sql"],
        cors=options["cors"],
        metadata=read_metadata(metadata) if metadata else {},
        settings=[
            *options["setting"],
            *([("base_url", base_url)] if base_url is not None else []),
        ],
        plugins_dir=options["plugins_dir"],
        embedding=options["allow_embedding"],
        stale_days=options["stale"],
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        # Until the server processes run: they handle signals themselves.
        signal.signal(number, lambda *_: sys.exit(0))
    # What is wrong with the database helps more than a port that is in use.
    open_database(file).close()
    listener = listen(host, port)
    server_options = ServerOptions(
        workers=workers or default_workers(),
        hosts=_allowed_hosts(listener, options["allow_host"], proxy),
        proxy=proxy,
        access_log=options["access_log"],
    )
    server = Server(file, site_options, server_options, listener)
    say(f"Serving {file} on {address_of(listener)} until interrupted (Ctrl-C).")
    if options["mcp"]:
        say(f"Assistants connect to {address_of(listener)}-/mcp (Streamable HTTP).")
    sys.stdout.flush()
    server.run()


def _allowed_hosts(
    listener: socket.socket, names: Sequence[str], proxy: str | None
) -> frozenset[str] | None:
    """Return the names that the header `Host` may have; None for any.

    A server for other machines has a name that only its owner knows, and a proxy sends
    its own.
    """
    is_local = ip_address(listener.getsockname()[0]).is_loopback
    if not names and (not is_local or proxy is not None):
        return None
    return frozenset(name.lower() for name in names)


def _are_addresses(text: str) -> bool:
    try:
        return text == "*" or all(
            ip_network(part.strip(), strict=False) for part in text.split(",")
        )
    except ValueError:
        return False


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
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            # Browsers open connections before they need them. A process should not wait
            # for those.
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _UNUSED_SECONDS
            )
        return listener
    except (OSError, ValueError) as error:
        advice = "use an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them"
        messages = {
            errno.EADDRINUSE: f"port {port} is in use; choose another with --port, or a free one"
            " with --port 0",
            errno.EACCES: f"no permission for port {port}; choose one above 1023 with --port",
        }
        other = f"--host {host}: {reason(error)}; {advice}"
        raise ListenError(
            messages.get(getattr(error, "errno", 0) or 0, other)
        ) from None


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
