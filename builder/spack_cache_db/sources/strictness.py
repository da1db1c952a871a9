"""Bounds of the texts in sources, and how messages quote them.

Search words and lists grow faster than the text they are made of. Bounds are far above all known
sources; anything beyond them is refused by name.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from spack_cache_db.errors import LineFault
from spack_cache_db.records import FORMULA, Configuration, is_name
from spack_cache_db.spack.lexer import is_package

T = TypeVar("T")

MAX_NAME = 200
"""Characters of a version, a compiler, an os, a platform, a target, a stack or a variant's name."""

MAX_TEXT = 4096
"""Characters of a variant, a size or the address of a tarball."""

MAX_INDEX = 4 * 2**30
"""Bytes of an index when it is not compressed; the largest known has two hundred megabytes."""

MAX_TEXTS = 1000
"""Texts in one list of a spec, or in one of `meta`."""

CHUNK = 2**20


def require_text(data: bytes) -> None:
    """Raise `LineFault` unless bytes are UTF-8 text without NUL: decoders are not that strict."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise LineFault(data.count(b"\n", 0, nul) + 1, "a NUL byte, expected UTF-8 text")
    if data.isascii():
        return
    at = 0
    decoder = getincrementaldecoder("utf-8")()
    try:
        # In parts: as text, all of it may take four times as much.
        for at in range(0, len(data), CHUNK):
            decoder.decode(data[at : at + CHUNK], at + CHUNK >= len(data))
    except UnicodeDecodeError as error:
        wrong = at - len(decoder.getstate()[0]) + error.start
        line = data.count(b"\n", 0, wrong) + 1
        raise LineFault(line, f"not UTF-8: byte 0x{data[wrong]:02x}, expected UTF-8 text") from None


def require_bounded(configuration: Configuration) -> None:
    """Raise `ValueError` if a text of a configuration is too long, or it has too many variants."""
    package = configuration.package
    if not is_package(package):
        raise ValueError(f"has the package {_cut(package)!a}, expected a name that Spack can read")
    for word, value in zip(Configuration._fields, configuration, strict=True):
        if isinstance(value, str) and value:
            require_name(word, value)
    require_bounded_variants(configuration.variants)


@lru_cache(maxsize=4096)
def require_bounded_variants(variants: tuple[str, ...]) -> None:
    """Raise `ValueError` if a variant is too long, or there are too many."""
    require_few("variants", len(variants))
    for text in variants:
        require_short("variant", text, MAX_TEXT)
        require_short("variant name", text.partition("=")[0], MAX_NAME)
        if text.startswith(FORMULA) and not _ENABLED.fullmatch(text):
            raise ValueError(f"has the variant {_cut(text)!a}, expected +name, ~name or name=value")


_ENABLED = re.compile(r"\+{1,2}\w[\w.-]*")


@lru_cache(maxsize=2**16)
def require_name(word: str, text: str) -> None:
    """Raise `ValueError` if a text is not a name or is too long; `word` says of what."""
    require_short(word, text, MAX_NAME)
    if not is_name(text):
        expected = "expected a name without a blank at either end, that does not begin with = + - @"
        raise ValueError(f"has the {word} {_cut(text)!a}, {expected}")


def require_short(word: str, text: str, limit: int) -> None:
    """Raise `ValueError` if a text is too long or not printable; `word` says what it is.

    Control and format characters change how the text around them is shown: U+202E reverses it.
    """
    if not text.isprintable():
        wrong = next(each for each in text if not each.isprintable())
        raise ValueError(f"has a {word} with the character {wrong!a}, expected printable text")
    if len(text) > limit:
        raise ValueError(f"has a {word} of {len(text):,} characters, expected at most {limit:,}")


def require_no_formula(word: str, text: str) -> None:
    """Raise `ValueError` if a spreadsheet would run a cell with this text."""
    if text.startswith(FORMULA):
        raise ValueError(f"has the {word} {_cut(text)!a}, expected one that begins with no = + - @")


def require_few(word: str, count: int) -> None:
    """Raise `ValueError` if there are too many of something; `word` says of what."""
    if count > MAX_TEXTS:
        raise ValueError(f"has {count:,} {word}, expected at most {MAX_TEXTS:,}")


BROKEN = (msgspec.DecodeError, RecursionError, ValueError)
"""Raised by reading what is not JSON, or JSON of another form than expected."""

LONGEST = 200
"""Characters of what a message repeats."""


def said(error: BaseException) -> str:
    """Return what a decoder says, on one line: it quotes keys, which may be of any length."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return short(" ".join(str(error).split()))


def short(text: str) -> str:
    """Return text as it may stand in a message that is mostly of our own words: not long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"


def quoted(text: str) -> str:
    """Return text as it may stand in a message: in quotes, printable, and not long."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def named(text: str) -> str:
    """Return text as it may stand in a message: as it is, unless it is not printable or long."""
    return text if text.isprintable() and len(text) <= 60 else quoted(text)


def as_json(value: Any) -> str:
    """Return values as JSON, the same text for the same values; `ValueError` if it is not text."""
    return msgspec.json.encode(value, order="sorted").decode()
