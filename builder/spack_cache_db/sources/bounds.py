"""Files of the input, and the checks of their texts that all readers share.

Search words and lists grow faster than the texts that they are made of, so texts have
limits, which are far above all known sources.
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
"""Texts in one list of a spec or of `meta`."""


def require_text(data: bytes) -> None:
    """Raise `LineFault` unless bytes are UTF-8 text without NUL, which decoders
    accept.
    """
    position = data.find(b"\0")
    if position >= 0:
        raise _text_fault(data, position, "a NUL byte")
    # Nearly all files are ASCII, which is tested faster than decoded.
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
    """Raise `ValueError` if a text of a configuration is too long, or it has too many
    variants.
    """
    package = configuration.package
    if not is_package(package):
        raise ValueError(
            f"has the package {cut_name(package)!a}, expected a name that Spack can read"
        )
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
            raise ValueError(
                f"has the variant {cut_name(text)!a}, expected +name, ~name or name=value"
            )


_ENABLED = re.compile(r"\+{1,2}\w[\w.-]*")


@lru_cache(maxsize=2**16)
def require_name(word: str, text: str) -> None:
    """Raise `ValueError` if a text is not a name or is too long; `word` is its kind."""
    require_short(word, text, MAX_NAME)
    if not is_name(text):
        expected = "expected a name without a blank at either end, that does not begin with = + - @"
        raise ValueError(f"has the {word} {cut_name(text)!a}, {expected}")


def require_short(word: str, text: str, limit: int) -> None:
    """Raise `ValueError` if a text is too long or not printable; `word` is its kind.

    Control and format characters change the display of the text around them: U+202E
    reverses it.
    """
    if not text.isprintable():
        wrong = next(char for char in text if not char.isprintable())
        raise ValueError(
            f"has a {word} with the character {wrong!a}, expected printable text"
        )
    if len(text) > limit:
        raise ValueError(
            f"has a {word} of {len(text):,} characters, expected at most {limit:,}"
        )


def require_cell(word: str, text: str) -> None:
    """Raise `ValueError` if a text is too long, or a formula to spreadsheets."""
    require_short(word, text, MAX_TEXT)
    if text.startswith(FORMULA):
        expected = "expected a text without = + - @ at its start"
        raise ValueError(f"has the {word} {cut_name(text)!a}, {expected}")


def require_few(word: str, count: int) -> None:
    """Raise `ValueError` if there are more than `MAX_TEXTS` texts; `word` is their
    kind.
    """
    if count > MAX_TEXTS:
        raise ValueError(f"has {count:,} {word}, expected at most {MAX_TEXTS:,}")
