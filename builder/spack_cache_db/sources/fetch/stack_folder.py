"""Writes downloads into the folder of a stack: complete and verified, or not at all.

A file is written under a hidden name, synced to disk, and renamed. A hidden file, written before
the rename, records the source and the checksum of each file. `build` skips hidden names. A file is
removed only if it still has the recorded checksum.
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
"""The file that is being downloaded; the next run replaces the one of a killed run."""

_MAX_STATE = 2**26
"""Bytes of the record of a folder."""


class FetchedFile(Struct, frozen=True):
    """The source and the checksum of a downloaded file."""

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
        """Read the record of the folder.

        Raises:
            FetchFault: the folder has the index of another mirror.
        """
        self.path = output / request.release / request.stack
        # A folder with an address file would be read as a mirror.
        self._address = None if request.is_package_data else write_address(request.address)
        self._state = _read_state(self.path)
        self._kept: set[str] = set()
        self._require_same_mirror(request)
        self._state.manifest = shown(request.manifest) if request.manifest else None

    def unchanged(self, name: str, url: str) -> FetchedFile | None:
        """Return the record of a file if it came from `url` and was not changed since."""
        record = self._state.files.get(name)
        return record if record and record.url == shown(url) and self._is_recorded(name) else None

    def _is_recorded(self, name: str) -> bool:
        """Return whether a file has the recorded checksum."""
        try:
            return sha256_of(self.path / name) == self._state.files[name].sha256
        except OSError:
            return False

    def names(self) -> list[str]:
        """Return the names of the downloaded files, sorted."""
        return sorted(self._state.files)

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the content of a file; None if it is missing or larger than `limit` bytes."""
        try:
            return read_file(self.path / name, limit)
        except OSError:
            return None

    def keep(self, name: str) -> None:
        """Mark a file as part of the mirror, so that `finish` keeps it."""
        self._kept.add(name)

    async def download(
        self,
        web: Web,
        name: str,
        url: str,
        sha256: str | None = None,
        headers: Headers = NO_HEADERS,
    ) -> bool:
        """Download a file; return whether it changed.

        Args:
            web: the client.
            name: path of the file in this folder.
            url: URL of the file.
            sha256: expected checksum. Without one, the file must be a valid index.
            headers: headers of the request.

        Raises:
            MismatchFault: the file has another checksum, or is not an index.
            FetchFault: the file cannot be downloaded.
        """
        earlier = await asyncio.to_thread(self.unchanged, name, url)
        if earlier is not None and earlier.sha256 == sha256:
            self.keep(name)
            return False
        unless = earlier.tags.conditions() if earlier is not None and sha256 is None else {}
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
        return earlier is None or file.sha256 != earlier.sha256

    def _settle(self, name: str, file: FetchedFile) -> None:
        """Record a complete download, and rename it."""
        self._write_address()
        self._state.files[name] = file
        self._save()
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        put_in_place(self.path / PART_FILE, path)
        self.keep(name)

    def write(self, name: str, data: bytes, url: str, tags: Tags) -> bool:
        """Write a small file; return whether it changed."""
        file = FetchedFile(shown(url), hashlib.sha256(data).hexdigest(), tags)
        earlier = self.unchanged(name, url)
        if earlier == file:
            self.keep(name)
            return False
        _write_new(self.path / PART_FILE, data)
        self._settle(name, file)
        return earlier is None or earlier.sha256 != file.sha256

    def finish(self) -> None:
        """Remove files that the mirror no longer has, and the incomplete download."""
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
            # Not `PART_FILE`, which may be a complete download that is renamed afterwards.
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
    """Return the record of a download; `MismatchFault` for a wrong checksum or a broken index."""
    checksum = sha256_of(part)
    if sha256 is None:
        try:
            Installs(read_file(part, part.stat().st_size))
        except IndexFault as error:
            raise MismatchFault(url, f"is not a whole index: {error}") from None
    elif checksum != sha256:
        message = f"has the checksum {checksum}, expected {sha256} as in the mirror"
        raise MismatchFault(url, message)
    return FetchedFile(shown(url), checksum, tags)


def stacks_of(output: Path, manifest: str) -> Iterator[Path]:
    """Yield the folders of the stacks that were fetched through a manifest of releases, sorted."""
    for path in sorted(output.glob(f"[!.]*/[!.]*/{STATE_FILE}")):
        if _read_state(path.parent).manifest == shown(manifest):
            yield path.parent


def _read(path: Path, limit: int) -> bytes | None:
    """Return the content of a file; None if it is missing or not a regular file."""
    try:
        return read_file(path, limit)
    except (FileNotFoundError, FileFault):
        return None


def _read_state(folder: Path) -> _State:
    """Return the record of a folder; empty if it cannot be read, so that all is fetched again."""
    try:
        return _STATE.decode(read_file(folder / STATE_FILE, _MAX_STATE))
    except (OSError, *BROKEN):
        return _State()


def _write_new(path: Path, data: bytes) -> None:
    """Write a new file; an old one is removed first, because it may be a pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with path.open("xb") as stream:
        stream.write(data)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and its parents below `top` as long as they are empty."""
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
