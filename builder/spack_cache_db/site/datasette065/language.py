"""The language of Datasette's own pages, which its base template does not say: screen readers ask.

The template's first line is fixed; only its blocks can be filled.
"""

from __future__ import annotations

from spack_cache_db.site.wrapper import App, Message, Receive, Scope, Send

SILENT, SAID = b"<html>", b'<html lang="en">'


def wrap(app: App) -> App:
    """Return the application with the language in the first piece of each page."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = False

        async def say(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                headers = [(key.lower(), value) for key, value in message.get("headers", ())]
                is_page = dict(headers).get(b"content-type", b"").startswith(b"text/html")
                if is_page:
                    headers = [each for each in headers if each[0] != b"content-length"]
                message = {**message, "headers": headers}
            elif is_page and message.get("body"):
                message = {**message, "body": message["body"].replace(SILENT, SAID, 1)}
                is_page = False
            await send(message)

        await app(scope, receive, say)

    return wrapped
