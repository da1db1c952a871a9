"""What a person types into the search box, split into terms.

The one place that reads search text. A term is a word of the full-text index
(`hdf5@1.14`, `+cuda`, `%gcc@13`, `target=zen3`); what the index cannot answer is kept apart, to
be said on the page and not silently dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 400
_MOST_TERMS = 24

_PIECE = re.compile(
    r"""
      (?P<hash>/[a-z0-9]+)
    | (?P<dependency>\^[^\s]*)
    | (?P<compiler>%\s*[\w.-]+(?:@[=\w.:,-]*)?)
    | (?P<key>[A-Za-z_][\w-]*:?==?(?:'[^']*'|"[^"]*"|[^\s]*))
    | (?P<flag>(?:\+\+?|~~?)[A-Za-z_][\w-]*)
    | (?P<version>@[=\w.:,/-]*)
    | (?P<minus>(?<!\S)-[A-Za-z_][\w-]*)
    | (?P<name>[A-Za-z0-9_][\w-]*(?:\.[\w-]+)*)
    """,
    re.VERBOSE,
)
_HASH = re.compile(r"/?([a-z2-7]{7,32})")
_RANGE = re.compile(r"[:,]")


@dataclass(frozen=True, slots=True)
class Terms:
    """A search, taken apart. `words` are words of the full-text index, and all must match."""

    text: str
    name: str | None
    hash: str | None
    words: tuple[str, ...]
    unread: tuple[str, ...]

    def match(self) -> str:
        """Return the FTS5 query: every word quoted, so that none can be an operator."""
        return " ".join('"' + word.replace('"', '""') + '"' for word in self.words)


def parse(text: str) -> Terms:
    """Split search text into terms. Never fails: what makes no sense ends up in `unread`."""
    text = " ".join(text[:LONGEST].split())
    whole = _HASH.fullmatch(text)
    words: list[str] = []
    unread: list[str] = []
    name: str | None = None
    last_hash = whole.group(1) if whole else None
    place = 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None or piece.end() == place:
            if not text[place].isspace():
                unread.append(text[place])
            place += 1
            continue
        place = piece.end()
        kind, value = str(piece.lastgroup), piece.group()
        if kind == "hash":
            last_hash = last_hash or value[1:]
        elif kind == "name" and name is None:
            name = value
            words.append(value)
        elif kind == "version" and words and words[-1] == name and not _RANGE.search(value):
            words[-1] = f"{name}@{value.lstrip('@=')}" if value.strip("@=") else words[-1]
        else:
            _add(kind, value, words, unread)
    return Terms(text, name, last_hash, tuple(words[:_MOST_TERMS]), tuple(unread))


def _add(kind: str, value: str, words: list[str], unread: list[str]) -> None:
    if kind == "dependency" or (kind in ("version", "compiler") and _RANGE.search(value)):
        unread.append(value)
    elif kind == "key":
        words.extend(_key(value))
    elif kind == "flag":
        words.append(value[-len(value.lstrip("+~")) - 1 :])
    elif kind == "minus":
        words.append("~" + value[1:])
    elif kind == "compiler":
        words.append(value.replace(" ", "").replace("@=", "@").rstrip("@"))
    elif value.strip("@="):
        words.append(value.lstrip("@="))


def _key(value: str) -> list[str]:
    key, _, rest = value.partition("=")
    key, rest = key.rstrip(":"), rest.lstrip("=").strip("'\"")
    if key == "arch":
        platform, _, other = rest.partition("-")
        system, _, target = other.rpartition("-")
        parts = (("platform", platform), ("os", system), ("target", target))
        return [f"{name}={part}" for name, part in parts if part not in ("", "None", "*")]
    if key == "operating_system":
        key = "os"
    if rest in ("True", "true"):
        return [f"+{key}"]
    if rest in ("False", "false"):
        return [f"~{key}"]
    return [f"{key}={value}" for value in rest.split(",") if value]
