"""Several files in one text, each behind a line with its name: an environment and its includes.

The line is that of a YAML document with a name (`--- # packages.yaml`), or the one that `tail` and
`head` print before each file (`==> packages.yaml <==`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from spack_cache_db.environments.environment import SCOPE_FILES

_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n", re.MULTILINE
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env)['\"]?\s*:", re.MULTILINE)


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by their names, the environment first; none if it is one file.

    Args:
        text: the text.
        name: the path of the text; that of a file before the first line with a name.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return {}
    found = {name: text[: headings[0].start()]} if text[: headings[0].start()].strip() else {}
    ends = [each.start() for each in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        path = posixpath.join(posixpath.dirname(name), heading["yaml"] or heading["tail"])
        found[posixpath.normpath(path)] = text[heading.end() : end]
    first = next((each for each in found if _ENVIRONMENT.search(found[each])), next(iter(found)))
    return {first: found.pop(first), **found}


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or the file of that name.

    Who drops files gives their names alone: these stand for a file in any folder.

    Args:
        files: the text of each file by its path, the environment first.
        path: the path that an environment asks for.
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
    named = [each for each in files if posixpath.basename(each) == name]
    beside = [each for each in named if posixpath.dirname(each) == home] or named
    return files[beside[0]].encode() if len(beside) == 1 else None
