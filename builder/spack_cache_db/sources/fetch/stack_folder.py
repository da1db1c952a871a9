"""The folder of one stack, and how downloads get into it: resumed and verified.

A file is written under a hidden name that ends in `.part`, forced to disk and only then renamed.
Where each file came from is recorded in a hidden file beside them, which is written before a
rename: whatever a killed run leaves is either a part or recorded. `build` passes hidden names over.
Only names that are written here are ever removed, and nothing that a link leads to.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct

from spack_cache_db.bounded_files import FileFault, put_in_place, read_file, sha256_of
from spack_cache_db.sources import ADDRESS_FILE
from spack_cache_db.sources.fetch.addresses import FetchFault, MirrorRequest, shown
from spack_cache_db.sources.fetch.web import (
    NO_HEADERS,
    Headers,
    MismatchFault,
    PassingTrouble,
    Tags,
    Web,
    encoding_of,
    length_of,
    require_size,
    tags_of,
)
from spack_cache_db.sources.indexes import (
    MAX_ADDRESS,
    Index,
    IndexFault,
    read_address,
    write_address,
)
from spack_cache_db.sources.strictness import BROKEN, decode_once, said

STATE_FILE = ".fetched.json"

_MAX_STATE = 2**26
"""Bytes; a stack has a few files."""

_OWN_NAME = re.compile(
    r"index\.json|build_cache/index\.json(?:\.hash)?"
    r"|v3/manifests/index/(?:[^/.][^/]*/)*index\.manifest\.json"
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


class PartialFile(Struct, frozen=True):
    """A file that is under way: from where, and in which state there.

    The rest of an encoded one cannot be asked for: what is on disk is decoded.
    """

    url: str
    tags: Tags
    is_encoded: bool = False


class _State(Struct):
    """What is recorded of a folder; names are paths within it."""

    manifest: str | None = None
    files: dict[str, FetchedFile] = {}
    parts: dict[str, PartialFile] = {}


_STATE = msgspec.json.Decoder(_State)
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_INDEX = msgspec.json.Decoder(Index)


class StackFolder:
    """The folder of one stack, for one run."""

    def __init__(self, output: Path, request: MirrorRequest) -> None:
        """Read what is recorded of it.

        Raises:
            FetchFault: it holds the index of another mirror.
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

    def part(self, name: str) -> Path:
        """Return the path under which a file is written."""
        return _part_of(self.path / name)

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

    def started(self, name: str, url: str) -> PartialFile | None:
        """Return what is recorded of the part of a file that an earlier try left."""
        known = self._state.parts.get(name)
        return known if known is not None and known.url == shown(url) else None

    def start(self, name: str, part: PartialFile) -> None:
        """Begin a part: an empty file, and its record."""
        # First the file: the record of the new part must never meet the bytes of an old one.
        _write_new(self.part(name), b"")
        self._state.parts[name] = part
        self._save()

    def drop(self, name: str) -> None:
        """Remove a part."""
        self._state.parts.pop(name, None)
        self._unlink(self.part(name))

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
        """Say that a file belongs to the mirror as it is today."""
        self._kept.add(name)

    def settle(self, name: str, file: FetchedFile) -> None:
        """Give a part that is whole its name."""
        self._write_address()
        self._state.files[name] = file
        self._state.parts.pop(name, None)
        self._save()
        put_in_place(self.part(name), self.file(name))
        self.keep(name)

    def write(self, name: str, data: bytes, url: str, tags: Tags) -> None:
        """Settle a small file from its bytes."""
        file = FetchedFile(shown(url), len(data), hashlib.sha256(data).hexdigest(), tags)
        if self.unchanged(name, url) == file:
            self.keep(name)
            return
        _write_new(self.part(name), data)
        self.settle(name, file)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._unlink(self.file(name))
        self._state.files.pop(name, None)

    def finish(self) -> None:
        """Remove what was fetched once and belongs to the mirror no longer, and all parts."""
        for name in self._state.files.keys() - self._kept:
            self.remove(name)
            _remove_empty(self.file(name).parent, self.path)
        for path in [*_files_below(self.path)]:
            if _file_of_part(path, self.path) is not None:
                path.unlink()
        self._state.parts.clear()
        self._write_address()
        self._save()

    def _write_address(self) -> None:
        address = self.path / ADDRESS_FILE
        if self._address is not None and _read(address, MAX_ADDRESS) != self._address:
            _write(address, self._address)

    def _unlink(self, path: Path) -> None:
        """Remove a file, unless a link leads out of this folder to it."""
        way = path.parent.relative_to(self.path)
        if Path(os.path.realpath(path.parent)) == Path(os.path.realpath(self.path), way):
            path.unlink(missing_ok=True)

    def _save(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self._state, order="sorted"), indent=1)
        if _read(self.path / STATE_FILE, _MAX_STATE) != data:
            _write(self.path / STATE_FILE, data)

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
            is_rest = self._begin(response, rest)
            await self._receive(web, response)
        return await asyncio.to_thread(self._settle, is_rest, web.limits.max_size)

    def _rest(self) -> Headers:
        """Return the headers that ask for the rest of what an earlier try left; none without.

        Only a strong tag or the sum of the whole proves that a rest belongs to its beginning (RFC
        9110 section 13.1.5).
        """
        part, path = self.folder.started(self.name, self.url), self.folder.part(self.name)
        if part is None or part.is_encoded or path.is_symlink() or not path.is_file():
            return NO_HEADERS
        size = path.stat().st_size
        ranges = {"Range": f"bytes={size}-"}
        if size and part.tags.etag and not part.tags.etag.startswith("W/"):
            return {**ranges, "If-Range": part.tags.etag}
        return ranges if size and self.sha256 else NO_HEADERS

    def _begin(self, response: httpx.Response, rest: Headers) -> bool:
        """Make the part ready for what is sent; return whether that is a rest."""
        if response.status_code == 200:
            part = PartialFile(shown(self.url), tags_of(response), bool(encoding_of(response)))
            self.folder.start(self.name, part)
            return False
        if response.status_code == 206 and rest and not encoding_of(response):
            sent = _RANGE.match(response.headers.get("Content-Range", ""))
            if sent and rest["Range"] == f"bytes={sent[1]}-":
                return True
        self.folder.drop(self.name)
        raise PassingTrouble(f"answers {response.status_code}, which was not asked for")

    async def _receive(self, web: Web, response: httpx.Response) -> None:
        path, limit = self.folder.part(self.name), web.limits.max_size
        size = path.stat().st_size
        try:
            require_size(self.url, size + (length_of(response) or 0), limit)
            with path.open("ab") as stream:
                async for data in web.body(self.url, response):
                    size += len(data)
                    require_size(self.url, size, limit)
                    stream.write(data)
        except FetchFault:
            self.folder.drop(self.name)
            raise

    def _settle(self, is_rest: bool, limit: int) -> str:
        """Give the file its name if it is what it must be; return its sum."""
        path = self.folder.part(self.name)
        sha256 = sha256_of(path)
        try:
            if self.sha256 is None:
                self._require_index(read_file(path, limit))
            elif sha256 != self.sha256:
                words = f"has the checksum {sha256}, expected {self.sha256} as the mirror says"
                raise MismatchFault(self.url, words)
        except FetchFault as fault:
            self.folder.drop(self.name)
            if is_rest:
                raise PassingTrouble(f"{fault} (after it was resumed)") from None
            raise
        part = self.folder.started(self.name, self.url)
        tags = part.tags if part is not None else Tags()
        file = FetchedFile(shown(self.url), path.stat().st_size, sha256, tags)
        self.folder.settle(self.name, file)
        return sha256

    def _require_index(self, data: bytes) -> None:
        """Raise `MismatchFault` unless data is a whole index: no sum says that of it."""
        try:
            _INDEX.decode(data)
        except BROKEN as error:
            raise MismatchFault(self.url, f"is no whole index: {said(error)}") from None


def stacks_of(output: Path, manifest: str) -> Iterator[Path]:
    """Yield the folders of the stacks that were fetched because a manifest of releases named them.

    Folders come sorted; `manifest` is its URL.
    """
    for path in sorted(output.glob(f"[!.]*/[!.]*/{STATE_FILE}")):
        if _read_state(path.parent).manifest == shown(manifest):
            yield path.parent


def remove_stack(folder: Path) -> None:
    """Remove a stack, whole or not at all for whoever reads the folder meanwhile.

    Raises:
        OSError: it has files that were not fetched, or cannot be removed.
    """
    _require_own(folder)
    hidden = folder.with_name(f".{folder.name}.removed")
    folder.rename(hidden)
    _remove_tree(hidden)
    _remove_empty(folder.parent, folder.parent.parent)


def remove_litter(output: Path) -> None:
    """Remove what is left of stacks whose removal was cut short."""
    for state in output.glob(f"[!.]*/.*.removed/{STATE_FILE}"):
        try:
            _require_own(state.parent)
        except OSError:
            continue
        _remove_tree(state.parent)


def _read(path: Path, limit: int) -> bytes | None:
    """Return the bytes of a file; None if there is none, or something else of that name."""
    try:
        return read_file(path, limit)
    except (FileNotFoundError, FileFault):
        return None


def _read_state(folder: Path) -> _State:
    """Return what is recorded of a folder: nothing if that cannot be read, so that all comes anew.

    Names that are not written here are left out: they are another's.
    """
    try:
        state = decode_once(read_file(folder / STATE_FILE, _MAX_STATE), _STATE)
    except (OSError, *BROKEN):
        return _State()
    for named in (state.files, state.parts):
        for name in [each for each in named if not _OWN_NAME.fullmatch(each)]:
            del named[name]
    return state


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name.lstrip('.')}.part")


def _file_of_part(path: Path, folder: Path) -> str | None:
    """Return the name of the file whose part lies at a path; None if that is none of ours."""
    if not path.name.startswith(".") or not path.name.endswith(".part"):
        return None
    name = path.with_name(path.name[1:-5]).relative_to(folder).as_posix()
    is_own = _OWN_NAME.fullmatch(name) or name in (ADDRESS_FILE, STATE_FILE.lstrip("."))
    return name if is_own else None


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, and links, which are not followed."""
    for root, folders, files in os.walk(folder):
        links = (each for each in folders if Path(root, each).is_symlink())
        yield from (Path(root, each) for each in [*files, *links])


def _require_own(folder: Path) -> None:
    """Raise `OSError` if a folder has files that were not fetched."""
    for path in _files_below(folder):
        name = path.relative_to(folder).as_posix()
        is_own = _OWN_NAME.fullmatch(name) or name in (ADDRESS_FILE, STATE_FILE)
        if path.is_symlink() or not (is_own or _file_of_part(path, folder)):
            words = f"{name} was not fetched: move it elsewhere, or remove the folder yourself"
            raise OSError(errno.ENOTEMPTY, words, str(folder))


def _remove_tree(folder: Path) -> None:
    """Remove a folder, last of all what is recorded of it: only with that it is known again."""
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            if Path(root, name) != folder / STATE_FILE:
                Path(root, name).unlink()
        if Path(root) != folder:
            Path(root).rmdir()
    (folder / STATE_FILE).unlink()
    folder.rmdir()


def _write_new(path: Path, data: bytes) -> None:
    """Write a file under a name that is free, or becomes it: what stands there may be a pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with path.open("xb") as stream:
        stream.write(data)


def _write(path: Path, data: bytes) -> None:
    _write_new(_part_of(path), data)
    put_in_place(_part_of(path), path)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, below `top`, as far as they are empty."""
    while (
        folder != top and folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
    ):
        folder.rmdir()
        folder = folder.parent
