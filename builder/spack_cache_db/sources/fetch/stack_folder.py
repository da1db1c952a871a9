"""The folder of one stack, and how downloads get into it: whole and verified, or not at all.

A file is written under one hidden name, forced to disk, and renamed. Where each file came from is
recorded in a hidden file beside them, which is written before the rename. `build` skips hidden
names. Only names that are written here are ever removed, and nothing that a link leads to.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from spack_cache_db.bounded_files import FileFault, put_in_place, read_file, sha256_of
from spack_cache_db.sources import ADDRESS_FILE
from spack_cache_db.sources.fetch.addresses import FetchFault, MirrorRequest, shown
from spack_cache_db.sources.fetch.web import (
    NO_HEADERS,
    Headers,
    MismatchFault,
    Tags,
    Web,
)
from spack_cache_db.sources.indexes import (
    MAX_ADDRESS,
    IndexFault,
    read_address,
    write_address,
)
from spack_cache_db.sources.indexes.index_records import Installs
from spack_cache_db.sources.strictness import BROKEN

STATE_FILE = ".fetched.json"
PART_FILE = ".fetched.part"
"""The file that is being downloaded; the next run replaces what a killed one left."""

_MAX_STATE = 2**26
"""Bytes; a stack has a few files."""

_OWN_NAME = re.compile(
    r"index\.json|\.spack-db/index\.json|build_cache/index\.json(?:\.hash)?"
    r"|v3/manifests/index/(?:[^/.][^/]*/)*index\.manifest\.json"
    r"|v3/manifests/spec/[^/.][^/]*/[^/.][^/]*\.spec\.manifest\.json"
    r"|build_cache/(?:[^/.][^/]*/)*[^/.][^/]*\.spec\.(?:json|json\.sig|yaml)"
    r"|blobs/sha256/[0-9a-f]{2}/[0-9a-f]{64}"
    r"|packages\.json|packages\.tar\.zst|data/packages/[\w-][\w.-]*\.json"
)
"""The names of files that are fetched, as paths within the folder of a stack."""


class FetchedFile(Struct, frozen=True):
    """A file that was fetched: from where, and what it was then."""

    url: str
    size: int
    sha256: str
    tags: Tags = Tags()


class _State(Struct):
    """The record of a folder; names are paths within it."""

    manifest: str | None = None
    files: dict[str, FetchedFile] = {}


_STATE = msgspec.json.Decoder(_State)


class StackFolder:
    """The folder of one stack, for one run."""

    def __init__(self, output: Path, request: MirrorRequest) -> None:
        """Read what is recorded of it.

        Raises:
            FetchFault: it has the index of another mirror.
        """
        self.path = output / request.release / request.stack
        # With the address, the folder would be a mirror's.
        self._address = None if request.is_package_data else write_address(request.address)
        self._state = _read_state(self.path)
        self._kept: set[str] = set()
        self._require_same_mirror(request)
        self._state.manifest = shown(request.manifest) if request.manifest else None

    def file(self, name: str) -> Path:
        """Return the path of a file by its name in this folder."""
        return self.path / name

    def unchanged(self, name: str, url: str) -> FetchedFile | None:
        """Return what is recorded of a file, if it came from `url` and nobody changed it."""
        known, path = self._state.files.get(name), self.file(name)
        if known is None or known.url != shown(url):
            return None
        try:
            is_same = (sha256_of(path), path.stat().st_size) == (known.sha256, known.size)
        except OSError:
            return None
        return known if is_same else None

    def names(self) -> list[str]:
        """Return the names of the files that were fetched, sorted."""
        return sorted(self._state.files)

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the bytes of a file; None if there is none of at most `limit` bytes."""
        try:
            return read_file(self.file(name), limit)
        except OSError:
            return None

    def keep(self, name: str) -> None:
        """Record that a file belongs to the mirror as it is today."""
        self._kept.add(name)

    async def bring(
        self,
        web: Web,
        name: str,
        url: str,
        sha256: str | None = None,
        headers: Headers = NO_HEADERS,
    ) -> bool:
        """Fetch a file; return whether it is another than before.

        Args:
            web: what asks.
            name: its path in this folder.
            url: where it comes from.
            sha256: the checksum that it must have. Without one it must be a whole index.
            headers: those of the request.

        Raises:
            MismatchFault: it is not what it must be.
            FetchFault: there is none, or none that can be read.
        """
        known = await asyncio.to_thread(self.unchanged, name, url)
        if known is not None and known.sha256 == sha256:
            self.keep(name)
            return False
        unless = known.tags.conditions() if known is not None and sha256 is None else {}
        part = self.path / PART_FILE
        try:
            tags = await web.save(url, part, {**headers, **unless})
            if tags is None:
                self.keep(name)
                return False
            file = await asyncio.to_thread(_checked, part, url, sha256, tags)
            self._settle(name, file)
        finally:
            part.unlink(missing_ok=True)
            _remove_empty(self.path, self.path.parent.parent)
        return known is None or file.sha256 != known.sha256

    def _settle(self, name: str, file: FetchedFile) -> None:
        """Give the part that is whole its name."""
        self._write_address()
        self._state.files[name] = file
        self._save()
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        put_in_place(self.path / PART_FILE, self.file(name))
        self.keep(name)

    def write(self, name: str, data: bytes, url: str, tags: Tags) -> bool:
        """Write a small file from its bytes; return whether it is another than before."""
        file = FetchedFile(shown(url), len(data), hashlib.sha256(data).hexdigest(), tags)
        known = self.unchanged(name, url)
        if known == file:
            self.keep(name)
            return False
        _write_new(self.path / PART_FILE, data)
        self._settle(name, file)
        return known is None or known.sha256 != file.sha256

    def remove(self, name: str) -> None:
        """Remove a file, unless a link leads out of this folder to it."""
        path = self.file(name)
        way = path.parent.relative_to(self.path)
        if Path(os.path.realpath(path.parent)) == Path(os.path.realpath(self.path), way):
            path.unlink(missing_ok=True)
        self._state.files.pop(name, None)

    def finish(self) -> None:
        """Remove the files of earlier runs that the mirror has no longer, and the part."""
        (self.path / PART_FILE).unlink(missing_ok=True)
        for name in self._state.files.keys() - self._kept:
            self.remove(name)
            _remove_empty(self.file(name).parent, self.path)
        self._write_address()
        self._save()

    def _write_address(self) -> None:
        if self._address is not None:
            self._write(ADDRESS_FILE, self._address)

    def _save(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self._state, order="sorted"), indent=1)
        self._write(STATE_FILE, data)

    def _write(self, name: str, data: bytes) -> None:
        path = self.file(name)
        if _read(path, _MAX_STATE) != data:
            # Not the name of a download: that may be whole and waiting for this.
            part = path.with_name(f".{name.lstrip('.')}.part")
            _write_new(part, data)
            put_in_place(part, path)

    def _require_same_mirror(self, request: MirrorRequest) -> None:
        manifest = self._state.manifest
        if request.manifest and manifest == shown(request.manifest):
            return
        data = _read(self.path / ADDRESS_FILE, MAX_ADDRESS)
        if data is None:
            return
        try:
            url = read_address(data).url
        except IndexFault as error:
            raise FetchFault(str(self.path / ADDRESS_FILE), str(error)) from None
        if url != shown(request.url):
            advice = "name another with --release or --stack, or remove it"
            raise FetchFault(request.url, f"{self.path} has the index of {url}: {advice}")


def _checked(part: Path, url: str, sha256: str | None, tags: Tags) -> FetchedFile:
    """Return what is recorded of a download; `MismatchFault` if it is not what it must be."""
    found = sha256_of(part)
    if sha256 is None:
        try:
            Installs(read_file(part, part.stat().st_size))
        except IndexFault as error:
            raise MismatchFault(url, f"is no whole index: {error}") from None
    elif found != sha256:
        words = f"has the checksum {found}, expected {sha256} as the mirror says"
        raise MismatchFault(url, words)
    return FetchedFile(shown(url), part.stat().st_size, found, tags)


def stacks_of(output: Path, manifest: str) -> Iterator[Path]:
    """Yield the folders of the stacks that were fetched because a manifest of releases named them.

    Folders come sorted; `manifest` is its URL.
    """
    for path in sorted(output.glob(f"[!.]*/[!.]*/{STATE_FILE}")):
        if _read_state(path.parent).manifest == shown(manifest):
            yield path.parent


def _read(path: Path, limit: int) -> bytes | None:
    """Return the bytes of a file; None if there is none, or something else of that name."""
    try:
        return read_file(path, limit)
    except (FileNotFoundError, FileFault):
        return None


def _read_state(folder: Path) -> _State:
    """Return what is recorded of a folder; if that cannot be read, everything is fetched again.

    Names that are not written here are left out: they are another's.
    """
    try:
        state = _STATE.decode(read_file(folder / STATE_FILE, _MAX_STATE))
    except (OSError, *BROKEN):
        return _State()
    state.files = {name: file for name, file in state.files.items() if _OWN_NAME.fullmatch(name)}
    return state


def _write_new(path: Path, data: bytes) -> None:
    """Write a file under a name that is free, or becomes it: it may be that of a pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with path.open("xb") as stream:
        stream.write(data)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, below `top`, as far as they are empty."""
    while (
        folder != top and folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
    ):
        folder.rmdir()
        folder = folder.parent
