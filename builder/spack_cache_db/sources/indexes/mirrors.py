"""Files and folders of mirrors → indexes that can be read; each index is one document.

Layout 3 (Spack 1.0 `url_buildcache.py`) keeps manifests that name blobs; layout 2 (`build_cache/`)
plain files. An installation has the same index below `.spack-db/`. A mirror without an index is
read from its spec files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from spack_cache_db.errors import Fault, InputError, reason
from spack_cache_db.sources.columns import Document, IndexFacts, Writer
from spack_cache_db.sources.indexes.index_reader import IndexReader, IndexRecords, Listed, Share
from spack_cache_db.sources.indexes.index_records import Entry, Installs
from spack_cache_db.sources.indexes.layouts import (
    INDEX,
    SPEC,
    TARBALL,
    decompressed,
    read_address,
    read_manifest,
)
from spack_cache_db.sources.indexes.spack_json import IndexFault, Record
from spack_cache_db.sources.indexes.spec_files import SpecFile, read_spec_file
from spack_cache_db.sources.tarballs import Tarball
from spack_cache_db.sources.units import ADDRESS_FILE, MirrorFolder, Place, RawFile

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


def address_of(folder: Path) -> str | None:
    """Return the URL of a mirror, if a file beside it says so; `IndexFault` if that is broken."""
    path = folder / ADDRESS_FILE
    return read_address(path.read_bytes()) if path.is_file() else None


def path_within(mirror: MirrorFolder, path: Path) -> str:
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


MAX_INDEX = 4 * 2**30
"""Bytes of an index when it is not compressed; the largest known has two hundred megabytes."""

_NO_RECORD = Record(spec=msgspec.Raw(b"null"))
_BEGINS = (b"{", b"-----BEGIN PGP SIGNED MESSAGE", b"spec:", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def is_spacks(data: bytes | mmap) -> bool:
    """Return whether bytes begin as an index or a spec file does, compressed or signed or not."""
    return data[:64].lstrip().startswith(_BEGINS)


class OpenIndex(NamedTuple):
    """An index that is about to be read: its document, its records, where its binaries lie."""

    document: Document
    records: IndexRecords
    listed: Callable[[Entry], Listed | None]


class MirrorReader:
    """Reads indexes and spec files, alone or in the folder of a mirror, into columns.

    `share` is told how much of an index has been read, if it is set.
    """

    def __init__(self, writer: Writer, place: Place) -> None:
        self._reader = IndexReader(writer)
        self._place = place
        self.share: Share | None = None

    def add(self, file: RawFile) -> None:
        """Read an index or a spec file; `InputError` with all its faults if it cannot be kept."""
        self._reader.add(*open_file(file, self._place), self.share)

    def add_mirror(self, mirror: MirrorFolder) -> None:
        """Read the folder of a mirror (as `add`)."""
        for index in open_mirror(mirror, self._place):
            self._reader.add(*index, self.share)


def open_file(file: RawFile, place: Place) -> OpenIndex:
    """Open an index or a spec file that lies by itself; `InputError` if it cannot be read."""
    try:
        data = decompressed(file.data, MAX_INDEX)
        if b'"database"' in data[:256]:
            return _index(file.location, file.path, data, place.of(file.path))
        return _spec_file(file, data, place)
    except IndexFault as fault:
        raise InputError([Fault(file.location, 0, str(fault))]) from None


def open_mirror(mirror: MirrorFolder, place: Place) -> list[OpenIndex]:
    """Open all indexes of a mirror, or one made of its spec files (as `open_file`)."""
    folder, faults = Path(mirror.location), []
    opened = []
    try:
        where = Binaries(folder, address_of(folder))
        found = [*indexes(folder)]
        for index in found:
            path = path_within(mirror, index.path)
            try:
                data = decompressed(index.data, MAX_INDEX)
                of = place.of(_place_of(mirror), index.view)
                opened.append(_index(str(index.path), path, data, of, where))
            except IndexFault as fault:
                faults.append(Fault(str(index.path), 0, str(fault)))
        if not found:
            opened.append(_spec_files(mirror, where, place))
    except IndexFault as fault:
        faults.append(Fault(mirror.location, 0, str(fault)))
    except OSError as error:
        faults.append(
            Fault(error.filename or mirror.location, 0, f"cannot be read: {reason(error)}")
        )
    if faults:
        raise InputError(faults)
    return opened


def _index(
    location: str,
    path: str,
    data: bytes | mmap,
    of: tuple[str, str],
    where: Binaries | None = None,
) -> OpenIndex:
    """Open an index; `of` are its release and its stack."""
    installs = Installs(data)
    release, stack = of
    url, whole = (where.url, str(where.folder)) if where else (None, location)
    facts = IndexFacts(stack, installs.database_version, url, whole)
    sha256 = hashlib.sha256(data).hexdigest()
    document = Document(location, path, sha256, release, (), None, facts)
    return OpenIndex(document, installs, _listing_of(where))


def _spec_file(file: RawFile, data: bytes | mmap, place: Place) -> OpenIndex:
    """Open a spec file of the pages' folders: `_cache/<release>/<package>/spec-N.json`."""
    found = read_spec_file(bytes(data), MAX_INDEX)
    folders = file.path.split("/")[:-1]
    release, stack = place.of("/".join([*folders[-2:-1], "spec.json"]))
    facts = IndexFacts(stack, f"spec file {found.version}", None, None)
    sha256 = hashlib.sha256(data).hexdigest()
    document = Document(file.location, file.path, sha256, release, (), None, facts)
    return OpenIndex(document, _Nodes([found]), _listing_of(None))


def _spec_files(mirror: MirrorFolder, where: Binaries, place: Place) -> OpenIndex:
    """Open a mirror that has no index, from its spec files."""
    found, faults, digest = [], [], hashlib.sha256()
    listed = spec_files(where.folder)
    for path in listed.paths:
        try:
            data = spec_data(where.folder, path)
            digest.update(hashlib.sha256(data).digest())
            found.append(read_spec_file(data, MAX_INDEX))
        except IndexFault as fault:
            faults.append(Fault(str(path), 0, str(fault)))
    if faults:
        raise InputError(faults)
    if not found:
        raise IndexFault("the mirror has neither an index nor a spec file, expected one")
    release, stack = place.of(_place_of(mirror))
    facts = IndexFacts(stack, f"spec files, layout {listed.layout}", where.url, mirror.location)
    document = Document(
        mirror.location, mirror.path or ".", digest.hexdigest(), release, (), None, facts
    )
    return OpenIndex(document, _Nodes(found), _listing_of(where))


def _place_of(mirror: MirrorFolder) -> str:
    """Return the path of an index that lies in the folder of a mirror itself."""
    return f"{mirror.path}/index.json".lstrip("/")


class _Nodes(dict[str, Entry]):
    """The nodes of spec files, by hash; what a binary says of itself comes first."""

    def __init__(self, files: Iterable[SpecFile]) -> None:
        super().__init__()
        self._texts: dict[str, Raw] = {}
        for file in files:
            for node, text in zip(file.nodes, file.texts, strict=True):
                is_own = node is file.nodes[0]
                if is_own or node.hash not in self:
                    record = msgspec.structs.replace(_NO_RECORD, in_buildcache=is_own)
                    self[node.hash] = Entry(record, node, (), file.rest if is_own else None)
                    self._texts[node.hash] = text

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        return self[dag_hash]

    def entry_without_unknown_keys(self, dag_hash: str) -> Entry:
        """Raise `ValueError`: a spec file with such keys is refused when it is read."""
        raise ValueError(f"{dag_hash} has no key that is not known")

    def version(self, dag_hash: str) -> str:
        """Return the version of a spec; `KeyError` if it has no node."""
        return self[dag_hash].node.version

    def said(self, dag_hash: str) -> dict[str, Any]:
        """Return a node as its spec file says it, and that it is a binary, as plain values."""
        entry = self[dag_hash]
        spec = json.loads(bytes(self._texts[dag_hash]))
        return {"spec": spec, "in_buildcache": entry.record.in_buildcache, **(entry.rest or {})}


def _listing_of(where: Binaries | None) -> Callable[[Entry], Listed | None]:
    """Return what says of a record where its binary lies, and None of one that has none."""

    def listed(entry: Entry) -> Listed | None:
        if not _is_binary(entry):
            return None
        return where.of(entry.node.hash) if where else Listed()

    return listed


def _is_binary(entry: Entry) -> bool:
    """Return whether a record is one of a binary, which database 5 and installations do not say."""
    record, node = entry.record, entry.node
    if record.in_buildcache is not UNSET:
        return record.in_buildcache
    return node.external is UNSET and record.installed is not False
