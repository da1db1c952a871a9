"""The names by which browsers may call a server: its header `Host`."""

from __future__ import annotations

import ipaddress


def host_of(header: str) -> str:
    """Return the name or address in a header `Host`, without the port."""
    if header.startswith("["):
        address, _, port = header[1:].partition("]")
        # Only a port may follow an address.
        return address if not port or port.startswith(":") else ""
    return header.partition(":")[0].lower().removesuffix(".")


def is_known_host(host: str, hosts: frozenset[str] | None) -> bool:
    """Return whether a name means this machine itself, or is one of `hosts`; None
    allows all.

    Otherwise a website could have its own name resolved to this machine, and read this
    server in the browser of someone who may (DNS rebinding).
    """
    if hosts is None or host in hosts:
        return True
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
