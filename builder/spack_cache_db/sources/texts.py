"""Short texts for messages and tables."""

from __future__ import annotations

from typing import Any

from spack_cache_db.errors import cut, one_line

BROKEN = (RecursionError, ValueError)
"""Raised by decoding data that is not JSON of the expected form."""


def message_of(error: BaseException) -> str:
    """Return the message of a decoder as one short line: it may quote keys of any
    length.
    """
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = one_line(str(error))
    return text if len(text) <= 200 else f"{text[:100]}...{text[-100:]}"


def quoted(text: str) -> str:
    """Return text for a message: in quotes, printable and short."""
    return repr(cut_name(text))


def cut_name(text: str) -> str:
    """Return a name of a source that fits into a message."""
    return cut(text, 60, "...")


def printable_name(text: str) -> str:
    """Return text for a message, quoted only if it is long or not printable."""
    return text if text.isprintable() and len(text) <= 60 else quoted(text)


def as_json(value: Any) -> str:
    """Return values as JSON with sorted keys; `ValueError` if they are not UTF-8."""
    # The help of `fetch` should not wait for it.
    import msgspec

    return msgspec.json.encode(value, order="sorted").decode()
