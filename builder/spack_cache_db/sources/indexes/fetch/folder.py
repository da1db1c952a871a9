"""The folder of one stack on disk: what was fetched into it, from where, and what is under way.

A file is written under a hidden name that ends in `.part`, forced to disk and only then renamed.
What is known of the files is in a hidden file beside them; `build` passes hidden names over. The
file is written before a rename: whatever a killed run leaves is either a part or known here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from spack_cache_db.sources.indexes.address import read_address, write_address
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.fetch.faults import FetchFault, shown
from spack_cache_db.sources.indexes.fetch.records import FetchedFile, Part, Tags
from spack_cache_db.sources.indexes.fetch.wanted import Wanted
from spack_cache_db.sources.units import ADDRESS_FILE

STATE_FILE = ".fetched.json"


class _State(Struct):
    """What is known of a folder; names are paths within it."""

    manifest: str | None = None
    files: dict[str, FetchedFile] = {}
    parts: dict[str, Part] = {}


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

    def started(self, name: str, url: str) -> Part | None:
        """Return what is known of the part of a file that an earlier try left."""
        known = self._state.parts.get(name)
        return known if known is not None and known.url == shown(url) else None

    def start(self, name: str, part: Part) -> None:
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
