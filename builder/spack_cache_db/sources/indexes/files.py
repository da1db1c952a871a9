"""Files and mirrors of Spack's own kinds → columns; each index is one document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from spack_cache_db.errors import Fault, InputError, reason
from spack_cache_db.sources.columns import Document, IndexFacts, Writer
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.indexes import mirrors
from spack_cache_db.sources.indexes.compression import decompressed
from spack_cache_db.sources.indexes.database import Entry, Installs
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.reader import IndexReader, Listed, Records, Share
from spack_cache_db.sources.indexes.records import Record
from spack_cache_db.sources.indexes.spec_files import SpecFile, read_spec_file
from spack_cache_db.sources.places import Place
from spack_cache_db.sources.units import Mirror

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
    records: Records
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

    def add_mirror(self, mirror: Mirror) -> None:
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


def open_mirror(mirror: Mirror, place: Place) -> list[OpenIndex]:
    """Open all indexes of a mirror, or one made of its spec files (as `open_file`)."""
    folder, faults = Path(mirror.location), []
    opened = []
    try:
        where = mirrors.Binaries(folder, mirrors.address(folder))
        indexes = [*mirrors.indexes(folder)]
        for index in indexes:
            path = mirrors.path_within(mirror, index.path)
            try:
                data = decompressed(index.data, MAX_INDEX)
                of = place.of(_place_of(mirror), index.view)
                opened.append(_index(str(index.path), path, data, of, where))
            except IndexFault as fault:
                faults.append(Fault(str(index.path), 0, str(fault)))
        if not indexes:
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
    where: mirrors.Binaries | None = None,
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


def _spec_files(mirror: Mirror, where: mirrors.Binaries, place: Place) -> OpenIndex:
    """Open a mirror that has no index, from its spec files."""
    found, faults, digest = [], [], hashlib.sha256()
    listed = mirrors.spec_files(where.folder)
    for path in listed.paths:
        try:
            data = mirrors.spec_data(where.folder, path)
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


def _place_of(mirror: Mirror) -> str:
    """Return the path of an index that lies in the folder of a mirror itself."""
    return f"{mirror.path}/index.json".lstrip("/")


class _Nodes(dict[str, Entry]):
    """The nodes of spec files, by hash (see `Records`); a binary's own file tells of it best."""

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


def _listing_of(where: mirrors.Binaries | None) -> Callable[[Entry], Listed | None]:
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
