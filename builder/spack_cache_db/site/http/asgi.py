"""The types of ASGI, the interface between a web server and a Python application.

An application is called once for each request, with the request's facts and two
functions. `receive` returns the parts of the request's body. `send` takes a message
that starts the response, then one or more messages with parts of its body:

    {"type": "http.response.start", "status": 200, "headers": [(b"etag", b"x")]}
    {"type": "http.response.body", "body": b"<p>", "more_body": True}
    {"type": "http.response.body", "body": b"</p>"}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
"""The facts of a request, such as `path` (a text), `query_string` and `headers` (bytes,
with names in lower case).
"""
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
