"""The headers of every response: security, caching, and CORS if it is turned on.

Datasette sends none of these on most of its pages, and the site must be safe without a
proxy.
"""

from __future__ import annotations

import re
from typing import Any

from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.http.asgi import Message
from spack_cache_db.site.page_response import STRICT
from spack_cache_db.site.sql.execution import refusal

_SECURITY = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"strict-origin-when-cross-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_CORS = {
    b"access-control-allow-origin": b"*",
    b"access-control-allow-methods": b"GET, HEAD, OPTIONS",
    b"access-control-allow-headers": b"Authorization, Content-Type, If-None-Match, If-Range, Range",
    b"access-control-expose-headers": b"Accept-Ranges, Content-Length, Content-Range, ETag, Link",
    b"access-control-max-age": b"3600",
}
"""Let scripts of other websites read responses, as Datasette's option `--cors` says."""
_POLICY = b"content-security-policy"
_CACHE = b"cache-control"
_NO_FRAMES = "frame-ancestors 'none'"

_POLICY_OF_DATASETTE = re.sub(
    "((?:script|style)-src 'self')", r"\1 'unsafe-inline'", STRICT
)
"""The policy of Datasette's own pages, which have scripts and styles inside."""


def completed(
    datasette: Any, start: Message, *, is_open: bool
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with those of this module.

    Args:
        datasette: the Datasette.
        start: the message that starts the response.
        is_open: whether the address is a plugin's, or opened by the owner.
    """
    # A response may have several headers only of this name.
    cookies = [pair for pair in start["headers"] if pair[0] == b"set-cookie"]
    headers = dict(_SECURITY)
    for name, value in start["headers"]:
        headers[name.lower()] = value
    headers.pop(b"set-cookie", None)
    if datasette.cors:
        headers |= _CORS

    # A response of our own pages has a policy already.
    allowed = allowances_of(datasette)
    policy = headers.get(_POLICY, b"").decode()
    if not policy:
        policy = allowed.policy(_POLICY_OF_DATASETTE)
    if allowed.embedding:
        origins = " ".join(allowed.embedding)
        policy = policy.replace(_NO_FRAMES, f"frame-ancestors {origins}")
        # This older header cannot name origins.
        del headers[b"x-frame-options"]
    headers[_POLICY] = policy.encode()

    # A plugin's page may be for one visitor.
    seconds = 0 if is_open else datasette.setting("default_cache_ttl")
    caching = f"public, max-age={seconds}".encode() if seconds else b"no-store"
    headers.setdefault(_CACHE, caching)
    # Datasette 1.0 shows errors beside a form, with status 200.
    if start["status"] >= 400 or refusal():
        headers[_CACHE] = b"no-store"
    return [*headers.items(), *cookies]
