"""Files and mirrors of Spack's own kinds → columns; each index is one document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from mmap import mmap
from pathlib import Path

import msgspec
from msgspec import UNSET

from spack_cache_db.errors import Fault, InputError, reason
from spack_cache_db.sources.columns import Document, IndexFacts, Writer
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.indexes import mirrors
from spack_cache_db.sources.indexes.compression import decompressed
from spack_cache_db.sources.indexes.database import Entry, Installs
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.reader import IndexReader, Listed
from spack_cache_db.sources.indexes.records import Record
from spack_cache_db.sources.indexes.spec_files import SpecFile, read_spec_file
from spack_cache_db.sources.places import Place
from spack_cache_db.sources.units import Mirror

MAX_INDEX = 4 * 2**30
"""Bytes of an index when it is not compressed; the largest known has two hundred megabytes."""

_NO_RECORD = Record(spec=msgspec.Raw(b"null"))
_BEGINS = (b"{", b"-----BEGIN PGP SIGNED MESSAGE", b"spec:", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def is_spacks(data: bytes | mmap) -> bool:
    """Whether bytes begin as an index or a spec file does, compressed or signed or not."""
    return data[:64].lstrip().startswith(_BEGINS)


class MirrorReader:
    """Reads indexes and spec files, alone or in the folder of a mirror, into columns."""

    def __init__(self, writer: Writer, place: Place) -> None:
        self._reader = IndexReader(writer)
        self._place = place

    def add(self, file: RawFile) -> None:
        """Read an index or a spec file; `InputError` with all its faults if it cannot be kept."""
        try:
            data = decompressed(file.data, MAX_INDEX)
            if b'"database"' in data[:256]:
                self._add_index(file.location, file.path, data)
            else:
                self._add_spec_file(file, data)
        except IndexFault as fault:
            raise InputError([Fault(file.location, 0, str(fault))]) from None

    def add_mirror(self, mirror: Mirror) -> None:
        """Read the folder of a mirror (as `add`)."""
        folder = Path(mirror.location)
        try:
            where = mirrors.Binaries(folder, mirrors.address(folder))
            indexes = [*mirrors.indexes(folder)]
            for index in indexes:
                path = mirrors.path_within(mirror, index.path)
                try:
                    self._add_index(str(index.path), path, index.data, where, index.view)
                except IndexFault as fault:
                    raise InputError([Fault(str(index.path), 0, str(fault))]) from None
            if not indexes:
                self._add_spec_files(mirror, where)
        except IndexFault as fault:
            raise InputError([Fault(mirror.location, 0, str(fault))]) from None
        except OSError as error:
            said = f"{error.filename or mirror.location}: cannot be read: {reason(error)}"
            raise InputError([Fault(mirror.location, 0, said)]) from None

    def _add_index(
        self,
        location: str,
        path: str,
        data: bytes | mmap,
        where: mirrors.Binaries | None = None,
        view: str | None = None,
    ) -> None:
        installs = Installs(data)
        release, stack = self._place.of(path, view)
        facts = IndexFacts(stack, installs.database_version, where.url if where else None)
        sha256 = hashlib.sha256(data).hexdigest()
        document = Document(location, path, sha256, release, (), None, facts)
        self._reader.add(document, installs, _listing_of(where))

    def _add_spec_file(self, file: RawFile, data: bytes | mmap) -> None:
        """Read a spec file that lies by itself: `_cache/<release>/<package>/spec-N.json`."""
        found = read_spec_file(bytes(data), MAX_INDEX)
        folders = file.path.split("/")[:-1]
        release, stack = self._place.of("/".join([*folders[-2:-1], "spec.json"]))
        self._add_nodes(
            Document(file.location, file.path, hashlib.sha256(data).hexdigest(), release),
            [(found, None)], IndexFacts(stack, f"spec file {found.version}", None), None,
        )  # fmt: skip

    def _add_spec_files(self, mirror: Mirror, where: mirrors.Binaries) -> None:
        """Read a mirror that has no index, from its spec files."""
        found, faults, digest = [], [], hashlib.sha256()
        listed = mirrors.spec_files(where.folder)
        for path in listed.paths:
            try:
                data = mirrors.spec_data(where.folder, path)
                digest.update(hashlib.sha256(data).digest())
                found.append((read_spec_file(data, MAX_INDEX), path.name))
            except IndexFault as fault:
                faults.append(Fault(str(path), 0, str(fault)))
        if faults:
            raise InputError(faults)
        if not found:
            raise IndexFault("the mirror has neither an index nor a spec file, expected one")
        release, stack = self._place.of(f"{mirror.path}/index.json".lstrip("/"))
        name = mirror.path or "."
        document = Document(mirror.location, name, digest.hexdigest(), release)
        facts = IndexFacts(stack, f"spec files, layout {listed.layout}", where.url)
        self._add_nodes(document, found, facts, where)

    def _add_nodes(
        self,
        document: Document,
        found: Iterable[tuple[SpecFile, str | None]],
        facts: IndexFacts,
        where: mirrors.Binaries | None,
    ) -> None:
        nodes = _Nodes()
        for file, _ in found:
            for node in reversed(file.nodes):
                is_own = node is file.nodes[0]
                if is_own or node.hash not in nodes:
                    record = msgspec.structs.replace(_NO_RECORD, in_buildcache=is_own)
                    nodes[node.hash] = Entry(record, node, (), file.rest if is_own else None)
        document = document._replace(index_facts=facts)
        self._reader.add(document, nodes, _listing_of(where))


class _Nodes(dict[str, Entry]):
    """The nodes of spec files, by hash (see `Known`)."""

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        return self[dag_hash]

    def version(self, dag_hash: str) -> str:
        """Return the version of a spec; `KeyError` if it has no node."""
        return self[dag_hash].node.version


def _listing_of(where: mirrors.Binaries | None) -> Callable[[Entry], Listed | None]:
    """Return what says of a record where its binary lies, and None of one that has none."""

    def listed(entry: Entry) -> Listed | None:
        if not _is_binary(entry):
            return None
        return where.of(entry.node.hash) if where else Listed()

    return listed


def _is_binary(entry: Entry) -> bool:
    """Whether a record is one of a binary; database 5 and installations do not say it in words."""
    record, node = entry.record, entry.node
    if record.in_buildcache is not UNSET:
        return record.in_buildcache
    return node.external is UNSET and record.installed is not False
