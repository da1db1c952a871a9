"""The folder of a mirror → its indexes, or where it has none its spec files.

Layout 3 (Spack 1.0 `url_buildcache.py`) keeps manifests that name blobs; layout 2 (`build_cache/`)
plain files. An installation has the same index below `.spack-db/`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.errors import reason
from spack_cache_db.sources.indexes.address import read_address
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.manifests import INDEX, SPEC, TARBALL, read_manifest
from spack_cache_db.sources.indexes.reader import Listed
from spack_cache_db.sources.tarballs import Tarball
from spack_cache_db.sources.units import ADDRESS_FILE, Mirror

INDEX_MANIFEST = "index.manifest.json"
SPEC_SUFFIXES = (".spec.json", ".spec.json.sig", ".spec.yaml")


class IndexFile(NamedTuple):
    """An index of a mirror: where it lies below it, its bytes, and the view that it is of."""

    path: Path
    data: bytes | mmap
    view: str | None = None


class SpecFiles(NamedTuple):
    """The spec files of a mirror that has no index, by their paths, and how they lie."""

    paths: list[Path]
    layout: str


def indexes(folder: Path) -> Iterator[IndexFile]:
    """Yield the indexes of a mirror; none if it has only spec files.

    Raises:
        IndexFault: one of them is not what its manifest or its checksum says.
        OSError: one cannot be read.
    """
    manifests = folder / "v3" / "manifests" / "index"
    for path in sorted([*manifests.glob(INDEX_MANIFEST), *manifests.glob(f"*/{INDEX_MANIFEST}")]):
        blob = read_manifest(path.read_bytes()).blob(INDEX)
        if blob is None:
            raise IndexFault(f"{path.relative_to(folder)}: names no index, expected one")
        data = mapped(folder / blob.path)
        _require(f"{blob.path}", blob.require, data)
        view = None if path.parent == manifests else path.parent.name
        yield IndexFile(path, data, view)
    if manifests.is_dir():
        return
    for path in (
        folder / "build_cache" / "index.json",
        folder / ".spack-db" / "index.json",
        folder / "index.json",
    ):
        if path.is_file():
            data = mapped(path)
            _check_sum(path, data)
            yield IndexFile(path, data)


def spec_files(folder: Path) -> SpecFiles:
    """Return the spec files of a mirror without an index, in order; `OSError` if it has none."""
    manifests = folder / "v3" / "manifests" / "spec"
    if manifests.is_dir():
        return SpecFiles(sorted(manifests.glob("*/*.spec.manifest.json")), "3")
    below = folder / "build_cache"
    found = [path for path in sorted(below.rglob("*")) if path.name.endswith(SPEC_SUFFIXES)]
    return SpecFiles(found, "2")


def spec_data(folder: Path, path: Path) -> bytes:
    """Return the bytes of a spec file, which in layout 3 is a blob that a manifest names.

    Raises:
        IndexFault: the blob is not what its manifest says.
        OSError: a file cannot be read.
    """
    data = path.read_bytes()
    if not path.name.endswith(".manifest.json"):
        return data
    manifest = read_manifest(data)
    blob = manifest.blob(SPEC)
    if blob is None:
        raise IndexFault("names no spec file, expected one")
    data = (folder / blob.path).read_bytes()
    _require(f"{blob.path}", blob.require, data)
    return data


def address(folder: Path) -> str | None:
    """Return the URL of a mirror, if a file beside it says so; `IndexFault` if that is broken."""
    path = folder / ADDRESS_FILE
    return read_address(path.read_bytes()) if path.is_file() else None


def path_within(mirror: Mirror, path: Path) -> str:
    """Return the name within the input of a file of a mirror."""
    below = path.relative_to(mirror.location).as_posix()
    return f"{mirror.path}/{below}" if mirror.path else below


class Binaries:
    """Where the binaries of a mirror lie, and how large they are, as far as its files say.

    `url` is the mirror's address, None where nothing says it.
    """

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder = folder
        self.url = url
        manifests = (folder / "v3" / "manifests" / "spec").glob("*/*.spec.manifest.json")
        self._manifests = {_hash_of(path): path for path in manifests}
        self._prefix = Tarball(url.rstrip("/"), is_whole=False) if url else None
        if self._manifests or (folder / "v3").is_dir():
            self._prefix = None

    def of(self, dag_hash: str) -> Listed:
        """Return where the binary of a spec lies; `IndexFault` if its manifest cannot be read."""
        path = self._manifests.get(dag_hash)
        if path is None:
            return Listed(tarball=self._prefix)
        try:
            blob = read_manifest(path.read_bytes()).blob(TARBALL)
        except (IndexFault, OSError) as error:
            what = reason(error) if isinstance(error, OSError) else error
            raise IndexFault(f"{path.relative_to(self.folder)}: {what}") from None
        if blob is None:
            return Listed()
        url = f"{self.url.rstrip('/')}/{blob.path}" if self.url else None
        tarball = Tarball(url, is_whole=True) if url else None
        return Listed(str(blob.length), tarball)


def _hash_of(path: Path) -> str:
    """Return the hash in the name of a spec manifest: its last part."""
    return path.name.removesuffix(".spec.manifest.json").rpartition("-")[2]


def mapped(path: Path) -> bytes | mmap:
    """Return the bytes of a file, which are read when they are looked at."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return mmap(file.fileno(), 0, prot=PROT_READ)


def _check_sum(path: Path, data: bytes | mmap) -> None:
    """Hold an index against the sum that Spack writes beside it in layout 2."""
    beside = path.with_name(f"{path.name}.hash")
    if beside.is_file():
        wanted = beside.read_text(encoding="ascii", errors="replace").strip()
        found = hashlib.sha256(data).hexdigest()
        if found != wanted:
            raise IndexFault(f"has the checksum {found}, {beside.name} says {wanted[:80]!r}")


def _require(name: str, require: object, data: bytes | mmap) -> None:
    try:
        require(data)  # type: ignore[operator]
    except IndexFault as fault:
        raise IndexFault(f"{name}: {fault}") from None
