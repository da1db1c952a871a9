"""How much a source may say: bounds far above all that is known, so that no file can fill a disk.

Search words and lists grow faster than the text they are made of, so what is odd is refused, by
name.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from functools import lru_cache

from spack_cache_db.errors import LineFault
from spack_cache_db.records import Configuration
from spack_cache_db.spack.identifiers import is_name, is_package

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
        raise ValueError(f"has the package {_quoted(package)}, expected a name that Spack can read")
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


@lru_cache(maxsize=2**16)
def require_name(word: str, text: str) -> None:
    """Raise `ValueError` if a text is no name or too long a one; `word` says of what."""
    require_short(word, text, MAX_NAME)
    if not is_name(text):
        expected = "expected a name without a blank at either end or - before it"
        raise ValueError(f"has the {word} {_quoted(text)}, {expected}")


def require_short(word: str, text: str, limit: int) -> None:
    """Raise `ValueError` if a text is too long or not printable; `word` says what it is.

    Control and format characters change how the text around them is shown: U+202E reverses it.
    """
    if not text.isprintable():
        wrong = next(each for each in text if not each.isprintable())
        raise ValueError(f"has a {word} with the character {wrong!a}, expected printable text")
    if len(text) > limit:
        raise ValueError(f"has a {word} of {len(text):,} characters, expected at most {limit:,}")


def require_few(word: str, count: int) -> None:
    """Raise `ValueError` if there are too many of something; `word` says of what."""
    if count > MAX_TEXTS:
        raise ValueError(f"has {count:,} {word}, expected at most {MAX_TEXTS:,}")


def _quoted(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")
