"""What is wrong with an index, a spec file or a mirror, in words for whoever has to mend it."""

from __future__ import annotations


class IndexFault(Exception):
    """Something that makes a file unreadable; its text says what, and what was expected."""


def said(error: BaseException) -> str:
    """Return what a decoder says, on one line."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return " ".join(str(error).split())


def name(text: str) -> str:
    """Return text of an index as it may stand in a message: printable, and not long."""
    return text if text.isprintable() and len(text) <= 60 else repr(text[:57] + "...")
