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
    # Text before the first heading is a file of its own.
    files = {}
    before = text[: headings[0].start()]
    if before.strip():
        files[name] = before
    # Each file ends where the next heading begins.
    folder = posixpath.dirname(name)
    ends = [heading.start() for heading in headings[1:]]
    ends.append(len(text))
    for heading, end in zip(headings, ends, strict=True):
        file_name = heading["yaml"] or heading["tail"]
        path = posixpath.normpath(posixpath.join(folder, file_name))
        files[path] = text[heading.end() : end]
    # The first file with a key such as `spack:` is the environment, or else the first
    # file.
    for path, content in files.items():
        if _ENVIRONMENT.search(content):
            return {path: content, **files}
    return files


def file_or_folder(
    files: Mapping[str, str], path: str
) -> bytes | dict[str, bytes] | None:
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
    same_name = [other for other in files if posixpath.basename(other) == name]
    environment, *_ = files
    folder = posixpath.dirname(environment)
    beside = [other for other in same_name if posixpath.dirname(other) == folder]
    candidates = beside or same_name
    if len(candidates) != 1:
        return None
    return files[candidates[0]].encode()
