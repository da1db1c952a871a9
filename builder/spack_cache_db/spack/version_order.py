"""A text for each version, so that programs without Spack's rules can sort versions.

`version_order("1.9") < version_order("1.10")`, although "1.9" > "1.10". The texts are
compared byte by byte, as SQLite, DuckDB, R and files compare texts.
"""

from __future__ import annotations

from spack_cache_db.spack.versions import Segment, version_key

# What ends a part of the text is lower than everything that can follow at its place. So
# if one sequence begins with all of another, the shorter one comes first.
_END_OF_LIST = "!"
_END_OF_WORD = " "
_END_OF_REFERENCE = "\x01"

_LETTERS_OF_KINDS = "ABC"
"""A letter for each kind of segment, in Spack's order.

The kinds of `versions` are 0 for a text, 1 for a number, and 2 for a word such as
`develop`, which is above all numbers.
"""


def version_order(version: str) -> str:
    """Return a text whose order is Spack's order of versions.

    The text has the parts of `version_key`, one after the other: the segments, the
    prerelease, whether it is a git version, the git reference, and the version itself.
    """
    segments, prerelease, is_git, reference, text = version_key(version)
    parts = [_segment_text(segment) for segment in segments]
    parts.append(_END_OF_LIST)
    parts += [_number_text(number) for number in prerelease]
    parts.append(_END_OF_LIST)
    parts.append(str(is_git))
    parts.append(reference)
    parts.append(_END_OF_REFERENCE)
    parts.append(text)
    return "".join(parts)


def _segment_text(segment: Segment) -> str:
    """Return `A` and a word, `B` and a number, or `C` and the rank of a word."""
    kind, value = segment
    letter = _LETTERS_OF_KINDS[kind]
    if isinstance(value, int):
        return letter + _number_text(value)
    return letter + value + _END_OF_WORD


def _number_text(number: int) -> str:
    """Return the length of a number and its digits: of two numbers, the longer one is
    larger.
    """
    # Hexadecimal, because Python refuses to write very long numbers in decimal digits.
    digits = f"{number:x}"
    return f"{len(digits):06d}{digits}"
