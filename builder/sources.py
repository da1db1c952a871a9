"""Source → pages' bytes: files, folders and archives, streamed.

This module knows file systems and archive formats and nothing of what a page says. Nothing is
unpacked to disk, no archive is held whole in memory, and a name inside an archive is only a
label. Hidden files (a name that starts with a dot) are not pages.
"""

from __future__ import annotations

import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

import zstandard

from .errors import Fault, InputError
from .tar_streams import Watched, decompressed

DEFAULT_MAX_PAGE_SIZE = 64 * 2**20
"""Bytes. The largest pages known are a few hundred kilobytes."""

FILES_PER_UNIT = 800
"""Enough files that handing a unit to a process costs nothing beside reading it."""

_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_ARCHIVE_SUFFIXES = (*_TAR_SUFFIXES, ".zip")
_BROKEN_ARCHIVE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zstandard.ZstdError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    lzma.LZMAError,
    UnicodeDecodeError,
)


class File(NamedTuple):
    """One page on disk. There are many and they are shipped to workers, hence a tuple.

    `shown` is the path as the user would type it, for messages; `path` is its name within the
    input, and goes into the database.
    """

    shown: str
    path: str


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive of pages."""

    shown: str


Unit = tuple[File, ...] | Archive
"""What one process reads in one go."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """The bytes of one page and where they came from (see `File`)."""

    shown: str
    path: str
    data: bytes


def plan(paths: Iterable[str]) -> list[Unit]:
    """Divide the input into units of work, in an order that does not depend on that of `paths`.

    Files are ordered by the folder they lie in and only then by their path: pages of one package
    say much the same in every release, and what is read together is interned together.

    Raises:
        InputError: a path does not exist, cannot be listed, or is a folder without any file.
    """
    files: dict[str, File] = {}
    archives: dict[str, Archive] = {}
    faults: list[Fault] = []
    for path in paths:
        found = _below(path, faults)
        for file in found:
            if file.shown.lower().endswith(_ARCHIVE_SUFFIXES):
                archives[file.shown] = Archive(file.shown)
            else:
                files[file.shown] = file
    if faults:
        raise InputError(faults)
    ordered = sorted(files.values(), key=lambda file: (_folder(file.path), file.path, file.shown))
    chunks = range(0, len(ordered), FILES_PER_UNIT)
    units: list[Unit] = [tuple(ordered[at : at + FILES_PER_UNIT]) for at in chunks]
    return [*units, *(archives[name] for name in sorted(archives))]


def read(unit: Unit, max_page_size: int) -> Iterator[RawPage | Fault]:
    """Yield the pages of a unit, and a fault for whatever cannot be read."""
    for page in _read(unit, max_page_size):
        yield page if isinstance(page, Fault) or _is_text(page.path) else _no_text(page.shown)


def _read(unit: Unit, max_page_size: int) -> Iterator[RawPage | Fault]:
    if isinstance(unit, tuple):
        for file in unit:
            yield _read_file(file, max_page_size)
        return
    members = _read_zip if unit.shown.lower().endswith(".zip") else _read_tar
    found = False
    try:
        for page in members(unit.shown, max_page_size):
            found = True
            yield page
        if not found:
            yield Fault(unit.shown, 0, "the archive holds no file, expected pages")
    except _BROKEN_ARCHIVE as error:
        yield Fault(unit.shown, 0, f"the archive cannot be read to its end: {_reason(error)}")


def _below(path: str, faults: list[Fault]) -> list[File]:
    """List the files at or below a path."""
    if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name that is too long
        return [File(path, Path(path).name)]
    if not os.path.isdir(path):  # noqa: PTH112 - the same
        faults.append(Fault(path, 0, "no such file or folder, expected pages"))
        return []
    before = len(faults)

    top = path.rstrip(os.sep) or os.sep
    skip = len(top.rstrip(os.sep)) + 1
    found = [File(shown, shown[skip:].replace(os.sep, "/")) for shown in _files_below(top, faults)]
    if not found and len(faults) == before:
        faults.append(Fault(path, 0, "the folder holds no file, expected pages"))
    return found


def _files_below(top: str, faults: list[Fault]) -> Iterator[str]:
    """Yield the paths of all files below a folder that are not hidden; links are not followed.

    `os.walk` would do, and take half as long again.
    """
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_dir():
                        yield entry.path
        except OSError as error:
            faults.append(Fault(folder, 0, f"cannot be listed: {_reason(error)}"))


def _folder(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2]


def _read_file(file: File, max_page_size: int) -> RawPage | Fault:
    try:
        # A pipe would block whoever opens it, but for O_NONBLOCK.
        with open(file.shown, "rb", buffering=0, opener=_open) as stream:
            status = os.fstat(stream.fileno())
            size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                return Fault(file.shown, 0, "is a pipe or a device, expected a regular file")
            if size > max_page_size:
                return _too_large(file.shown, size, max_page_size)
            return RawPage(file.shown, file.path, stream.readall())
    except OSError as error:
        return Fault(file.shown, 0, f"cannot be read: {_reason(error)}")


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _read_tar(shown: str, max_page_size: int) -> Iterator[RawPage | Fault]:
    with open(shown, "rb") as raw, decompressed(shown, raw) as stream:  # noqa: PTH123
        watched = Watched(stream)
        with tarfile.open(fileobj=cast(IO[bytes], watched), mode="r|") as tar:
            for member in tar:
                name = f"{shown}/{member.name}"
                if member.isdir() or _hidden(member.name):
                    continue
                if not member.isreg():
                    yield Fault(name, 0, "is a link or a device, expected a regular file")
                elif member.size > max_page_size:
                    yield _too_large(name, member.size, max_page_size)
                elif (content := tar.extractfile(member)) is not None:
                    yield RawPage(name, member.name, content.read())
        watched.require_end(tar.offset)


def _read_zip(shown: str, max_page_size: int) -> Iterator[RawPage | Fault]:
    with zipfile.ZipFile(shown) as archive:
        for member in archive.infolist():
            name = f"{shown}/{member.filename}"
            if member.is_dir() or _hidden(member.filename):
                continue
            if stat.S_ISLNK(member.external_attr >> 16):
                yield Fault(name, 0, "is a link or a device, expected a regular file")
            elif member.file_size > max_page_size:
                yield _too_large(name, member.file_size, max_page_size)
            else:
                yield RawPage(name, member.filename, archive.read(member))


def _hidden(name: str) -> bool:
    return any(
        part.startswith(".") and part not in (".", "..") for part in PurePosixPath(name).parts
    )


def _too_large(shown: str, size: int, limit: int) -> Fault:
    return Fault(
        shown,
        0,
        f"the page has {size:,} bytes, expected at most {limit:,} (--max-page-size)",
    )


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_text(shown: str) -> Fault:
    named = shown.encode(errors="backslashreplace").decode()
    return Fault(named, 0, "the name is not UTF-8, expected a name that can be written down")


def _reason(error: BaseException) -> str:
    """Return what an exception says, on one line, without repeating the path."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(str(text).split()) or type(error).__name__
