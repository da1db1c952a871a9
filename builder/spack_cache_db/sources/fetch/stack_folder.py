"""The folder of one stack, and how downloads get into it: whole and verified, or not at all.

A file is written under one hidden name, forced to disk, and renamed. The source and the checksum of
each file are recorded in a hidden file beside them, which is written before the rename. `build`
skips hidden names. A file is only removed if it is what the record says.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import suppress
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


class FetchedFile(Struct, frozen=True):
    """The source and the checksum of a file that was fetched."""

    url: str
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

    def unchanged(self, name: str, url: str) -> FetchedFile | None:
        """Return what is recorded of a file, if it came from `url` and nobody changed it."""
        known = self._state.files.get(name)
        return known if known and known.url == shown(url) and self._is_recorded(name) else None

    def _is_recorded(self, name: str) -> bool:
        """Return whether a file is what was fetched."""
        try:
            return sha256_of(self.path / name) == self._state.files[name].sha256
        except OSError:
            return False

    def names(self) -> list[str]:
        """Return the names of the files that were fetched, sorted."""
        return sorted(self._state.files)

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the bytes of a file; None if there is none of at most `limit` bytes."""
        try:
            return read_file(self.path / name, limit)
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
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        put_in_place(self.path / PART_FILE, path)
        self.keep(name)

    def write(self, name: str, data: bytes, url: str, tags: Tags) -> bool:
        """Write a small file from its bytes; return whether it is another than before."""
        file = FetchedFile(shown(url), hashlib.sha256(data).hexdigest(), tags)
        known = self.unchanged(name, url)
        if known == file:
            self.keep(name)
            return False
        _write_new(self.path / PART_FILE, data)
        self._settle(name, file)
        return known is None or known.sha256 != file.sha256

    def finish(self) -> None:
        """Remove the files of earlier runs that the mirror has no longer, and the part."""
        (self.path / PART_FILE).unlink(missing_ok=True)
        for name in self._state.files.keys() - self._kept:
            if self._is_recorded(name):
                (self.path / name).unlink()
                _remove_empty((self.path / name).parent, self.path)
            del self._state.files[name]
        self._write_address()
        self._save()

    def _write_address(self) -> None:
        if self._address is not None:
            self._write(ADDRESS_FILE, self._address)

    def _save(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self._state, order="sorted"), indent=1)
        self._write(STATE_FILE, data)

    def _write(self, name: str, data: bytes) -> None:
        path = self.path / name
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
            raise MismatchFault(url, f"is not a whole index: {error}") from None
    elif found != sha256:
        words = f"has the checksum {found}, expected {sha256} as the mirror says"
        raise MismatchFault(url, words)
    return FetchedFile(shown(url), found, tags)


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
    """Return the record of a folder; if it cannot be read, everything is fetched again."""
    try:
        return _STATE.decode(read_file(folder / STATE_FILE, _MAX_STATE))
    except (OSError, *BROKEN):
        return _State()


def _write_new(path: Path, data: bytes) -> None:
    """Write a file under a name that is free, or becomes it: it may be that of a pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with path.open("xb") as stream:
        stream.write(data)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, below `top`, as far as they are empty."""
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
