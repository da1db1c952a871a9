"""Refused requests: the exception for a wrong address, and the response as JSON or
text.
"""

from __future__ import annotations

import json

from spack_cache_db.site.page_response import PageResponse, data

NO_PAGE = "This site has no such page."
"""The sentence of status 404."""


class BadAddress(Exception):
    """The site does not answer an address: it has an unknown field, column or name.

    The message is a sentence for the visitor, and `status` the HTTP status.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


HEADINGS = {
    400: "This address cannot be answered",
    403: "Not allowed",
    404: "Not found",
    500: "Something went wrong",
    503: "Not available now",
}
"""The headings of errors that have none of their own, by HTTP status."""


def heading_of(status: int) -> str:
    """Return the heading of an error: words, or the status itself if it is rare."""
    return HEADINGS.get(status, f"Error {status}")


def refused(
    sentence: str, form: str | None, status: int = 400, title: str | None = None
) -> PageResponse:
    """Return an error as JSON or as plain text.

    Args:
        sentence: the reason, for the visitor.
        form: `json` for JSON, with the keys that errors of Datasette have; any other
            form, such as `csv`, or None gets plain text.
        status: the HTTP status.
        title: a heading, which only JSON has; None for that of the status.
    """
    if form != "json":
        return data(f"Error: {sentence}\n", "text", status=status)
    document = {
        "ok": False,
        "error": sentence,
        "status": status,
        "title": title or heading_of(status),
    }
    return data(json.dumps(document), "json", status=status)
