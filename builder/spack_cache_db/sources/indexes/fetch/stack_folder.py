"""The folder of one stack on disk, and downloads into it.

A file is written under a hidden name that ends in `.part`, verified, forced to disk and only then
renamed; an interrupted download is resumed. Where each file came from is recorded in a hidden
file beside them, which is written before a rename: whatever a killed run leaves is either a part
or recorded. `build` passes hidden names over.
"""

from __future__ import annotations

import asyncio
import hashlib
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct

from spack_cache_db.sources.indexes.fetch.addresses import FetchFault, Wanted, shown
from spack_cache_db.sources.indexes.fetch.encodings import BrokenEncoding, TooLong, decoded
from spack_cache_db.sources.indexes.fetch.web import (
    NO_HEADERS,
    Headers,
    MismatchFault,
    Passing,
    Tags,
    Web,
    encoding_of,
    length_of,
    require_size,
    tags_of,
    too_large,
)
from spack_cache_db.sources.indexes.layouts import read_address, write_address
from spack_cache_db.sources.indexes.spack_json import Index, IndexFault, said
from spack_cache_db.sources.units import ADDRESS_FILE


class FetchedFile(Struct, frozen=True):
    """A file that was fetched: from where, and what it was then."""

    url: str
    size: int
    sha256: str
    tags: Tags = Tags()


class PartialFile(Struct, frozen=True):
    """A file that is under way: from where, in which state there, in which content encoding."""

    url: str
    tags: Tags
    encoding: str = ""


STATE_FILE = ".fetched.json"


class _State(Struct):
    """What is known of a folder; names are paths within it."""

    manifest: str | None = None
    files: dict[str, FetchedFile] = {}
    parts: dict[str, PartialFile] = {}


_STATE = msgspec.json.Decoder(_State)


class StackFolder:
    """The folder of one stack, for one run."""

    def __init__(self, output: Path, wanted: Wanted) -> None:
        """Look at what is there.

        Raises:
            FetchFault: it holds the index of another mirror.
        """
        self.path = output / wanted.release / wanted.stack
        self._address = write_address(shown(wanted.url))
        self._state = _read_state(self.path)
        self._kept: set[str] = set()
        self._require_same_mirror(wanted)
        self._state.manifest = shown(wanted.manifest) if wanted.manifest else None

    def file(self, name: str) -> Path:
        """Return the path of a file by its name in this folder."""
        return self.path / name

    def part(self, name: str) -> Path:
        """Return the path under which a file is written."""
        path = self.path / name
        return path.with_name(f".{path.name}.part")

    def unchanged(self, name: str, url: str) -> FetchedFile | None:
        """Return what is known of a file, if it was fetched from `url` and nobody changed it."""
        known = self._state.files.get(name)
        if known is None or known.url != shown(url):
            return None
        return known if _sum_and_size(self.file(name)) == (known.sha256, known.size) else None

    def started(self, name: str, url: str) -> PartialFile | None:
        """Return what is known of the part of a file that an earlier try left."""
        known = self._state.parts.get(name)
        return known if known is not None and known.url == shown(url) else None

    def start(self, name: str, part: PartialFile) -> None:
        """Begin a part: an empty file, and what is known of it."""
        path = self.part(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # First the file: what is known of the new part must never meet the bytes of an old one.
        path.write_bytes(b"")
        self._state.parts[name] = part
        self._save()

    def drop(self, name: str) -> None:
        """Remove a part."""
        self._state.parts.pop(name, None)
        self.part(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the names of the files that were fetched, sorted."""
        return sorted(self._state.files)

    def keep(self, name: str) -> None:
        """Say that a file belongs to the mirror as it is today."""
        self._kept.add(name)

    def settle(self, name: str, path: Path, file: FetchedFile) -> None:
        """Give a part that is whole its name."""
        address = self.path / ADDRESS_FILE
        if not address.is_file() or address.read_bytes() != self._address:
            _write(address, self._address)
        self._state.files[name] = file
        self._state.parts.pop(name, None)
        self._save()
        _rename(path, self.file(name))
        self.keep(name)

    def write(self, name: str, data: bytes, url: str, tags: Tags) -> None:
        """Settle a small file from its bytes."""
        file = FetchedFile(shown(url), len(data), hashlib.sha256(data).hexdigest(), tags)
        if self.unchanged(name, url) == file:
            self.keep(name)
            return
        part = self.part(name)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        self.settle(name, part, file)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.file(name).unlink(missing_ok=True)
        self._state.files.pop(name, None)

    def finish(self) -> None:
        """Remove what was fetched once and belongs to the mirror no longer, and all parts."""
        for part in [*_parts(self.path)]:
            part.unlink()
        self._state.parts.clear()
        for name in self._state.files.keys() - self._kept:
            self.remove(name)
            _remove_empty(self.file(name).parent, self.path)
        self._save()

    def _save(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self._state, order="sorted"), indent=1)
        path = self.path / STATE_FILE
        if not path.is_file() or path.read_bytes() != data:
            _write(path, data)

    def _require_same_mirror(self, wanted: Wanted) -> None:
        path = self.path / ADDRESS_FILE
        manifest = self._state.manifest
        if not path.is_file() or (wanted.manifest and manifest == shown(wanted.manifest)):
            return
        try:
            url = read_address(path.read_bytes())
        except IndexFault as error:
            raise FetchFault(str(path), str(error)) from None
        if url != shown(wanted.url):
            advice = "name another with --release or --stack, or remove it"
            raise FetchFault(wanted.url, f"{self.path} has the index of {url}: {advice}")


def stacks_of(output: Path, manifest: str) -> Iterator[Path]:
    """Yield the folders of the stacks that were fetched because a manifest of releases named them.

    Folders come sorted; `manifest` is its URL.
    """
    for path in sorted(output.glob(f"[!.]*/[!.]*/{STATE_FILE}")):
        if _read_state(path.parent).manifest == shown(manifest):
            yield path.parent


def remove_stack(folder: Path) -> None:
    """Remove a stack, whole or not at all for whoever reads the folder meanwhile."""
    hidden = folder.with_name(f".{folder.name}.removed")
    folder.rename(hidden)
    shutil.rmtree(hidden)
    _remove_empty(folder.parent, folder.parent.parent)


def remove_litter(output: Path) -> None:
    """Remove what is left of stacks whose removal was cut short."""
    for hidden in output.glob("[!.]*/.*.removed"):
        shutil.rmtree(hidden)


def sum_of(path: Path) -> str:
    """Return the sha256 of a file, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sum_and_size(path: Path) -> tuple[str, int] | None:
    try:
        return sum_of(path), path.stat().st_size
    except OSError:
        return None


def _read_state(folder: Path) -> _State:
    """Return what is known of a folder: nothing if that cannot be read, so that all comes anew."""
    try:
        return _STATE.decode((folder / STATE_FILE).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeError):
        return _State()


def _parts(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob(".*.part") if path.is_file())


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name.lstrip('.')}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(data)
    _rename(part, path)


def _rename(part: Path, path: Path) -> None:
    """Give a file its name once it is on disk, and see that the name is on disk as well."""
    _force_to_disk(part)
    part.replace(path)
    _force_to_disk(path.parent)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, below `top`, as far as they are empty."""
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_INDEX = msgspec.json.Decoder(Index)


@dataclass(frozen=True, slots=True)
class Download:
    """A file to fetch.

    Args:
        folder: where it goes.
        name: its path in there.
        url: where it comes from.
        sha256: the sum that it must have. Without one it must be an index that is whole.
    """

    folder: StackFolder
    name: str
    url: str
    sha256: str | None = None

    async def run(self, web: Web, headers: Headers = NO_HEADERS) -> bool:
        """Fetch the file; return whether it is another than before.

        Raises:
            MismatchFault: it is not what it must be.
            FetchFault: there is none, or none that can be read.
        """
        known = await asyncio.to_thread(self.folder.unchanged, self.name, self.url)
        if known is not None and known.sha256 == self.sha256:
            self.folder.keep(self.name)
            return False
        unless = known.tags.conditions() if known is not None and self.sha256 is None else {}
        sha256 = await web.persist(self.url, lambda: self._attempt(web, headers, unless))
        return known is None or sha256 not in (None, known.sha256)

    async def _attempt(self, web: Web, headers: Headers, unless: Headers) -> str | None:
        """Fetch the file, or the rest of it; return its sum, None if it is as before."""
        rest = self._rest()
        async with web.opened(self.url, {**headers, **(rest or unless)}) as response:
            if response.status_code == 304 and unless and not rest:
                self.folder.keep(self.name)
                return None
            resumed = self._begin(response, rest)
            await self._receive(web, response)
        encoding = encoding_of(self.url, response)
        return await asyncio.to_thread(self._settle, resumed, encoding, web.limits.max_size)

    def _rest(self) -> Headers:
        """Return the headers that ask for the rest of what an earlier try left; none without.

        Only a strong tag or the sum of the whole proves that a rest belongs to its beginning (RFC
        9110 section 13.1.5).
        """
        part, path = self.folder.started(self.name, self.url), self.folder.part(self.name)
        if part is None or not path.is_file() or not (size := path.stat().st_size):
            return NO_HEADERS
        ranges = {"Range": f"bytes={size}-"}
        if part.tags.etag and not part.tags.etag.startswith("W/"):
            return {**ranges, "If-Range": part.tags.etag}
        return ranges if self.sha256 else NO_HEADERS

    def _begin(self, response: httpx.Response, rest: Headers) -> bool:
        """Make the part ready for what is sent; return whether that is a rest."""
        encoding = encoding_of(self.url, response)
        part = self.folder.started(self.name, self.url)
        if response.status_code == 200:
            self.folder.start(self.name, PartialFile(shown(self.url), tags_of(response), encoding))
            return False
        if response.status_code == 206 and rest and part is not None and part.encoding == encoding:
            sent = _RANGE.match(response.headers.get("Content-Range", ""))
            if sent and rest["Range"] == f"bytes={sent[1]}-":
                return True
        self.folder.drop(self.name)
        raise Passing(f"answers {response.status_code}, which was not asked for")

    async def _receive(self, web: Web, response: httpx.Response) -> None:
        path, limit = self.folder.part(self.name), web.limits.max_size
        size = path.stat().st_size
        try:
            require_size(self.url, size + (length_of(response) or 0), limit)
            with path.open("ab") as stream:
                async for data in web.body(response):
                    size += len(data)
                    require_size(self.url, size, limit)
                    stream.write(data)
        except FetchFault:
            self.folder.drop(self.name)
            raise

    def _settle(self, resumed: bool, encoding: str, limit: int) -> str:
        """Give the file its name if it is what it must be; return its sum."""
        raw, plain = self.folder.part(self.name), self.folder.part(f"{self.name}.decoded")
        try:
            if encoding:
                self._decode(raw, plain, encoding, limit)
            path = plain if encoding else raw
            sha256 = sum_of(path)
            self._require(path, sha256)
        except (FetchFault, Passing) as fault:
            plain.unlink(missing_ok=True)
            self.folder.drop(self.name)
            if resumed:
                raise Passing(f"{fault} (after it was resumed)") from None
            raise
        part = self.folder.started(self.name, self.url)
        tags = part.tags if part is not None else Tags()
        file = FetchedFile(shown(self.url), path.stat().st_size, sha256, tags)
        self.folder.settle(self.name, path, file)
        raw.unlink(missing_ok=True)
        return sha256

    def _decode(self, raw: Path, plain: Path, encoding: str, limit: int) -> None:
        try:
            with raw.open("rb") as body, plain.open("wb") as stream:
                for data in decoded(body, encoding, limit):
                    stream.write(data)
        except TooLong:
            raise too_large(self.url, limit) from None
        except BrokenEncoding as error:
            raise Passing(str(error)) from None

    def _require(self, path: Path, sha256: str) -> None:
        if self.sha256 is None:
            _require_index(self.url, path)
        elif sha256 != self.sha256:
            words = f"has the checksum {sha256}, expected {self.sha256} as the mirror says"
            raise MismatchFault(self.url, words)


def _require_index(url: str, path: Path) -> None:
    """Raise `MismatchFault` unless a file is a whole index: no sum says that of it."""
    try:
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            _INDEX.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise MismatchFault(url, f"is no whole index: {said(error)}") from None
