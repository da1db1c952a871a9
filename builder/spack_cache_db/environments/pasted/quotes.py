"""Removes terminal sequences, prompts, bullets and quotes from a text."""

from __future__ import annotations

import re
from typing import NamedTuple

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Sequences for a terminal (ECMA-48): colours (`ESC [ 0 ; 92 m`) and the like, and
titles of windows (`ESC ] … BEL`).
"""
_TYPOGRAPHY = str.maketrans(
    {
        # Blanks that do not break a line, and narrow ones.
        "\u00a0": " ",
        "\u202f": " ",
        "\u2009": " ",
        # Hyphens of word processors.
        "\u2010": "-",
        "\u2011": "-",
        # Marks without a width.
        "\u200b": None,
        "\ufeff": None,
    }
)
"""Characters of web pages and word processors, and what a person typed for them."""
_DASH = re.compile(r"(?<=\s)[\u2013\u2212](?=[A-Za-z])")
"""A dash or a minus sign before a variant that is off: a program made it of a `-`."""
_CLOSING = {"'": "'", '"': '"', "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
"""The closing quote of each opening one; the escapes are single quotes in a text."""
_SPAN = re.compile(r"`([^`]+)`|“([^“”]+)”|\u2018([^\u2018\u2019]+)\u2019|«([^«»]+)»")
"""A quoted part of a sentence, in which `'` and `"` may be apostrophes or inches."""
_ITEM = re.compile(r"[-*•]\s+(?=[\w'\"`])")
"""A bullet of a YAML or Markdown list."""
_PROMPT = re.compile(r"(?:\S.*?[\])])?[$>]\s+")
"""A prompt such as `$ ` or `[me@login ~]$ `."""


def plain(text: str) -> str:
    """Return a text without terminal sequences, with blanks for tabs, and with the
    characters of a keyboard for those of a word processor.
    """
    text = _ESCAPE.sub("", text).translate(_TYPOGRAPHY).expandtabs()
    return _DASH.sub("-", text)


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, however many pairs there are."""
    while len(text) > 1:
        opening = text[0]
        is_quoted = text[-1] == _CLOSING.get(opening)
        inner = text[1:-1]
        # `'a' 'b'` are two quoted texts.
        if not is_quoted or opening in inner:
            break
        text = inner.strip()
    return text


def without_prompt(text: str) -> str:
    """Return a text without a prompt or bullet at its beginning, and without quotes."""
    mark = _PROMPT.match(text) or _ITEM.match(text)
    if mark is not None:
        text = text[mark.end() :]
    return unquoted(text)


def has_prompt(text: str) -> bool:
    """Return whether a line begins with the prompt of a shell."""
    return _PROMPT.match(text) is not None


class QuotedPart(NamedTuple):
    """A quoted part of a sentence, without its quotes, and the text before it."""

    text: str
    before: str


def quoted_part(text: str) -> QuotedPart | None:
    """Return the first quoted part of a sentence; None if it has none.

    In ``Try `hdf5+mpi` first``, this is `hdf5+mpi`, with `Try ` before it.
    """
    span = _SPAN.search(text)
    if span is None:
        return None
    # Each kind of quotes has a group in the expression; only one group has matched.
    part = span[span.lastindex or 0]
    return QuotedPart(part.strip(), text[: span.start()])
