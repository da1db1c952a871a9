"""The folder of a stack, into which `fetch` writes: each file verified and complete, or
not at all.

    develop/e4s/build_cache/index.json     a file of the mirror
    develop/e4s/mirror.json                the address of the mirror, for `build`
    develop/e4s/.fetched.json              the record: where each file came from

A download is written under a hidden name, which `build` skips, synced to disk, and
renamed. From the record, the next run knows which files have to be fetched again, and
which ones it may remove.
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
"""Bytes of the record of a folder, and of a small file that is compared."""


class FetchedFile(Struct, frozen=True):
    """A file in the record of a folder.

    Attributes:
        url: where it came from, without secrets.
        sha256: its checksum.
        conditions: headers that ask for it only if it changed.
    """

    url: str
    sha256: str
    conditions: dict[str, str] = {}


class _State(Struct):
    """The record of a folder.

    Attributes:
        manifest: the URL of the manifest of releases that names the mirror.
        files: its files, by their paths within the folder.
        signed: whether the binaries of the mirror are signed; None if unknown.
    """

    manifest: str | None = None
    files: dict[str, FetchedFile] = {}
    signed: bool | None = None


_STATE = msgspec.json.Decoder(_State)


@contextmanager
def opened(output: Path, mirror: Mirror) -> Iterator[StackFolder]:
    """Open the folder of a mirror for one run, and write its record afterwards.

    If the run has no fault, files that the mirror no longer has are removed.

    Args:
        output: the folder with those of all mirrors.
        mirror: the mirror.

    Raises:
        FetchFault: the folder has the files of another mirror.
    """
    folder = StackFolder(output, mirror)
    try:
        yield folder
        if not folder.faults:
            folder.remove_old()
    finally:
        folder.save()


class StackFolder:
    """The folder of one stack, for one run; `opened` makes it.

    Attributes:
        path: the folder.
        files: the recorded files by name, their paths within the folder.
        kept: names of files that are part of the mirror; others are removed.
        changed: whether this run changed a file.
        faults: faults of views and of packages, which keep files of earlier runs.
        signed: whether the binaries are signed, as this or an earlier run has seen.
    """

    def __init__(self, output: Path, mirror: Mirror) -> None:
        self.path = output / mirror.folder
        state = _read_state(self.path)
        # A manifest of releases decides which mirror a folder has, so it may change.
        manifest = shown(mirror.manifest) if mirror.manifest else None
        if manifest is None or manifest != state.manifest:
            _require_same_mirror(self.path, shown(mirror.url))
        self.files = state.files
        self.kept = {SIZES_FILE}
        self.changed = False
        self.faults: list[FetchFault] = []
        self.signed = state.signed
        self._manifest = manifest
        # Package data has no address file: `build` would read it as a mirror.
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
        if record is None or record.url != shown(url):
            return None
        # A file that cannot be read is fetched again.
        with suppress(OSError):
            if sha256_of(self.path / name) == record.sha256:
                return record
        return None

    def stored(self, name: str, limit: int) -> bytes:
        """Return the content of a file of at most `limit` bytes; empty if missing."""
        return _read(self.path / name, limit) or b""

    async def download(
        self,
        web: Web,
        name: str,
        url: str,
        sha256: str | None = None,
        headers: Headers = NO_HEADERS,
    ) -> None:
        """Download a file, unless the folder has it already.

        Args:
            web: the HTTP client.
            name: the path of the file within the folder.
            url: its URL.
            sha256: the checksum that it must have; None for one that must be an index.
            headers: headers of the request.

        Raises:
            MismatchFault: the file has another checksum, or is not a whole index.
            FetchFault: it cannot be downloaded.
        """
        earlier = await asyncio.to_thread(self.unchanged, name, url)
        self.kept.add(name)
        if earlier is not None and earlier.sha256 == sha256:
            return
        # Without a checksum, the server is asked whether the file has changed.
        if earlier is not None and sha256 is None:
            headers = {**headers, **earlier.conditions}
        part = self.path / PART_FILE
        path = self.path / name
        try:
            with _new_file(part) as stream:
                conditions = await web.save(url, stream, web.limits.max_size, headers)
            # None: it has not changed.
            if conditions is not None:
                checksum = await asyncio.to_thread(_verified, part, url, sha256)
                self._write_address()
                path.parent.mkdir(parents=True, exist_ok=True)
                put_in_place(part, path)
                file = FetchedFile(shown(url), checksum, dict(conditions))
                self._record(name, file, earlier)
        finally:
            part.unlink(missing_ok=True)
            # If nothing was written, neither is a folder.
            output = self.path.parent.parent
            _remove_empty(self.path, output)

    def write(
        self, name: str, data: bytes, url: str, conditions: Headers = NO_HEADERS
    ) -> None:
        """Write a small file, and record it.

        Args:
            name: the path of the file within the folder.
            data: its content.
            url: where it came from.
            conditions: headers that ask for it only if it changed.
        """
        earlier = self.unchanged(name, url)
        self._write_address()
        self._write(name, data)
        checksum = hashlib.sha256(data).hexdigest()
        self._record(name, FetchedFile(shown(url), checksum, dict(conditions)), earlier)

    def _record(
        self, name: str, file: FetchedFile, earlier: FetchedFile | None
    ) -> None:
        if earlier is None or earlier.sha256 != file.sha256:
            self.changed = True
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
            state = _State(self._manifest, self.files, self.signed)
            data = msgspec.json.encode(state, order="sorted")
            self._write(STATE_FILE, msgspec.json.format(data, indent=1))

    def _write_address(self) -> None:
        """Write the file with the address of the mirror.

        Whether it is signed is what its configuration says, or else what runs have
        seen.
        """
        address = self._address
        if address is None:
            return
        if address.signed is None:
            address = structs.replace(address, signed=self.signed)
        self._write(ADDRESS_FILE, write_address(address))

    def _write(self, name: str, data: bytes) -> None:
        """Write a file, unless it has this content."""
        path = self.path / name
        if _read(path, _MAX_STATE) == data:
            return
        part = path.with_name(f".{path.name.lstrip('.')}.part")
        with _new_file(part) as stream:
            stream.write(data)
        put_in_place(part, path)


def _require_same_mirror(folder: Path, url: str) -> None:
    """Raise `FetchFault` if a folder has the address of another mirror."""
    data = _read(folder / ADDRESS_FILE, MAX_ADDRESS)
    if data is None:
        return
    try:
        earlier = read_address(data).url
    except IndexFault as error:
        raise FetchFault(str(folder / ADDRESS_FILE), str(error)) from None
    if earlier != url:
        advice = "name another with --release or --stack, or remove it"
        raise FetchFault(url, f"{folder} has the index of {earlier}: {advice}")


def _verified(part: Path, url: str, sha256: str | None) -> str:
    """Return the checksum of a download.

    Raises:
        MismatchFault: the checksum is not the expected one; without an expected one,
            the file is not a whole index.
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

    Args:
        output: the folder with those of all mirrors.
        manifest: the URL of the manifest.
    """
    for path in sorted(output.glob(f"[!.]*/[!.]*/{STATE_FILE}")):
        if _read_state(path.parent).manifest == shown(manifest):
            yield path.parent


def _read_state(folder: Path) -> _State:
    """Return the record of a folder; empty if it cannot be read, so that all is fetched
    again.
    """
    try:
        return _STATE.decode(read_file(folder / STATE_FILE, _MAX_STATE))
    except (OSError, *BROKEN):
        return _State()


def _read(path: Path, limit: int) -> bytes | None:
    """Return the content of a file; None if it is missing or not a regular file."""
    try:
        return read_file(path, limit)
    except (FileNotFoundError, FileFault):
        return None


def _new_file(path: Path) -> BinaryIO:
    """Create a file; an old one is removed first, because it may be a pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path.open("xb")


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and its parents below `top` as long as they are empty."""
    # Raised for a folder that is not empty.
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
