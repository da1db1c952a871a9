"""Opens indexes and spec files for a build: those of mirrors and installations, and
single files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.bounds import MAX_INDEX, require_text
from spack_cache_db.sources.facts import SPEC_FILE
from spack_cache_db.sources.files import ADDRESS_FILE, SIZES_FILE, File, Place, RawFile
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.sources.indexes.manifests import GZIP, ZSTD, decompressed
from spack_cache_db.sources.indexes.mirror_folder import (
    MirrorFolder,
    checksum_file,
    file_faults_of,
    open_index,
    unplaced_mirror,
)
from spack_cache_db.sources.indexes.rows import OpenIndex
from spack_cache_db.sources.indexes.spec_files import SpecFileRecords, read_spec_file


def is_spacks(data: bytes) -> bool:
    """Return whether bytes start like an index or a spec file.

    Either may be plain, compressed or signed.
    """
    starts = (b"{", b"-----BEGIN PGP SIGNED MESSAGE", b"spec:", GZIP, ZSTD)
    return data[:64].lstrip().startswith(starts)


def open_file(file: RawFile, place: Place) -> OpenIndex:
    """Open an index or a spec file that is not in a mirror.

    Args:
        file: the file.
        place: the release and stack that the user named.

    Raises:
        InputError: the file cannot be read.
    """
    with file_faults_of(file.location):
        data = decompressed(file.data, MAX_INDEX)
        sha256 = hashlib.sha256(data).hexdigest()
        plain_file = File(file.location, file.path)
        if b'"database"' in data[:256]:
            require_text(data)
            return open_index(
                plain_file, sha256, place, file.path, Installs(data), file.location
            )
        spec_file = read_spec_file(data)
        form = f"{SPEC_FILE}{spec_file.version}"
        records = SpecFileRecords([spec_file.entries], form)
        # The folder above that of the file is its release, because spec files stand
        # beside pages: `_cache/<release>/<package>/spec-N.json`.
        folders = file.path.split("/")[:-1]
        place_path = "/".join([*folders[-2:-1], "spec.json"])
        return open_index(plain_file, sha256, place, place_path, records, whole=None)


def open_mirror(mirror: File, place: Place) -> Iterator[OpenIndex | Fault]:
    """Yield the indexes of a mirror, and the faults of those that cannot be read.

    A mirror without an index has one that is made from its spec files. If the file with
    the mirror's address cannot be read, that is a fault, and binaries have no URL.

    Args:
        mirror: the folder.
        place: the release and stack that the user named.

    Raises:
        InputError: the folder cannot be listed.
    """
    with file_faults_of(mirror.location):
        mirror_folder = MirrorFolder(mirror, place)
        paths = mirror_folder.index_paths()
    yield from mirror_folder.faults
    for path in paths:
        yield from _index_or_faults(str(path), partial(mirror_folder.index, path))
    if not paths:
        yield from _index_or_faults(mirror.location, mirror_folder.spec_files)


def _index_or_faults(
    location: str, opened: Callable[[], OpenIndex]
) -> Iterator[OpenIndex | Fault]:
    """Yield the index that a function opens, or the faults that it raises."""
    try:
        with file_faults_of(location):
            index = opened()
    except InputError as error:
        yield from error.faults
    else:
        yield index


def files_to_read(folder: Path) -> list[Path]:
    """Return the files of a mirror that determine its content.

    Manifests stand for their blobs, whose checksums they contain.
    """
    mirror = unplaced_mirror(folder)
    index_paths = mirror.index_paths()
    # Beside an index, manifests of layout 3 have the sizes of binaries.
    spec_paths = sorted(mirror.spec_manifests.values())
    if not index_paths:
        spec_paths = mirror.spec_paths()
    beside = [folder / ADDRESS_FILE, folder / SIZES_FILE]
    beside += [checksum_file(path) for path in index_paths]
    return index_paths + spec_paths + [path for path in beside if path.is_file()]
