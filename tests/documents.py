"""The commands of the documents, and the output that they show."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MIRROR = "https://cache.example.org"
PUBLIC = re.compile(rf"https://(binaries|packages)\.spack\.io|{re.escape(MIRROR)}")
"""The public build cache, the packages site and a mirror, whose place one server
takes.
"""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Fence(NamedTuple):
    """A fenced block of a document; `place` is the line of its first line:
    `README.md:12`.
    """

    place: str
    language: str
    text: str


class Typed(NamedTuple):
    """One command; `shown` is the output that the document shows for it, or None."""

    place: str
    command: str
    shown: str | None = None


def fences(document: Path) -> Iterator[Fence]:
    """Yield the fenced blocks of a document."""
    text = document.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        yield Fence(f"{document.name}:{line}", match[1], match[2])


def typed(fence: Fence) -> list[Typed]:
    """Return the commands of a block: all lines of `sh`, those after `$` of
    `console`.
    """
    if fence.language == "sh":
        lines = re.sub(r"\\\n\s*", "", fence.text).splitlines()
        return [Typed(fence.place, line) for line in lines if line.strip()]
    if fence.language != "console":
        return []
    parts = re.split(r"^\$ ", fence.text, flags=re.MULTILINE)
    assert parts[0] == "", f"{fence.place}: output before the first command"
    pairs = (part.partition("\n") for part in parts[1:])
    return [Typed(fence.place, command, shown) for command, _, shown in pairs]
