"""Names files that were passed by mistake, such as an HTML page instead of an index."""

from __future__ import annotations

import re

from spack_cache_db.errors import LineFault

_LONGEST_HEAD = 4096
"""Characters at the beginning of a file in which its kind is sought."""

_FOREIGN = {
    r"version https://git-lfs\.github\.com/spec/": (
        "is a Git LFS pointer, not the file: fetch it with 'git lfs pull'"
    ),
    r"-----BEGIN PGP (?:PUBLIC|PRIVATE|SIGNATURE)": (
        "is a PGP key or signature, not the file that was signed"
    ),
    # A tag of HTML anywhere, because comments may come before it.
    r"(?is)(?=<).*?<(?:!doctype\s+html|html|head|body)\b": (
        "is an HTML page, such as an error or a form to log in: download the file itself "
        "(curl --fail saves no such page)"
    ),
    r"BZh[1-9]1AY&SY|\ufffd7zXZ\0|7z\ufffd\ufffd'": (
        "is compressed by a program that is not read here: unpack it, or use gzip or zstd"
    ),
    r"SQLite format 3\0": (
        "is an SQLite database that spack-cache-db did not make, expected one of build"
    ),
    r"\ufeff\s*\{": (
        "begins with a byte order mark, expected UTF-8 without one: save it again"
    ),
    r"<\?xml|<Error>": (
        "is an XML document, such as the error of an object store: download the file itself"
    ),
}
"""Patterns of how a file begins, and messages about such files."""

_CONFLICT_BEGINS = re.compile(r"^<{7}(?: |$)", re.MULTILINE)
_CONFLICT_ENDS = re.compile(r"^>{7}(?: |$)", re.MULTILINE)
"""The lines that Git writes around the two sides of a merge conflict."""


def foreign_fault(text: str) -> LineFault | None:
    """Return a fault that names the kind of a file; None if it is none of these kinds.

    Args:
        text: the content of the file, with U+FFFD for bytes that are not UTF-8.
    """
    head = text[:_LONGEST_HEAD].lstrip()
    for pattern, message in _FOREIGN.items():
        if re.match(pattern, head):
            return LineFault(1, message)

    # Two searches: one expression would look for an end after each beginning, which
    # takes quadratic time for a file with many beginnings and no end.
    begin = _CONFLICT_BEGINS.search(text)
    if begin is None:
        return None
    end = _CONFLICT_ENDS.search(text, begin.end())
    if end is None:
        return None
    line = text.count("\n", 0, begin.start()) + 1
    return LineFault(
        line, "has an unresolved merge conflict (<<<<<<<): choose one side"
    )
