"""The response to a request for one of our own pages.

It sends itself to the server as ASGI messages, as Datasette's own `Response` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

CONTENT_TYPES = {
    "atom": "application/atom+xml; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "opensearch": "application/opensearchdescription+xml; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "xml": "application/xml; charset=utf-8",
}
"""The header `Content-Type` of each kind of response."""
STRICT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
"""The content security policy of our own pages, which have neither scripts nor styles
inside.
"""


class PageResponse(NamedTuple):
    """The bytes to send, with their status and headers.

    Attributes:
        body: the bytes.
        status: the HTTP status.
        headers: names, in lower case, and values.
        following: the number of the first row of the next part, if the response is sent
            in parts and this is not the last one; None for the last or only part.
    """

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    following: int | None = None

    @property
    def start(self) -> dict[str, Any]:
        """The first ASGI message of the response: its status and headers."""
        headers = [
            (name.encode("latin-1"), text.encode("latin-1"))
            for name, text in self.headers
        ]
        return {
            "type": "http.response.start",
            "status": self.status,
            "headers": headers,
        }

    async def asgi_send(
        self, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        """Send the response; if another part follows, more messages are expected."""
        await send(self.start)
        has_more = self.following is not None
        await send(
            {"type": "http.response.body", "body": self.body, "more_body": has_more}
        )


def data(
    body: str | bytes, kind: str, following: int | None = None, status: int = 200
) -> PageResponse:
    """Return a response with our content security policy.

    Args:
        body: the content; a text is sent as UTF-8.
        kind: a key of `CONTENT_TYPES`.
        following: as in `PageResponse`.
        status: the HTTP status.
    """
    encoded = body.encode() if isinstance(body, str) else body
    headers = (
        ("content-type", CONTENT_TYPES[kind]),
        ("content-security-policy", STRICT),
    )
    return PageResponse(encoded, status, headers, following)
