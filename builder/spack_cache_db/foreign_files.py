"""Recognizes files that were passed by mistake, such as an HTML page in place of an index."""

from __future__ import annotations

import re

from spack_cache_db.errors import LineFault

_HEAD = 4_096
"""Characters at the beginning of a file that are searched for a tag of HTML."""
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_LFS = "version https://git-lfs.github.com/spec/"
_KEYS = ("-----BEGIN PGP PUBLIC", "-----BEGIN PGP PRIVATE", "-----BEGIN PGP SIGNATURE")
_NODES = re.compile(r"\[\s*\{[^\[\]]*\"arch\"")
_MANIFEST = re.compile(r"^spack\s*:", re.MULTILINE)
_OURS = re.compile(r"^<{7}(?: |$)", re.MULTILINE)
_THEIRS = re.compile(r"^>{7}(?: |$)", re.MULTILINE)


def environment_fault(text: str) -> LineFault | None:
    """Return a fault if a text is an environment, which is not a source of binaries."""
    head = text[:_HEAD].lstrip()
    if _NODES.match(head) or _MANIFEST.search(head):
        kind = "is output of 'spack find --json'" if head[0] == "[" else "is an environment"
        advice = "and does not list binaries: use 'spack-cache-db cover'"
        return LineFault(1, f"{kind}, {advice}")
    return None


def foreign_fault(text: str) -> LineFault | None:
    """Return a fault that names the kind of a file passed by mistake, None for other files."""
    head = text[:_HEAD].lstrip()
    if head.startswith(_LFS):
        return LineFault(1, "is a Git LFS pointer, not the file: fetch it with 'git lfs pull'")
    if head.startswith(_KEYS):
        return LineFault(1, "is a PGP key or signature, not the file that was signed")
    if head.startswith("<") and _HTML.search(head):
        page = "is an HTML page, such as an error or a form to log in"
        return LineFault(1, f"{page}: download the file itself (curl --fail saves no such page)")
    if head.startswith(("<?xml", "<Error>")):
        document = "is an XML document, such as the error of an object store"
        return LineFault(1, f"{document}: download the file itself")
    ours = _OURS.search(text)
    if ours and _THEIRS.search(text, ours.end()):
        line = text.count("\n", 0, ours.start()) + 1
        return LineFault(line, "has an unresolved merge conflict (<<<<<<<): choose one side")
    return None
