"""Splits a text of several files, such as an environment and the files it includes.

`tail` and `head` print a line with the name before each file. In YAML, the line that
begins a document (`---`) may have the name as a comment:

    ==> spack.yaml <==                         --- # spack.yaml
    spack: {include: [packages.yaml]}          spack: {include: [packages.yaml]}
    ==> packages.yaml <==                      --- # packages.yaml
    packages: {all: {require: target=zen3}}    packages: {all: {require: target=zen3}}
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from spack_cache_db.environments.model import SCOPE_FILES

_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n",
    re.MULTILINE,
)
"""The line before a file, in one of the two forms."""
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env):?['\"]?\s*:", re.MULTILINE)
"""A line that only a `spack.yaml` has: `spack:`, `env:` in old files, or `spack::`."""


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by path, the environment first; empty for one file.

    The environment is the first file with a key `spack:`, or else the first file.

    Args:
        text: the text.
        name: its path, and that of a file before the first heading. The files are in
            the same folder: `packages.yaml` in `/e/spack.yaml` is `/e/packages.yaml`.
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

    # Put the environment first.
    for path, content in files.items():
        if _ENVIRONMENT.search(content):
            return {path: content, **files}
    return files


def file_or_folder(
    files: Mapping[str, str], path: str
) -> bytes | dict[str, bytes] | None:
    """Return an included file, or the files of an included folder by name.

    If no path fits, the name of a file is enough, because files that are dropped on the
    website have names without folders. None if no file fits, or more than one.

    Args:
        files: the result of `joined_files`, not empty.
        path: the path of the include, such as `/e/packages.yaml` or `/e/site`.
    """
    if path in files:
        return files[path].encode()

    # A folder of configuration has files of fixed names, such as `packages.yaml`.
    in_folder = {}
    for other, text in files.items():
        folder, name = posixpath.split(other)
        if folder == path and name in SCOPE_FILES:
            in_folder[name] = text.encode()
    if in_folder:
        return in_folder

    # Among files with the same name, the one in the environment's folder comes first.
    name = posixpath.basename(path)
    same_name = [other for other in files if posixpath.basename(other) == name]
    environment = next(iter(files))
    folder = posixpath.dirname(environment)
    beside = [other for other in same_name if posixpath.dirname(other) == folder]
    candidates = beside or same_name
    if len(candidates) != 1:
        return None
    return files[candidates[0]].encode()
