"""Checks the texts in sources against limits, and quotes them in messages.

Search words and lists grow faster than the texts that they are made of. The limits are far above
all known sources.
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
"""Characters of a version, compiler, os, platform, target, stack or name of a variant."""

MAX_TEXT = 4096
"""Characters of a variant, a size or the URL of a tarball."""

MAX_INDEX = 4 * 2**30
"""Bytes of an uncompressed index; the largest known index has 200 MB."""

MAX_TEXTS = 1000
"""Texts in one list of a spec or of `meta`."""

CHUNK = 2**20


def require_text(data: bytes) -> None:
    """Raise `LineFault` unless bytes are UTF-8 text without NUL, which decoders accept."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise LineFault(data.count(b"\n", 0, nul) + 1, "a NUL byte, expected UTF-8 text")
    if data.isascii():
        return
    at = 0
    decoder = getincrementaldecoder("utf-8")()
    try:
        # In parts: decoded text may need four times the memory.
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
    """Raise `ValueError` if a text is not a name or is too long; `word` is its kind."""
    require_short(word, text, MAX_NAME)
    if not is_name(text):
        expected = "expected a name without a blank at either end, that does not begin with = + - @"
        raise ValueError(f"has the {word} {_cut(text)!a}, {expected}")


def require_short(word: str, text: str, limit: int) -> None:
    """Raise `ValueError` if a text is too long or not printable; `word` is its kind.

    Control and format characters change the display of the text around them: U+202E reverses it.
    """
    if not text.isprintable():
        wrong = next(char for char in text if not char.isprintable())
        raise ValueError(f"has a {word} with the character {wrong!a}, expected printable text")
    if len(text) > limit:
        raise ValueError(f"has a {word} of {len(text):,} characters, expected at most {limit:,}")


def require_no_formula(word: str, text: str) -> None:
    """Raise `ValueError` if a spreadsheet would run a cell with this text."""
    if text.startswith(FORMULA):
        raise ValueError(
            f"has the {word} {_cut(text)!a}, expected a text without = + - @ at its start"
        )


def require_few(word: str, count: int) -> None:
    """Raise `ValueError` if there are more than `MAX_TEXTS` texts; `word` is their kind."""
    if count > MAX_TEXTS:
        raise ValueError(f"has {count:,} {word}, expected at most {MAX_TEXTS:,}")


BROKEN = (msgspec.DecodeError, RecursionError, ValueError)
"""Raised by decoding data that is not JSON of the expected form."""

LONGEST = 200
"""Characters of a quotation in a message."""


def message_of(error: BaseException) -> str:
    """Return the message of a decoder as one short line: it may quote keys of any length."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return short(" ".join(str(error).split()))


def short(text: str) -> str:
    """Return text for a message, cut in the middle if it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"


def quoted(text: str) -> str:
    """Return text for a message: in quotes, printable and short."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def printable_name(text: str) -> str:
    """Return text for a message, quoted only if it is long or not printable."""
    return text if text.isprintable() and len(text) <= 60 else quoted(text)


def as_json(value: Any) -> str:
    """Return values as JSON with sorted keys; `ValueError` if they are not UTF-8."""
    return msgspec.json.encode(value, order="sorted").decode()
