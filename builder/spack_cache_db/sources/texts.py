"""Short texts for messages and tables.

Names, keys and errors come from files of strangers, so a message never contains them
whole: they may be a megabyte, or have control characters.
"""

from __future__ import annotations

from typing import Any

from spack_cache_db.errors import cut, one_line

BROKEN = (RecursionError, ValueError)
"""Raised by decoding data that is not JSON of the expected form."""

_MAX_MESSAGE = 200
"""Characters of a decoder's message; of a longer one, the middle is left out."""

_MAX_NAME = 60
"""Characters of a name of a source in a message."""


def message_of(error: BaseException) -> str:
    """Return the message of a decoder as one short line.

    Its start says what is wrong, and its end where; the keys between may be of any
    length.
    """
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = one_line(str(error))
    if len(text) <= _MAX_MESSAGE:
        return text
    half = _MAX_MESSAGE // 2
    return f"{text[:half]}...{text[-half:]}"


def quoted(text: str) -> str:
    """Return text for a message: in quotes, printable and short."""
    return repr(cut_name(text))


def cut_name(text: str) -> str:
    """Return a name of a source, cut if it is too long for a message."""
    return cut(text, _MAX_NAME, "...")


def printable_name(text: str) -> str:
    """Return text for a message, quoted only if it is long or not printable."""
    if text.isprintable() and len(text) <= _MAX_NAME:
        return text
    return quoted(text)


def as_json(value: Any) -> str:
    """Return values as JSON with sorted keys, so that equal values have equal texts.

    Raises:
        ValueError: a text has half of a surrogate pair, which UTF-8 cannot encode.
    """
    # Imported late: the help of `fetch` should not wait for it.
    import msgspec

    data = msgspec.json.encode(value, order="sorted")
    return data.decode()
