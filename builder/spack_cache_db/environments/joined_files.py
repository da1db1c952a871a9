"""Several files in one text, as `tail`, `head` and YAML documents with a name have
them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from spack_cache_db.environments.model import SCOPE_FILES

# Before each file is the start of a YAML document with a name, or the line that `tail`
# and `head` print.
_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n",
    re.MULTILINE,
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env):?['\"]?\s*:", re.MULTILINE)


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by path, the environment first; empty if it is one
    file.

    `name` is the path of the text, and of a file before the first heading.
    """
    headings = list(_HEADING.finditer(text))
    if not headings:
        return {}
    # Each file ends where the next heading begins.
    files = {}
    before = text[: headings[0].start()]
    if before.strip():
        files[name] = before
    ends = [heading.start() for heading in headings[1:]]
    ends.append(len(text))
    folder = posixpath.dirname(name)
    for heading, end in zip(headings, ends, strict=True):
        path = posixpath.join(folder, heading["yaml"] or heading["tail"])
        files[posixpath.normpath(path)] = text[heading.end() : end]
    # The first file with a key such as `spack:` is the environment, or else the first
    # file.
    for path, content in files.items():
        if _ENVIRONMENT.search(content):
            return {path: content, **files}
    return files


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or else the only file of that
    name.

    Files that a visitor drops have names without folders, so that folders are ignored
    in the end. None if there is no such file, or if several have the name.
    """
    if path in files:
        return files[path].encode()

    # A folder has the files of a scope, such as `packages.yaml`.
    in_folder = {}
    for other, text in files.items():
        folder, name = posixpath.split(other)
        if folder == path and name in SCOPE_FILES:
            in_folder[name] = text.encode()
    if in_folder:
        return in_folder

    # Of files with the same name, those beside the environment come first.
    name = posixpath.basename(path)
    environment = next(iter(files))
    same_name = [other for other in files if posixpath.basename(other) == name]
    beside = [
        other
        for other in same_name
        if posixpath.dirname(other) == posixpath.dirname(environment)
    ]
    candidates = beside or same_name
    return files[candidates[0]].encode() if len(candidates) == 1 else None
