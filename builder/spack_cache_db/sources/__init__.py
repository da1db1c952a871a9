"""Files of the input, and the checks of their texts that all readers share.

Search words and lists grow faster than the texts that they are made of, so texts have limits, which
are far above all known sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spack_cache_db.errors import Fault, LineFault
from spack_cache_db.model import FORMULA, INSTALLED, ROOT, Configuration, is_name
from spack_cache_db.spack.lexer import is_package


class Place(NamedTuple):
    """A release and a stack; None if the folders give the name."""

    release: str | None = None
    stack: str | None = None

    def of(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return release and stack of a mirror's index, from the first two folders of its path."""
        folders = [*path.split("/")[:-1], "", ""]
        release = self.release or folders[0] or ROOT
        return release, self.stack or view or folders[1] or ROOT

    def of_tree(self, index: File) -> tuple[str, str]:
        """Return release and stack of an installation from the path of its index.

        The release is the first folder, or else the input, whose name is not in `_USUAL_NAMES`, and
        does not only make a path longer.
        """
        top = Path(os.path.abspath(index.location.removesuffix(index.path)))  # noqa: PTH100
        top = top.parent if top.name == _TREE else top
        # The folder of a copied index is not that of an installation.
        folders = [*index.path.split("/")[:-1], *([top.name] if _TREE in index.location else [])]
        names = (
            name for name in folders if name not in _USUAL_NAMES and not _PADDING.startswith(name)
        )
        return self.release or next(names, INSTALLED), self.stack or ROOT


ANYWHERE = Place()

_TREE = ".spack-db"
"""The folder with the index of an installation."""

_USUAL_NAMES = {_TREE, "", "apps", "install", "installed", "opt", "software", "spack", "sw"}
"""Names of folders that many installations have."""

_PADDING = "__spack_path_placeholder__"
"""The name of folders that make an install path longer; the last one is cut.

Source: Spack 1.2 `util/path.py`, `SPACK_PATH_PADDING_CHARS`; `config:install_tree:padded_length`.
"""

ADDRESS_FILE = "mirror.json"
"""The file with the address of a mirror, beside an index that was fetched from it."""

SIZES_FILE = "sizes.json"
"""The file with the size of each binary by its hash, in the same folder."""


class File(NamedTuple):
    """A file on disk, or the folder of a mirror.

    `location` is the path as the user would type it, for messages; `path` is the path within the
    input, which goes into the database. `database` and `modules` are files that were named as such;
    `release` was given for an installation or its modules.
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
"""Files that one process reads together, and the faults of folders that cannot be listed."""

Share = Callable[[float], None]
"""Called with the part of a unit that has been read, from 0 to 1."""


def is_archive(file: File) -> bool:
    """Return whether a file has the suffix of an archive."""
    return file.location.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst"))


MAX_NAME = 200
"""Characters of a version, compiler, os, platform, target, stack or name of a variant."""

MAX_TEXT = 4096
"""Characters of a variant, a size or the URL of a tarball."""

MAX_INDEX = 4 * 2**30
"""Bytes of an uncompressed index; the largest known index has 200 MB."""

MAX_TEXTS = 1000
"""Texts in one list of a spec or of `meta`."""


def require_text(data: bytes) -> None:
    """Raise `LineFault` unless bytes are UTF-8 text without NUL, which decoders accept."""
    wrong, message = data.find(b"\0"), "a NUL byte"
    if wrong < 0:
        if data.isascii():
            return
        try:
            data.decode()
        except UnicodeDecodeError as error:
            wrong, message = error.start, f"not UTF-8: byte 0x{data[error.start]:02x}"
        else:
            return
    raise LineFault(data.count(b"\n", 0, wrong) + 1, f"{message}, expected UTF-8 text")


def require_bounded(configuration: Configuration) -> None:
    """Raise `ValueError` if a text of a configuration is too long, or it has too many variants."""
    package = configuration.package
    if not is_package(package):
        raise ValueError(f"has the package {_cut(package)!a}, expected a name that Spack can read")
    for word, value in zip(Configuration._fields, configuration, strict=True):
        if isinstance(value, str) and value:
            require_name(word, value)
    require_bounded_variants(configuration.variants)


@lru_cache(maxsize=4096)
def require_bounded_variants(variants: tuple[str, ...]) -> None:
    """Raise `ValueError` if a variant is too long, or there are too many."""
    require_few("variants", len(variants))
    for text in variants:
        require_short("variant", text, MAX_TEXT)
        require_short("variant name", text.partition("=")[0], MAX_NAME)
        if text.startswith(FORMULA) and not _ENABLED.fullmatch(text):
            raise ValueError(f"has the variant {_cut(text)!a}, expected +name, ~name or name=value")


_ENABLED = re.compile(r"\+{1,2}\w[\w.-]*")


@lru_cache(maxsize=2**16)
def require_name(word: str, text: str) -> None:
    """Raise `ValueError` if a text is not a name or is too long; `word` is its kind."""
    require_short(word, text, MAX_NAME)
    if not is_name(text):
        expected = "expected a name without a blank at either end, that does not begin with = + - @"
        raise ValueError(f"has the {word} {_cut(text)!a}, {expected}")


def require_short(word: str, text: str, limit: int) -> None:
    """Raise `ValueError` if a text is too long or not printable; `word` is its kind.

    Control and format characters change the display of the text around them: U+202E reverses it.
    """
    if not text.isprintable():
        wrong = next(char for char in text if not char.isprintable())
        raise ValueError(f"has a {word} with the character {wrong!a}, expected printable text")
    if len(text) > limit:
        raise ValueError(f"has a {word} of {len(text):,} characters, expected at most {limit:,}")


def require_cell(word: str, text: str) -> None:
    """Raise `ValueError` if a text is too long, or a formula to spreadsheets."""
    require_short(word, text, MAX_TEXT)
    if text.startswith(FORMULA):
        expected = "expected a text without = + - @ at its start"
        raise ValueError(f"has the {word} {_cut(text)!a}, {expected}")


def require_few(word: str, count: int) -> None:
    """Raise `ValueError` if there are more than `MAX_TEXTS` texts; `word` is their kind."""
    if count > MAX_TEXTS:
        raise ValueError(f"has {count:,} {word}, expected at most {MAX_TEXTS:,}")


BROKEN = (RecursionError, ValueError)
"""Raised by decoding data that is not JSON of the expected form."""


def message_of(error: BaseException) -> str:
    """Return the message of a decoder as one short line: it may quote keys of any length."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:100]}...{text[-100:]}"


def quoted(text: str) -> str:
    """Return text for a message: in quotes, printable and short."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    """Return a text that fits into a message."""
    return text if len(text) <= 60 else text[:57] + "..."


def printable_name(text: str) -> str:
    """Return text for a message, quoted only if it is long or not printable."""
    return text if text.isprintable() and len(text) <= 60 else quoted(text)


def as_json(value: Any) -> str:
    """Return values as JSON with sorted keys; `ValueError` if they are not UTF-8."""
    # The help of `fetch` should not wait for it.
    import msgspec

    return msgspec.json.encode(value, order="sorted").decode()
