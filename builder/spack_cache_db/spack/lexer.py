"""Splits Spack's spec syntax into words: one pass over the text, no nesting, linear
time.

`parser` reads the words. Their patterns are those of Spack 1.2's `spec_parser.py`.
"""

import re
from dataclasses import dataclass

from spack_cache_db.errors import BuilderError

MAX_LENGTH = 4096

WORD = r"[a-zA-Z0-9_][a-zA-Z0-9_\-]*"
"""A name without dots: `IDENTIFIER` of `spec_parser.py`."""

_PACKAGE = rf"{WORD}(?:\.{WORD})*"
"""A package's name with its namespace: `DOTTED_IDENTIFIER` of `spec_parser.py`."""

_KEY = r"[a-zA-Z0-9_][a-zA-Z0-9_.\-]*"
_VERSION = r"=?[a-zA-Z0-9_][a-zA-Z0-9_.\-]*\b"
# `@1.2: os=linux`: a word before `=` is the next option, not the end of the range.
_RANGE = rf"(?:{_VERSION})?:(?:{_VERSION}(?!\s*=))?"
_VERSIONS = rf"(?:{_RANGE}|{_VERSION})(?:\s*,\s*(?:{_RANGE}|{_VERSION}))*"
_GIT = r"(?:git\.[a-zA-Z0-9_][a-zA-Z0-9_./\-]*|[a-fA-F0-9]{40}(?![a-zA-Z0-9_.\-]))"
_BARE = r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+"
_QUOTED = r"""'(?:[^']|(?<=\\)')*'|"(?:[^"]|(?<=\\)")*\""""
_VIRTUALS = rf"(?:\s*{WORD}(?:,{WORD})*=(?={WORD}))?"

# The first match wins: the order is part of the grammar.
_TOKENS = (
    ("edge_start", r"(?:\^|%%|%)\["),
    ("edge_end", rf"\]{_VIRTUALS}"),
    ("dependency", rf"(?:\^|%%|%){_VIRTUALS}"),
    ("version", rf"@\s*(?:{_GIT}(?:=(?:{_VERSION}))?|{_VERSIONS})"),
    ("flag", rf"(?:\+\+|~~|--|[+~\-])\s*{_KEY}"),
    ("pair", rf"{_KEY}:?==?(?:{_BARE}|{_QUOTED})"),
    ("file", r"(?:\.|/|[a-zA-Z0-9_\-]*/)[a-zA-Z0-9_./\-]*(?:\.json|\.yaml)"),
    ("name", rf"{_PACKAGE}|\*"),
    ("hash", r"/[a-zA-Z0-9_]+"),
    ("blank", r"\s+"),
)
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS), re.ASCII
)
_PACKAGE_NAME = re.compile(_PACKAGE, re.ASCII)
_KEY_BEFORE = re.compile(rf"{_KEY}$", re.ASCII)
_EQUALS = re.compile(r":?=+")

A_CONSTRAINT = (
    "a version (@1.2), a variant (+name, name=value), a hash (/abc) or a dependency (%)"
)
_HASH = re.compile(r"[a-z2-7]{32}")


def is_package(text: str) -> bool:
    """Return whether Spack can read a text as the name of a package."""
    return _PACKAGE_NAME.fullmatch(text) is not None


def is_hash(text: str) -> bool:
    """Return whether a text is a whole hash of a spec: 20 bytes in base32 (Spack
    `hash.py`).
    """
    return _HASH.fullmatch(text) is not None


class QuerySyntaxError(BuilderError, ValueError):
    """A text that is not one spec.

    Attributes:
        text: the whole query.
        column: the column of the fault, counted from 0.
        expected: the words that would be valid there.
        found: the fault, if it has a name.
    """

    def __init__(self, text: str, column: int, expected: str, found: str = "") -> None:
        self.text = text
        self.column = column
        self.expected = expected
        self.found = found
        # Blanks and control characters print as one blank each, to keep the caret in
        # place.
        printable = "".join(c if c.isprintable() else " " for c in text)
        start = max(0, column - 60)
        line = printable[start : column + 40]
        caret = " " * (column - start) + "^"
        problem = f"{found}: expected" if found else "expected"
        where = f"cannot read this spec at column {column + 1}\n  {line}\n  {caret}"
        super().__init__(f"{where}\n{problem} {expected}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a query: its kind, its text and the column where it starts."""

    kind: str
    text: str
    column: int


def _unexpected(text: str, column: int) -> QuerySyntaxError:
    """Return the error for a column at which no word of the syntax begins."""
    char = text[column]
    before = _KEY_BEFORE.search(text[max(0, column - 200) : column])
    equals = _EQUALS.match(text, column)
    if equals is not None and before is not None:
        value = equals.end()
        if text[value : value + 1] in ("'", '"'):
            return QuerySyntaxError(
                text, value, f"a closing {text[value]}", "open quote"
            )
        return QuerySyntaxError(
            text, value, f"a value for {before.group()!r} right after the '='"
        )
    advice = {
        "@": "a version after '@', such as @1.2, @=1.2 or @1.2:1.4",
        "+": "the name of a variant after '+'",
        "~": "the name of a variant after '~'",
        "-": "the name of a variant after '-'",
        "/": "the letters and digits of a hash after '/'",
        ",": "no blank or empty part around ',' (lists are written a,b)",
    }
    return QuerySyntaxError(
        text, column, advice.get(char, A_CONSTRAINT), f"unexpected {char!r}"
    )


def tokens(text: str) -> tuple[Token, ...]:
    """Split a query into words without blanks; raises `QuerySyntaxError`."""
    if len(text) > MAX_LENGTH:
        expected = f"at most {MAX_LENGTH} characters"
        raise QuerySyntaxError(text, MAX_LENGTH, expected, f"{len(text)} characters")
    words: list[Token] = []
    column = 0
    while column < len(text):
        match = _TOKEN.match(text, column)
        if match is None:
            raise _unexpected(text, column)
        kind = str(match.lastgroup)
        if kind == "file":
            expected = "a spec, not the name of a file"
            raise QuerySyntaxError(text, column, expected, match.group())
        if kind != "blank":
            words.append(Token(kind, match.group(), column))
        column = match.end()
    return tuple(words)
