"""The fields of a query string, each once and not too many: each may cost a statement or a link."""

from __future__ import annotations

from urllib.parse import unquote_plus

MOST_FIELDS = 100
MOST_OF = {"_facet": 10, "_sort": 2}
"""How many fields may begin so."""


class TooManyError(Exception):
    """An address with more fields than one may have."""


def each_once(query: bytes) -> bytes:
    """Return a query string without fields that stand there twice, in the same order.

    Raises:
        TooManyError: there are too many different ones.
    """
    fields: dict[tuple[str, str], bytes] = {}
    for field in query.split(b"&"):
        name, _, value = field.decode("latin1").partition("=")
        if field:
            fields.setdefault((unquote_plus(name), unquote_plus(value)), field)
    if len(fields) > MOST_FIELDS:
        raise TooManyError(f"The address has more than {MOST_FIELDS} fields.")
    for start, most in MOST_OF.items():
        if sum(name.startswith(start) for name, _ in fields) > most:
            raise TooManyError(f"The address has more than {most} fields that begin with {start}.")
    return b"&".join(fields.values())
