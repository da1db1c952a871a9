"""Names files that were passed by mistake, such as an HTML page instead of an index."""

from __future__ import annotations

import re

from spack_cache_db.errors import LineFault

_FOREIGN = {
    r"version https://git-lfs\.github\.com/spec/": (
        "is a Git LFS pointer, not the file: fetch it with 'git lfs pull'"
    ),
    r"-----BEGIN PGP (?:PUBLIC|PRIVATE|SIGNATURE)": (
        "is a PGP key or signature, not the file that was signed"
    ),
    r"(?is)(?=<).*?<(?:!doctype\s+html|html|head|body)\b": (
        "is an HTML page, such as an error or a form to log in: download the file itself "
        "(curl --fail saves no such page)"
    ),
    r"<\?xml|<Error>": (
        "is an XML document, such as the error of an object store: download the file itself"
    ),
}
"""The beginnings of files that were passed by mistake, and messages about them."""


def foreign_fault(text: str) -> LineFault | None:
    """Return a fault that names the kind of a file passed by mistake, None for other
    files.
    """
    head = text[:4096].lstrip()
    for pattern, message in _FOREIGN.items():
        if re.match(pattern, head):
            return LineFault(1, message)
    # Not one expression, which takes quadratic time for many beginnings without an end.
    begin = re.search(r"^<{7}(?: |$)", text, re.MULTILINE)
    if not begin or not re.compile(r"^>{7}(?: |$)", re.MULTILINE).search(
        text, begin.end()
    ):
        return None
    line = text.count("\n", 0, begin.start()) + 1
    return LineFault(
        line, "has an unresolved merge conflict (<<<<<<<): choose one side"
    )
