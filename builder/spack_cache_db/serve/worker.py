"""The process of gunicorn that answers requests.

It differs from gunicorn's own in how it refuses a request that it cannot read.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from gunicorn.http import errors
from gunicorn.util import close_graceful, write_nonblock
from gunicorn.workers.sync import SyncWorker

from spack_cache_db.serve.application import BROKEN, sent
from spack_cache_db.site.log import LONGEST, log, log_error
from spack_cache_db.site.refusals import refused

STATUS_OF = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
}
"""The status of a request that gunicorn cannot read, by the error; 400 for others."""

NO_HTTP = "The request is not valid HTTP, or has more headers than this server reads."
TOO_SLOW = "The request did not arrive in time."

MOST_UNREAD = 32 << 20
"""Bytes of a refused request that are read and thrown away, within two seconds.

A system resets a connection that is closed with unread bytes, and then the client has
an error instead of the answer. Clients read no answer before they have sent the body.
"""


class Worker(SyncWorker):  # type: ignore[misc]
    """A process of gunicorn whose refusals have the headers of the site, and reach a
    client that still sends its request.
    """

    def handle_request(self, listener: Any, req: Any, client: Any, addr: Any) -> None:
        """Answer a request, and read what the application has left of it."""
        super().handle_request(listener, req, client, addr)
        close_graceful(client, max_drain=MOST_UNREAD)

    def handle_error(
        self, req: Any, client: Any, addr: Any, exc: BaseException
    ) -> None:
        """Refuse a request that gunicorn cannot read, with one line of log.

        Args:
            req: gunicorn's request; None if its first line could not be read.
            client: the socket of the visitor.
            addr: the address of the visitor.
            exc: why gunicorn does not answer.
        """
        visitor = addr[0] if addr else "-"
        if isinstance(exc, errors.ParseException):
            status = STATUS_OF.get(type(exc), HTTPStatus.BAD_REQUEST)
            sentence = NO_HTTP
            why = str(exc)[:LONGEST]
            log(f"refused a request of {visitor}: {why}")
        elif isinstance(exc, SystemExit):
            # gunicorn ends the process, because the request has not arrived in time.
            status = HTTPStatus.REQUEST_TIMEOUT
            sentence = TOO_SLOW
            log(f"a request of {visitor} did not arrive in time")
        else:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            sentence = BROKEN
            log_error(getattr(req, "uri", None) or "", exc)
        method = getattr(req, "method", None) or "GET"
        try:
            write_nonblock(client, _message(method, int(status), sentence))
        except OSError:
            # The visitor has left.
            return
        close_graceful(client, max_drain=MOST_UNREAD)


def _message(method: str, status: int, sentence: str) -> bytes:
    """Return the bytes of a refusal: status line, headers and body."""
    lines = []

    def start(status_line: str, headers: list[tuple[str, str]]) -> None:
        lines.append(f"HTTP/1.1 {status_line}")
        lines.extend(f"{name}: {text}" for name, text in headers)

    body = sent(refused(sentence, None, status), {"REQUEST_METHOD": method}, start)
    # An empty line ends the headers.
    lines += ["connection: close", f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
