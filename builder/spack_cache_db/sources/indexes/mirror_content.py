"""What `fetch` asks of the folder of a mirror: which binaries and which files it has.

The folder is one that it has downloaded, or a mirror on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import read_file
from spack_cache_db.errors import Fault
from spack_cache_db.model import FILTERED
from spack_cache_db.sources.files import File, Place
from spack_cache_db.sources.indexes.entries import Entry
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.manifests import MAX_MANIFEST, SPEC, read_manifest
from spack_cache_db.sources.indexes.mirror_folder import (
    LOCAL_INDEXES,
    SPEC_MANIFEST,
    file_faults_of,
    unplaced_mirror,
)
from spack_cache_db.sources.indexes.mirrors import open_mirror
from spack_cache_db.sources.indexes.rows import OpenIndex


class Binary(NamedTuple):
    """A binary in a list of a mirror."""

    package: str
    version: str
    hash: str


def listed_binaries(folder: Path) -> list[Binary]:
    """Return the binaries that the indexes of a mirror list.

    Records that cannot be read are skipped: `build` reports them.
    """
    binaries: set[Binary] = set()
    for index in _readable_indexes(folder):
        for dag_hash in index.records:
            with suppress(IndexFault):
                entry = index.records.entry(dag_hash)
                if index.binary_of(entry) is not None:
                    binary = Binary(entry.node.name, entry.node.version, dag_hash)
                    binaries.add(binary)
    return sorted(binaries)


def first_entries(folder: Path, count: int) -> list[Entry]:
    """Return the records of the first binaries of a mirror's indexes, by hash."""
    entries: list[Entry] = []
    for index in _readable_indexes(folder):
        for dag_hash in sorted(index.records):
            if len(entries) == count:
                return entries
            with suppress(IndexFault):
                entry = index.records.entry(dag_hash)
                if entry.is_binary:
                    entries.append(entry)
    return entries


def binaries_left_out(folder: Path) -> list[str]:
    """Return a line for each index of a mirror whose filters leave out binaries."""
    lines = []
    for index in _readable_indexes(folder):
        for problem in index.document.problems:
            if problem.code == FILTERED:
                lines.append(f"{index.document.location}: {problem.message}")
    return lines


def _readable_indexes(folder: Path) -> Iterator[OpenIndex]:
    """Yield the indexes of a mirror without those that `build` reports as faults."""
    for index in open_mirror(File(str(folder), "", "mirror"), Place()):
        if not isinstance(index, Fault):
            yield index


def files_without_index(folder: Path) -> list[str]:
    """Return the names of the files that `build` reads from a folder without a mirror's
    index.

    They are the index of an installation, a single index, or spec files.

    Raises:
        InputError: a manifest cannot be read.
    """
    mirror = unplaced_mirror(folder)
    index_paths = mirror.index_paths()
    if index_paths:
        names = [path.relative_to(folder).as_posix() for path in index_paths]
        return [name for name in names if name in LOCAL_INDEXES]

    # Spec files, or their manifests and the blobs that they name.
    spec_paths = mirror.spec_paths()
    names = [path.relative_to(folder).as_posix() for path in spec_paths]
    for path in spec_paths:
        if path.name.endswith(SPEC_MANIFEST):
            with file_faults_of(str(path)):
                blob = read_manifest(read_file(path, MAX_MANIFEST)).blob(SPEC)
            if blob is not None:
                names.append(blob.path.as_posix())
    return names
