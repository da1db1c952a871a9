"""Removes terminal sequences, prompts, bullets and quotes from a text."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Colours and other terminal sequences (ECMA-48), and window titles."""
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
# Without `'` and `"`, which may be apostrophes or inches in a sentence.
_SPAN = re.compile(r"`([^`]+)`|“([^“”]+)”|\u2018([^\u2018\u2019]+)\u2019|«([^«»]+)»")
_ITEM = re.compile(r"[-*•]\s+(?=[\w'\"`])")
"""A bullet of a YAML or Markdown list."""
_PROMPT = re.compile(r"(?:\S.*?[\])])?[$>]\s+")


def plain(text: str) -> str:
    """Return a text without terminal sequences, with blanks for tabs."""
    return _ESCAPE.sub("", text).expandtabs()


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, however many pairs there are."""
    while len(text) > 1:
        inner = text[1:-1]
        is_quoted = text[-1] == _QUOTES.get(text[0])
        # `'a' 'b'` are two quoted texts.
        if not is_quoted or text[0] in inner:
            break
        text = inner.strip()
    return text


def without_prompt(text: str) -> str:
    """Return a text without its prompt, bullet and quotes."""
    mark = _PROMPT.match(text) or _ITEM.match(text)
    if mark is not None:
        text = text[mark.end() :]
    return unquoted(text)


def has_prompt(text: str) -> bool:
    """Return whether a line begins with the prompt of a shell."""
    return _PROMPT.match(text) is not None


def quoted_part(text: str) -> tuple[str, str] | None:
    """Return the first quoted part of a sentence, and the text before it."""
    span = _SPAN.search(text)
    if span is None:
        return None
    # Each kind of quotes is a group of its own, and one of them matched.
    part = next(group for group in span.groups() if group is not None)
    return part.strip(), text[: span.start()]
