"""Web origins, such as `https://example.org:8080`: scheme, host and port."""

from __future__ import annotations

import re

# The host is a name, an IPv4 address, or an IPv6 address in brackets; the port may be
# left out.
_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?", re.ASCII)


def is_origin(text: str) -> bool:
    """Return whether a text is a web origin: scheme, host and port, without a path."""
    return _ORIGIN.fullmatch(text) is not None
