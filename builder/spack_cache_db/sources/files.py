"""Files of the input, and where they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from spack_cache_db.errors import Fault
from spack_cache_db.model import INSTALLED, ROOT


class Place(NamedTuple):
    """A release and a stack; None if the folders give the name."""

    release: str | None = None
    stack: str | None = None

    def of(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return release and stack of a mirror's index, from the first two folders of
        its path.
        """
        folders = path.split("/")[:-1]
        release_folder = folders[0] if folders else ""
        stack_folder = folders[1] if len(folders) > 1 else ""
        release = self.release or release_folder or ROOT
        stack = self.stack or view or stack_folder or ROOT
        return release, stack

    def of_tree(self, index: File) -> tuple[str, str]:
        """Return release and stack of an installation from the path of its index.

        The release is the first folder, or else the input, whose name is not in
        `_USUAL_NAMES`, and does not only make a path longer.
        """
        stack = self.stack or ROOT
        if self.release:
            return self.release, stack
        folders = index.path.split("/")[:-1]
        # The folder of a copied index is not that of an installation.
        if _TREE in index.location:
            top = Path(os.path.abspath(index.location.removesuffix(index.path)))  # noqa: PTH100
            if top.name == _TREE:
                top = top.parent
            folders.append(top.name)
        for name in folders:
            if name not in _USUAL_NAMES and not _PADDING.startswith(name):
                return name, stack
        return INSTALLED, stack


ANYWHERE = Place()

_TREE = ".spack-db"
"""The folder with the index of an installation."""

_USUAL_NAMES = {
    _TREE,
    "",
    "apps",
    "install",
    "installed",
    "opt",
    "software",
    "spack",
    "sw",
}
"""Names of folders that many installations have."""

_PADDING = "__spack_path_placeholder__"
"""The name of folders that make an install path longer; the last one is cut.

Source: Spack 1.2 `util/path.py`, `SPACK_PATH_PADDING_CHARS`;
`config:install_tree:padded_length`.
"""

ADDRESS_FILE = "mirror.json"
"""The file with the address of a mirror, beside an index that was fetched from it."""

SIZES_FILE = "sizes.json"
"""The file with the size of each binary by its hash, in the same folder."""


class File(NamedTuple):
    """A file on disk, or the folder of a mirror.

    `location` is the path as the user would type it, for messages; `path` is the path
    within the input, which goes into the database. `database` and `modules` are files
    that were named as such; `release` was given for an installation or its modules.
    """

    location: str
    path: str
    kind: Literal["file", "mirror", "database", "modules"] = "file"
    release: str | None = None


class RawFile(NamedTuple):
    """The bytes of one file and their origin (see `File`)."""

    location: str
    path: str
    data: bytes
    release: str | None = None
    kind: str = "file"


Unit = tuple[File | Fault, ...]
"""Files that one process reads together, and the faults of folders that cannot be
listed.
"""

Share = Callable[[float], None]
"""Called with the part of a unit that has been read, from 0 to 1."""


def is_archive(file: File) -> bool:
    """Return whether a file has the suffix of an archive."""
    return file.location.lower().endswith(
        (".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst")
    )
