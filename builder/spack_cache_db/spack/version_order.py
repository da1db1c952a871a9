"""A text for each version, so that programs without Spack's rules sort versions.

`version_order("1.9") < version_order("1.10")`, byte by byte, as SQLite, DuckDB, R and
files compare texts.
"""

from __future__ import annotations

from spack_cache_db.spack.versions import Segment, version_key

# Lower than whatever follows at these places, so the shorter of two sequences is first.
_END_OF_LIST = "!"
_END_OF_WORD = " "
_END_OF_REFERENCE = "\x01"

_LETTERS_OF_KINDS = "ABC"
"""A letter for each kind of segment of `versions`: text, number, infinity word."""


def version_order(version: str) -> str:
    """Return a text whose order is Spack's order of versions (see `version_key`).

    The text has the parts of the key, one after the other: segments, prerelease, git or
    not, git reference, and the version itself.
    """
    segments, prerelease, is_git, reference, text = version_key(version)
    parts = [_segment(segment) for segment in segments]
    parts.append(_END_OF_LIST)
    parts += [_number(number) for number in prerelease]
    parts.append(_END_OF_LIST)
    parts += [str(is_git), reference, _END_OF_REFERENCE, text]
    return "".join(parts)


def _segment(segment: Segment) -> str:
    kind, value = segment
    letter = _LETTERS_OF_KINDS[kind]
    if isinstance(value, int):
        return letter + _number(value)
    return letter + value + _END_OF_WORD


def _number(number: int) -> str:
    """Return a number as its length and its digits: the longer of two is larger."""
    # Python refuses to write long numbers in decimal digits.
    digits = f"{number:x}"
    return f"{len(digits):06d}{digits}"
