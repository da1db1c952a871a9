"""Errors of CSV: a status where nothing was sent yet, a broken connection where something was.

Datasette writes why a stream broke off into the stream, as if it were a row, and where a query is
refused 0.65 answers 200 with an empty line; both would be kept for an hour. A row ends with CR LF,
what Datasette writes of an error does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spack_cache_db.site.sql.database import refusal
from spack_cache_db.site.wrapper import App, Message, Receive, Scope, Send, path_of

ROW_END = b"\r\n"
UNKNOWN = "The rows cannot be shown: the same address without .csv says why."
_CSV = (b"text/plain", b"text/csv")


def tell(app: App, base_url: str = "/", own: Iterable[str] = ()) -> App:
    """Return the application, none of whose CSV is an error with status 200.

    Args:
        app: the application.
        base_url: the path below which the site is.
        own: regular expressions for the paths of the catalogue's own pages, which know better.
    """
    patterns = [re.compile(each) for each in own]

    def is_csv(scope: Scope) -> bool:
        if scope["type"] != "http" or not str(scope["path"]).endswith(".csv"):
            return False
        path = path_of(scope, base_url)
        return not any(each.match(path) for each in patterns)

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, _Answer(send).send if is_csv(scope) else send)

    return told


class _Answer:
    """Passes an answer on as long as it is rows; its status waits for the first of them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._is_rows = self._is_broken = False

    async def send(self, message: Message) -> None:
        if self._is_broken:
            return
        if message["type"] == "http.response.start":
            kind = {key.lower(): value for key, value in message["headers"]}.get(b"content-type")
            self._is_rows = message["status"] == 200 and (kind or b"").startswith(_CSV)
            if self._is_rows:
                self._start = message
                return
        elif self._is_rows and not await self._is_row(message):
            return
        await self._send(message)

    async def _is_row(self, message: Message) -> bool:
        """Send the status that was waiting; return whether the message is to follow it."""
        body = message.get("body", b"")
        is_text = bool(body) and not body.endswith(ROW_END)
        if self._start is None:
            self._is_broken = is_text
            return not is_text
        start, self._start = self._start, None
        if is_text or (refusal() and body in (b"", ROW_END)):
            await self._refuse()
            return False
        await self._send(start)
        return True

    async def _refuse(self) -> None:
        self._is_broken = True
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        text = f"Error: {refusal() or UNKNOWN}\n"
        await self._send({"type": "http.response.start", "status": 400, "headers": headers})
        await self._send({"type": "http.response.body", "body": text.encode()})
