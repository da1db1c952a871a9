"""Writes downloads into the folder of a stack: complete and verified, or not at all.

A file is written under a hidden name, which `build` skips, synced to disk, and renamed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct, structs

from spack_cache_db.bounded_files import FileFault, read_file, sha256_of
from spack_cache_db.output_folders import put_in_place
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror, shown
from spack_cache_db.sources.fetch.web import NO_HEADERS, Headers, MismatchFault, Web
from spack_cache_db.sources.files import ADDRESS_FILE, SIZES_FILE
from spack_cache_db.sources.indexes.addresses import (
    MAX_ADDRESS,
    Address,
    read_address,
    write_address,
)
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.sources.texts import BROKEN

STATE_FILE = ".fetched.json"
"""The record of a folder: the source and the checksum of each file."""

PART_FILE = ".fetched.part"
"""The file that is being downloaded; the next run replaces the one of a killed run."""

_MAX_STATE = 2**26


class FetchedFile(Struct, frozen=True):
    """The source and the checksum of a file, and the headers that ask for it if it
    changed.
    """

    url: str
    sha256: str
    conditions: dict[str, str] = {}


class _State(Struct):
    """The record of a folder; names are paths within it."""

    manifest: str | None = None
    files: dict[str, FetchedFile] = {}
    signed: bool | None = None


_STATE = msgspec.json.Decoder(_State)


class StackFolder:
    """The folder of one stack, for one run; `opened` makes it.

    Attributes:
        files: the recorded files by name.
        kept: names of files that are part of the mirror; others are removed.
        changed: whether this run changed a file.
        faults: faults of views and of packages, which keep files of earlier runs.
        signed: whether the binaries are signed, as this or an earlier run has seen.
    """

    def __init__(self, output: Path, mirror: Mirror) -> None:
        self.path = output / mirror.folder
        state = _read_state(self.path)
        manifest = shown(mirror.manifest) if mirror.manifest else None
        if not manifest or manifest != state.manifest:
            _require_same_mirror(self.path, shown(mirror.url))
        self.files = state.files
        self.kept = {SIZES_FILE}
        self.changed = False
        self.faults: list[FetchFault] = []
        self.signed = state.signed
        self._manifest = manifest
        # A folder with an address file would be read as a mirror.
        self._address = None
        if not mirror.is_package_data:
            self._address = Address(
                url=shown(mirror.url),
                include_binary=mirror.include_binary,
                exclude_binary=mirror.exclude_binary,
                **structs.asdict(mirror.properties),
            )

    def unchanged(self, name: str, url: str) -> FetchedFile | None:
        """Return the record of a file if it came from `url` and was not changed
        since.
        """
        record = self.files.get(name)
        with suppress(OSError):
            if (
                record
                and record.url == shown(url)
                and sha256_of(self.path / name) == record.sha256
            ):
                return record
        return None

    def stored(self, name: str, limit: int) -> bytes:
        """Return the content of a file; empty if it is missing."""
        return _read(self.path / name, limit) or b""

    async def download(
        self,
        web: Web,
        name: str,
        url: str,
        sha256: str | None = None,
        headers: Headers = NO_HEADERS,
    ) -> None:
        """Download a file with this checksum; without one, it must be a valid index.

        Raises `MismatchFault` if the file is another, or `FetchFault` if it cannot be
        downloaded.
        """
        earlier = await asyncio.to_thread(self.unchanged, name, url)
        self.kept.add(name)
        if earlier is not None and earlier.sha256 == sha256:
            return
        conditions = earlier.conditions if earlier and sha256 is None else NO_HEADERS
        part, path = self.path / PART_FILE, self.path / name
        try:
            with _new_file(part) as stream:
                latest = await web.save(
                    url, stream, web.limits.max_size, {**headers, **conditions}
                )
            if latest is not None:
                checksum = await asyncio.to_thread(_verified, part, url, sha256)
                self._write_address()
                path.parent.mkdir(parents=True, exist_ok=True)
                put_in_place(part, path)
                self._record(
                    name, FetchedFile(shown(url), checksum, {**latest}), earlier
                )
        finally:
            part.unlink(missing_ok=True)
            _remove_empty(self.path, self.path.parent.parent)

    def write(
        self, name: str, data: bytes, url: str, conditions: Headers = NO_HEADERS
    ) -> None:
        """Write a small file."""
        earlier = self.unchanged(name, url)
        self._write_address()
        self._write(name, data)
        checksum = hashlib.sha256(data).hexdigest()
        self._record(name, FetchedFile(shown(url), checksum, {**conditions}), earlier)

    def _record(
        self, name: str, file: FetchedFile, earlier: FetchedFile | None
    ) -> None:
        self.changed |= earlier is None or earlier.sha256 != file.sha256
        self.files[name] = file
        self.kept.add(name)

    def remove_old(self) -> None:
        """Remove files that the mirror no longer has, unless others changed them."""
        (self.path / PART_FILE).unlink(missing_ok=True)
        for name in self.files.keys() - self.kept:
            if self.unchanged(name, self.files[name].url):
                (self.path / name).unlink()
                _remove_empty((self.path / name).parent, self.path)
            del self.files[name]
        self._write_address()

    def save(self) -> None:
        """Write the record of the folder."""
        if self.files:
            record = _State(self._manifest, self.files, self.signed)
            state = msgspec.json.encode(record, order="sorted")
            self._write(STATE_FILE, msgspec.json.format(state, indent=1))

    def _write_address(self) -> None:
        """Write the address of a mirror; its configuration comes before what runs have
        seen.
        """
        address = self._address
        if address is not None:
            if address.signed is None:
                address = structs.replace(address, signed=self.signed)
            self._write(ADDRESS_FILE, write_address(address))

    def _write(self, name: str, data: bytes) -> None:
        path = self.path / name
        if _read(path, _MAX_STATE) != data:
            part = path.with_name(f".{path.name.lstrip('.')}.part")
            with _new_file(part) as stream:
                stream.write(data)
            put_in_place(part, path)


@contextmanager
def opened(output: Path, mirror: Mirror) -> Iterator[StackFolder]:
    """Open the folder of a mirror; without a fault, files that the mirror dropped are
    removed.
    """
    folder = StackFolder(output, mirror)
    try:
        yield folder
        if not folder.faults:
            folder.remove_old()
    finally:
        folder.save()


def _require_same_mirror(folder: Path, url: str) -> None:
    data = _read(folder / ADDRESS_FILE, MAX_ADDRESS)
    try:
        earlier = url if data is None else read_address(data).url
    except IndexFault as error:
        raise FetchFault(str(folder / ADDRESS_FILE), str(error)) from None
    if earlier != url:
        advice = "name another with --release or --stack, or remove it"
        raise FetchFault(url, f"{folder} has the index of {earlier}: {advice}")


def _verified(part: Path, url: str, sha256: str | None) -> str:
    """Return the checksum of a download; `MismatchFault` if it is wrong, or the index
    is broken.
    """
    checksum = sha256_of(part)
    if sha256 is None:
        try:
            Installs(read_file(part, part.stat().st_size))
        except IndexFault as error:
            raise MismatchFault(url, f"is not a whole index: {error}") from None
    elif checksum != sha256:
        message = f"has the checksum {checksum}, expected {sha256} as in the mirror"
        raise MismatchFault(url, message)
    return checksum


def stacks_of(output: Path, manifest: str) -> Iterator[Path]:
    """Yield the folders of the stacks that were fetched through a manifest of releases,
    sorted.
    """
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
    """Return the record of a folder; empty if it cannot be read, so that all is fetched
    again.
    """
    try:
        return _STATE.decode(read_file(folder / STATE_FILE, _MAX_STATE))
    except (OSError, *BROKEN):
        return _State()


def _new_file(path: Path) -> BinaryIO:
    """Create a file; an old one is removed first, because it may be a pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path.open("xb")


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and its parents below `top` as long as they are empty."""
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
