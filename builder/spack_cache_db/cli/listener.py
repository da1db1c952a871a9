"""The socket that `serve` listens on, taken before anything else is started."""

from __future__ import annotations

import errno
import socket

from spack_cache_db.errors import BuilderError, reason

_BACKLOG = 2048


class ListenError(BuilderError):
    """Nothing can be served at this address."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port; port 0 takes a free one.

    Raises:
        ListenError: there is no such host, or the port is not to be had.
    """
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
        return f"port {port} is taken; choose another with --port, or let --port 0 find a free one"
    if code == errno.EACCES:
        return f"port {port} is not open to you; choose one above 1023 with --port"
    what = f"--host {host}: {reason(error)}"
    return f"{what}; use an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them"
