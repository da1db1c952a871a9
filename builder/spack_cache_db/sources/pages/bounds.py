"""How much a page may say: bounds far above all that is known, so that no page can fill a disk.

Search words and lists grow faster than the text they are made of, so what is odd is refused here,
by name. Checked once for each spelling, for a site repeats the same few.
"""

from __future__ import annotations

from msgspec import UNSET

from spack_cache_db.sources.bounds import (
    MAX_NAME,
    MAX_TEXT,
    MAX_TEXTS,
    require_few,
    require_short,
)
from spack_cache_db.sources.pages.front_matter import Json, PageFault
from spack_cache_db.sources.pages.records import OF_A_LISTING, Meta, SpecDetail
from spack_cache_db.sources.pages.shapes import TEXT, Shape

_KINDS = Shape(SpecDetail).kinds
_NAMES = [name for name in _KINDS if _KINDS[name] == TEXT and name not in OF_A_LISTING]
"""The fields that are one text each, of which a configuration is made."""

MAX_ITEMS = 500_000
"""Values in the JSON of one key, each pair of an object counted as one. A spec has some thirty."""


def require_countable(source: Json, key: str) -> None:
    """Refuse JSON that would take a hundred times its size as values: `[],[],[],…`.

    Raises:
        PageFault: it has more than `MAX_ITEMS` values.
    """
    text = source.text
    if len(text) > MAX_ITEMS:
        items = text.count(b",") + text.count(b"[") + text.count(b"{")
        if items > MAX_ITEMS:
            said = f"{key} has about {items:,} values, expected at most {MAX_ITEMS:,} in a page"
            raise PageFault(source.line, said)


def require_bounded(detail: SpecDetail) -> None:
    """Raise `ValueError` if a text of a spec is too long, or a list has too many of them."""
    for name in _NAMES:
        text = getattr(detail, name)
        if text is not UNSET:
            require_short(name, text, MAX_NAME)
    for version in detail.versions:
        require_short("version", version, MAX_NAME)
    require_few("variants", len(detail.variants))
    for text in detail.variants:
        require_short("variant", text, MAX_TEXT)
        require_short("variant name", text.partition("=")[0], MAX_NAME)


def require_bounded_stacks(stacks: tuple[str, ...]) -> None:
    """Raise `ValueError` as `require_bounded` does."""
    require_few("stacks", len(stacks))
    for text in stacks:
        require_short("stack", text, MAX_NAME)


def require_short_text(word: str, text: str) -> None:
    """Raise `ValueError` if a text that is no name is too long."""
    require_short(word, text, MAX_TEXT)


def require_bounded_meta(meta: Meta) -> None:
    """Raise `ValueError` as `require_bounded` does; the message begins with what is too long."""
    for name in meta.__struct_fields__:
        value = getattr(meta, name)
        if isinstance(value, int):
            continue
        if len(value) > MAX_TEXTS:
            said = f"meta.{name} has {len(value):,} texts, expected at most {MAX_TEXTS:,}"
            raise ValueError(said)
        longest = max(map(len, value), default=0)
        if longest > MAX_NAME:
            said = f"meta.{name} has a text of {longest:,} characters, expected at most {MAX_NAME}"
            raise ValueError(said)
