"""Removes what a terminal, a shell or a forum puts around a text."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Colours and other terminal sequences (ECMA-48), and window titles."""
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
_SPAN = re.compile(r"`([^`]+)`|“([^“”]+)”|\u2018([^\u2018\u2019]+)\u2019|«([^«»]+)»")
_ITEM = re.compile(r"[-*•]\s+(?=[\w'\"`])")
"""A bullet of a YAML or Markdown list."""
_PROMPT = re.compile(r"(?:\S.*?[\])])?[$>]\s+")


def plain(text: str) -> str:
    """Return a text without terminal sequences, with blanks for tabs."""
    return _ESCAPE.sub("", text).expandtabs()


def unquoted(text: str) -> str:
    """Return a text without the quotes around it."""
    while len(text) > 1 and text[-1] == _QUOTES.get(text[0]) and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def without_prompt(text: str) -> str:
    """Return a text without its prompt, bullet and quotes."""
    mark = _PROMPT.match(text) or _ITEM.match(text)
    return unquoted(text[mark.end() :] if mark else text)


def has_prompt(text: str) -> bool:
    """Return whether a line begins with the prompt of a shell."""
    return _PROMPT.match(text) is not None


def quoted_part(text: str) -> tuple[str, str] | None:
    """Return the first quoted part of a sentence, and the text before it."""
    span = _SPAN.search(text)
    if span is None:
        return None
    part = next(filter(None, span.groups()))
    return part.strip(), text[: span.start()]
