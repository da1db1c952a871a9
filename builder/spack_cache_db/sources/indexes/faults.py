"""What is wrong with an index, a spec file or a mirror, in words for whoever has to mend it."""

from __future__ import annotations

LONGEST = 200
"""Characters of what a message repeats."""


class IndexFault(Exception):
    """Something that makes a file unreadable; its text says what, and what was expected."""


def said(error: BaseException) -> str:
    """Return what a decoder says, on one line: it quotes keys, which may be of any length."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return short(" ".join(str(error).split()))


def short(text: str) -> str:
    """Return text as it may stand in a message that is mostly of our own words: not long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"


def name(text: str) -> str:
    """Return text of an index as it may stand in a message: printable, and not long."""
    return text if text.isprintable() and len(text) <= 60 else repr(text[:57] + "...")
