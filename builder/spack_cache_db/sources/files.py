"""Files of the input, and the releases and stacks to which they belong.

This module has records only: `readers` finds files and reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from spack_cache_db.errors import Fault
from spack_cache_db.model import INSTALLED, ROOT

ADDRESS_FILE = "mirror.json"
"""The file with the address of a mirror, beside an index that was fetched from it."""

SIZES_FILE = "sizes.json"
"""The file with the size of each binary by its hash, in the same folder."""

_INSTALLATION_FOLDER = ".spack-db"
"""The folder with the index of an installation."""

_USUAL_NAMES = {
    _INSTALLATION_FOLDER,
    "",
    "apps",
    "install",
    "installed",
    "opt",
    "software",
    "spack",
    "sw",
}
"""Names of folders that many installations have, so that they name none of them."""

_PADDING = "__spack_path_placeholder__"
"""The name of folders that only make the path of an installation longer.

Of the last one, only a part may be left. Source: Spack 1.2 `util/path.py`,
`SPACK_PATH_PADDING_CHARS`; `config:install_tree:padded_length`.
"""


class File(NamedTuple):
    """A file on disk, or the folder of a mirror.

    Attributes:
        location: the path as the user would type it, for messages.
        path: the path within the input, which goes into the database.
        kind: "database" and "modules" (a list of environment modules) for files that
            are known as such, "mirror" for a folder, and "file" for others, whose
            content shows what they are.
        release: the name that was given for an installation or its modules.
    """

    location: str
    path: str
    kind: Literal["file", "mirror", "database", "modules"] = "file"
    release: str | None = None


class RawFile(NamedTuple):
    """The bytes of one file or of one member of an archive; see `File`."""

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


class Place(NamedTuple):
    """The release and the stack that the user gave for indexes.

    If one of them is None, the names of folders give it.
    """

    release: str | None = None
    stack: str | None = None

    def of_mirror(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return the release and the stack of a mirror's index.

        The folders of `develop/e4s/index.json` give the release develop and the stack
        e4s.

        Args:
            path: the path of the index within the input.
            view: the name of the view that the index lists: a part of the mirror,
                which has an index of its own and counts as a stack.
        """
        folders = path.split("/")[:-1]
        release_folder = folders[0] if folders else ""
        stack_folder = folders[1] if len(folders) > 1 else ""
        release = self.release or release_folder or ROOT
        stack = self.stack or view or stack_folder or ROOT
        return release, stack

    def of_installation(self, index: File) -> tuple[str, str]:
        """Return the release and the stack of an installation from its index.

        The release is the first folder of its path that names an installation. For
        `hpc/opt/spack/.spack-db/index.json` it is hpc.
        """
        stack = self.stack or ROOT
        if self.release:
            return self.release, stack
        folders = index.path.split("/")[:-1]
        # The folder that the user named comes last. If it has a copy of the index, and
        # not the installation, its name is of no use.
        if _INSTALLATION_FOLDER in index.location:
            named = index.location.removesuffix(index.path)
            named_folder = Path(os.path.abspath(named))  # noqa: PTH100
            if named_folder.name == _INSTALLATION_FOLDER:
                named_folder = named_folder.parent
            folders.append(named_folder.name)
        for name in folders:
            if name not in _USUAL_NAMES and not _PADDING.startswith(name):
                return name, stack
        return INSTALLED, stack


ANYWHERE = Place()
"""The place of indexes for which the user gave neither a release nor a stack."""


def is_archive(file: File) -> bool:
    """Return whether a file has the suffix of an archive."""
    suffixes = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst")
    return file.location.lower().endswith(suffixes)
