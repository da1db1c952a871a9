"""The names by which browsers may call a server: its header `Host`.

The site of an attacker can have its own name resolved to the machine of its visitor.
For the browser, the visitor's server is then a part of that site, which reads it (DNS
rebinding). The header still has the name, by which the server refuses the request.
"""

from __future__ import annotations

import ipaddress


def host_of(header: str) -> str:
    """Return the name or address in a header `Host`, without the port.

    `localhost` for `LOCALHOST.:8001`, and `::1` for `[::1]:8001`. Empty for a header
    with anything else after an address.
    """
    if header.startswith("["):
        address, _, port = header[1:].partition("]")
        return address if not port or port.startswith(":") else ""
    name, _, _ = header.partition(":")
    return name.lower().removesuffix(".")


def is_known_host(host: str, hosts: frozenset[str] | None) -> bool:
    """Return whether a name means this machine itself, or is one of `hosts`.

    None allows all names.
    """
    if hosts is None or host in hosts:
        return True
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
