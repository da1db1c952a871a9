"""Checks of the texts in sources, which all readers share: length, number, characters.

A text of a source becomes a row of the database, a word of its search, a part of a URL
and a cell of a table. Nothing that a stranger has written may fill a disk on the way,
or do something in a spreadsheet. The limits are far above all known sources.
"""

from __future__ import annotations

import re
from functools import lru_cache

from spack_cache_db.errors import LineFault
from spack_cache_db.model import FORMULA, Configuration, is_name
from spack_cache_db.sources.texts import cut_name
from spack_cache_db.spack.lexer import is_package

MAX_NAME = 200
"""Characters of a version, compiler, os, platform, target, stack or name of a
variant.
"""

MAX_TEXT = 4096
"""Characters of a variant, a size or the URL of a tarball."""

MAX_INDEX = 4 * 2**30
"""Bytes of an uncompressed index; the largest known index has 200 MB."""

MAX_TEXTS = 1000
"""Texts in one list of a spec, or in one list of a page's `meta`, its summary."""

_ENABLED_VARIANT = re.compile(r"\+{1,2}\w[\w.-]*")
"""`+cuda` or `++cuda`: begins like a formula, but cannot call anything."""


def require_text(data: bytes) -> None:
    """Raise `LineFault`, with the line, unless bytes are UTF-8 text without NUL."""
    position = data.find(b"\0")
    if position >= 0:
        raise _text_fault(data, position, "a NUL byte")
    # Nearly all files are ASCII, for which a test is faster than decoding.
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{data[error.start]:02x}"
        raise _text_fault(data, error.start, message) from None


def _text_fault(data: bytes, position: int, message: str) -> LineFault:
    line = data.count(b"\n", 0, position) + 1
    return LineFault(line, f"{message}, expected UTF-8 text")


def require_bounded(configuration: Configuration) -> None:
    """Raise `ValueError` if a text of a configuration cannot be stored, or is too long.

    An empty text, for a value that a source does not give, is allowed.
    """
    package = configuration.package
    if not is_package(package):
        raise ValueError(
            f"has the package {cut_name(package)!a}, expected a name that Spack can read"
        )
    for field, value in zip(Configuration._fields, configuration, strict=True):
        # The variants are a tuple.
        if isinstance(value, str) and value:
            require_name(field, value)
    require_bounded_variants(configuration.variants)


@lru_cache(maxsize=4096)
def require_bounded_variants(variants: tuple[str, ...]) -> None:
    """Raise `ValueError` if a variant is too long, or there are too many."""
    require_few("variants", len(variants))
    for text in variants:
        require_short("variant", text, MAX_TEXT)
        name = text.partition("=")[0]
        require_short("variant name", name, MAX_NAME)
        if text.startswith(FORMULA) and not _ENABLED_VARIANT.fullmatch(text):
            raise ValueError(
                f"has the variant {cut_name(text)!a}, expected +name, ~name or name=value"
            )


@lru_cache(maxsize=2**16)
def require_name(kind: str, text: str) -> None:
    """Raise `ValueError` if a text is not a name (see `is_name`), or is too long.

    Args:
        kind: what the text is, for the message, such as "version".
        text: the text.
    """
    require_short(kind, text, MAX_NAME)
    if not is_name(text):
        expected = (
            "expected a name without a blank at either end, "
            "that does not begin with = + - @"
        )
        raise ValueError(f"has the {kind} {cut_name(text)!a}, {expected}")


def require_short(kind: str, text: str, limit: int) -> None:
    """Raise `ValueError` if a text is too long or not printable.

    Control and format characters change the display of the text around them: U+202E
    reverses it.
    """
    if not text.isprintable():
        wrong = next(char for char in text if not char.isprintable())
        raise ValueError(
            f"has a {kind} with the character {wrong!a}, expected printable text"
        )
    if len(text) > limit:
        raise ValueError(
            f"has a {kind} of {len(text):,} characters, expected at most {limit:,}"
        )


def require_cell(kind: str, text: str) -> None:
    """Raise `ValueError` if a text is too long, or a formula in a cell of a
    spreadsheet.
    """
    require_short(kind, text, MAX_TEXT)
    if text.startswith(FORMULA):
        expected = "expected a text without = + - @ at its start"
        raise ValueError(f"has the {kind} {cut_name(text)!a}, {expected}")


def require_few(kind: str, count: int) -> None:
    """Raise `ValueError` if a list has more than `MAX_TEXTS` texts of a kind."""
    if count > MAX_TEXTS:
        raise ValueError(f"has {count:,} {kind}, expected at most {MAX_TEXTS:,}")
