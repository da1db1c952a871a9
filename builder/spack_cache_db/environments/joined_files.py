"""Several files in one text, as `tail`, `head` and YAML documents with a name have them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from spack_cache_db.environments import SCOPE_FILES

# Before each file is the start of a YAML document with a name, or the line that `tail` and
# `head` print.
_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n", re.MULTILINE
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env):?['\"]?\s*:", re.MULTILINE)


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by path, the environment first; empty if it is one file.

    `name` is the path of the text, and of a file before the first heading.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return {}
    before = text[: headings[0].start()]
    files = {name: before} if before.strip() else {}
    stops = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, stop in zip(headings, stops, strict=True):
        path = posixpath.join(posixpath.dirname(name), heading["yaml"] or heading["tail"])
        files[posixpath.normpath(path)] = text[heading.end() : stop]
    first = next((path for path in files if _ENVIRONMENT.search(files[path])), next(iter(files)))
    return {first: files.pop(first), **files}


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or else the only file of that name.

    Files that a visitor drops have names without folders, so that folders are ignored in the end.
    """
    if path in files:
        return files[path].encode()
    inside = {
        posixpath.basename(name): text.encode()
        for name, text in files.items()
        if posixpath.dirname(name) == path and posixpath.basename(name) in SCOPE_FILES
    }
    if inside:
        return inside
    name, home = posixpath.basename(path), posixpath.dirname(next(iter(files)))
    same_names = [other for other in files if posixpath.basename(other) == name]
    beside = [other for other in same_names if posixpath.dirname(other) == home] or same_names
    return files[beside[0]].encode() if len(beside) == 1 else None
