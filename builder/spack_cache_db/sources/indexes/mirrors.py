"""Opens the indexes of mirrors and installations; each is one document.

Layout 3 (Spack 1.0 `url_buildcache.py`) has manifests that name blobs, layout 2
(`build_cache/`) plain files. An installation has the same index below `.spack-db/`. A
mirror without an index is read from its spec files.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.errors import Fault, InputError, LineFault, counted, faults_of
from spack_cache_db.model import FILTERED, Problem
from spack_cache_db.sources.bounds import MAX_INDEX, require_name, require_text
from spack_cache_db.sources.facts import SPEC_FILE, Document, IndexFacts, Tarball
from spack_cache_db.sources.files import ADDRESS_FILE, SIZES_FILE, File, Place, RawFile
from spack_cache_db.sources.indexes.addresses import (
    MAX_ADDRESS,
    read_address,
    read_sizes,
    settings_of,
)
from spack_cache_db.sources.indexes.entries import Entry
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.filters import BinaryFilter, parse_filter
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.sources.indexes.manifests import (
    GZIP,
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_MANIFEST,
    SPEC,
    TARBALL,
    ZSTD,
    Manifest,
    decompressed,
    is_clear_signed,
    read_manifest,
)
from spack_cache_db.sources.indexes.rows import BinaryPlace, IndexRecords, OpenIndex
from spack_cache_db.sources.indexes.spec_files import (
    MAX_SPEC_FILE,
    SpecFileRecords,
    read_spec_file,
)

_INDEX_MANIFEST = "index.manifest.json"
_PLAIN = (LAYOUT_2_INDEX, ".spack-db/index.json", "index.json")
"""Paths of an index in a folder without layout 3: mirror, installation, or single
index.
"""

_SPEC_MANIFEST = ".spec.manifest.json"
_SPEC_SUFFIXES = (".spec.json", ".spec.json.sig", ".spec.yaml")

MOST_SIGNATURES = 1000
"""Number of spec manifests of a mirror that are searched for a signature."""


def is_spacks(data: bytes) -> bool:
    """Return whether bytes start like an index or a spec file, compressed, signed or
    plain.
    """
    starts = (b"{", b"-----BEGIN PGP SIGNED MESSAGE", b"spec:", GZIP, ZSTD)
    return data[:64].lstrip().startswith(starts)


def open_file(file: RawFile, place: Place) -> OpenIndex:
    """Open an index or a spec file outside a mirror; `InputError` if it cannot be
    read.
    """
    with _faults_of(file.location):
        data = decompressed(file.data, MAX_INDEX)
        opened = File(file.location, file.path), hashlib.sha256(data).hexdigest(), place
        if b'"database"' in data[:256]:
            require_text(data)
            return _opened(*opened, file.path, Installs(data), file.location)
        # `_cache/<release>/<package>/spec-N.json`, as in the folders of pages.
        version, entries = read_spec_file(data)
        folders = file.path.split("/")[:-1]
        records = SpecFileRecords([entries], f"{SPEC_FILE}{version}")
        return _opened(*opened, "/".join([*folders[-2:-1], "spec.json"]), records, None)


def open_mirror(mirror: File, place: Place) -> Iterator[OpenIndex | Fault]:
    """Yield the indexes of a mirror, or one made from its spec files, and the faults of
    others.

    If the address cannot be read, binaries have no URL. `InputError` if it cannot be
    listed.
    """
    with _faults_of(mirror.location):
        mirror_folder = _Mirror(mirror, place)
        paths = mirror_folder.index_paths()
    yield from mirror_folder.faults
    for path in paths or [mirror_folder.folder]:
        try:
            with _faults_of(str(path) if paths else mirror.location):
                index = (
                    mirror_folder.index(path) if paths else mirror_folder.spec_files()
                )
        except InputError as error:
            yield from error.faults
        else:
            yield index


def files_without_index(folder: Path) -> list[str]:
    """Return the names of the files that `build` reads from a folder without a mirror's
    index.

    They are the index of an installation, a single index, or spec files. `InputError`
    if a manifest cannot be read.
    """
    mirror = _Mirror(File(str(folder), "", "mirror"), Place())
    if paths := mirror.index_paths():
        names = [path.relative_to(folder).as_posix() for path in paths]
        return [name for name in names if name in _PLAIN[1:]]
    _, paths = mirror.spec_paths()
    names = [path.relative_to(folder).as_posix() for path in paths]
    for path in paths:
        if path.name.endswith(_SPEC_MANIFEST):
            with _faults_of(str(path)):
                blob = read_manifest(read_file(path, MAX_MANIFEST)).blob(SPEC)
            names += [blob.path.as_posix()] if blob else []
    return names


def files_to_read(folder: Path) -> list[Path]:
    """Return the files of a mirror that determine its content; manifests stand for
    their blobs.
    """
    mirror = _Mirror(File(str(folder), "", "mirror"), Place())
    paths = mirror.index_paths()
    sums = (path.with_name(f"{path.name}.hash") for path in paths)
    beside = [folder / ADDRESS_FILE, folder / SIZES_FILE, *sums]
    specs = sorted(mirror.spec_manifests.values()) if paths else mirror.spec_paths()[1]
    return [*paths, *specs, *filter(Path.is_file, beside)]


def first_entries(folder: Path, count: int) -> list[Entry]:
    """Return the records of the first binaries of a mirror's indexes, sorted by
    hash.
    """
    entries: list[Entry] = []
    for opened in _opened_indexes(folder):
        for dag_hash in sorted(opened.records):
            if len(entries) == count:
                return entries
            with suppress(IndexFault):
                entry = opened.records.entry(dag_hash)
                if entry.is_binary:
                    entries.append(entry)
    return entries


def agreed(signatures: Iterable[bool]) -> bool | None:
    """Return whether all binaries of a mirror are signed; None if they differ or none
    is known.
    """
    distinct = set(signatures)
    return distinct.pop() if len(distinct) == 1 else None


Binary = tuple[str, str, str]
"""The package, the version and the hash of a binary."""


def listed_binaries(folder: Path) -> list[Binary]:
    """Return the binaries that the indexes of a mirror list; `build` reports faulty
    records.
    """
    binaries: set[Binary] = set()
    for opened in _opened_indexes(folder):
        for dag_hash in opened.records:
            with suppress(IndexFault):
                entry = opened.records.entry(dag_hash)
                if opened.binary_of(entry) is not None:
                    binaries.add((entry.node.name, entry.node.version, dag_hash))
    return sorted(binaries)


def binaries_left_out(folder: Path) -> list[str]:
    """Return a line for each index of a mirror whose filters leave out binaries."""
    return [
        f"{opened.document.location}: {problem.message}"
        for opened in _opened_indexes(folder)
        for problem in opened.document.problems
        if problem.code == FILTERED
    ]


def _opened_indexes(folder: Path) -> Iterator[OpenIndex]:
    indexes = open_mirror(File(str(folder), "", "mirror"), Place())
    return (index for index in indexes if not isinstance(index, Fault))


@contextmanager
def _faults_of(location: str) -> Iterator[None]:
    """Turn the errors of a file or a folder into `InputError`."""
    with faults_of(location):
        try:
            yield
        except OSError as error:
            raise InputError(
                [Fault(error.filename or location, 0, unreadable(error))]
            ) from None


class _Mirror:
    """The folder of a mirror: its indexes or spec files, and its binaries.

    `url` is the mirror's address, None if unknown; `settings` are the properties that
    its users need, as JSON; `faults` are the faults of the address file.
    """

    def __init__(self, mirror: File, place: Place) -> None:
        self.folder = folder = Path(mirror.location)
        self.url: str | None = None
        self.settings: str | None = None
        self._signed: bool | None = None
        self.faults: tuple[Fault, ...] = ()
        self.filter = BinaryFilter()
        self._sizes: dict[str, int] = {}
        try:
            with _faults_of(mirror.location):
                # A broken link exists, and opening it reports the error.
                if os.path.lexists(folder / ADDRESS_FILE):
                    address = read_address(
                        read_file(folder / ADDRESS_FILE, MAX_ADDRESS)
                    )
                    filters = address.include_binary, address.exclude_binary
                    self.filter = BinaryFilter(*map(parse_filter, filters))
                    self.url = address.url
                    self.settings = settings_of(address)
                    self._signed = address.signed
                if os.path.lexists(folder / SIZES_FILE):
                    self._sizes = read_sizes(read_file(folder / SIZES_FILE, MAX_INDEX))
        except InputError as error:
            self.faults = error.faults
        self._base = self.url.rstrip("/") if self.url else None
        self._mirror = mirror
        self._place = place
        # The folders of the mirror give its release and stack.
        self._place_path = f"{mirror.path}/index.json".lstrip("/")
        # The last part of a manifest's name is the hash.
        self.spec_manifests = {
            path.name.removesuffix(_SPEC_MANIFEST).rpartition("-")[2]: path
            for path in folder.glob(f"v3/manifests/spec/*/*{_SPEC_MANIFEST}")
        }
        is_layout_2 = not self.spec_manifests and not (folder / "v3").is_dir()
        self._prefix = (
            Tarball(self._base, is_whole=False) if self._base and is_layout_2 else None
        )

    def binary(self, dag_hash: str, unknown: Counter[str]) -> BinaryPlace:
        """Return size and URL of a spec's binary; `IndexFault` if its manifest cannot
        be read.
        """
        path = self.spec_manifests.get(dag_hash)
        if path is None:
            size = self._sizes.get(dag_hash)
            return BinaryPlace(None if size is None else str(size), self._prefix)
        try:
            manifest = read_manifest(read_file(path, MAX_MANIFEST))
        except (IndexFault, OSError) as error:
            message = unreadable(error) if isinstance(error, OSError) else error
            raise IndexFault(f"{path.relative_to(self.folder)}: {message}") from None
        unknown.update(manifest.unknown)
        blob = manifest.blob(TARBALL)
        if blob is None:
            return BinaryPlace()
        tarball = (
            Tarball(f"{self._base}/{blob.path}", is_whole=True) if self._base else None
        )
        return BinaryPlace(str(blob.content_length), tarball)

    @cached_property
    def is_signed(self) -> bool | None:
        """Whether the binaries are signed; None if they differ or nothing shows it.

        `signed` in the address file decides, then the spec files or their manifests,
        then public keys. Spack does not sign images of registries (Spack 1.2
        `cmd/buildcache.py`). The file `layout.json` is the same with and without
        signatures.
        """
        if self._signed is not None:
            return self._signed
        if self.url is not None and self.url.startswith("oci:"):
            return False
        signatures = self._signatures_3() or self._signatures_2()
        if signatures:
            return agreed(signatures)
        return True if self._has_keys() else None

    def _signatures_3(self) -> list[bool]:
        """Return whether the first spec manifests of layout 3, by hash, are
        clear-signed.
        """
        signatures = []
        for _, path in sorted(self.spec_manifests.items())[:MOST_SIGNATURES]:
            # Opening the binary reports a manifest that cannot be read.
            with suppress(OSError, InputError, LineFault):
                signatures.append(is_clear_signed(read_file(path, MAX_MANIFEST)))
        return signatures

    def _signatures_2(self) -> list[bool]:
        """Return whether each spec file of layout 2 is signed: the signed one is a
        `.sig` file.
        """
        names = {
            path.name for path in (self.folder / "build_cache").glob("*.spec.json*")
        }
        signed = {name.removesuffix(".sig") for name in names if name.endswith(".sig")}
        plain = {name for name in names if name.endswith(".spec.json")}
        return [name in signed for name in signed | plain]

    def _has_keys(self) -> bool:
        """Return whether the folder has a public key of layout 3 or 2."""
        patterns = ("v3/manifests/key/*.key.manifest.json", "build_cache/_pgp/*.pub")
        return any(next(self.folder.glob(pattern), None) for pattern in patterns)

    def index_paths(self) -> list[Path]:
        """Return the manifests of its indexes and views, or its plain indexes; sorted.

        A view may be at any depth, because its name may contain slashes.
        """
        manifests = self.folder / MANIFESTS
        if not manifests.is_dir():
            return [
                path for name in _PLAIN if os.path.lexists(path := self.folder / name)
            ]
        paths, visited = list[Path](), set[str]()
        for folder, folders, files in os.walk(
            manifests, onerror=_raise, followlinks=True
        ):
            real = os.path.realpath(folder)
            if real in visited:
                folders.clear()
            elif _INDEX_MANIFEST in (*files, *folders):
                paths.append(Path(folder, _INDEX_MANIFEST))
            visited.add(real)
        return sorted(paths)

    def spec_paths(self) -> tuple[str, list[Path]]:
        """Return the layout of a mirror without an index, and its spec files or their
        manifests.
        """
        if (self.folder / "v3" / "manifests" / "spec").is_dir():
            return "3", sorted(self.spec_manifests.values())
        below = sorted((self.folder / "build_cache").rglob("*"))
        return "2", [path for path in below if path.name.endswith(_SPEC_SUFFIXES)]

    def index(self, path: Path) -> OpenIndex:
        """Open an index from the path of its manifest, or from its own path."""
        view, unknown = None, frozenset[str]()
        if path.name == _INDEX_MANIFEST:
            manifest = read_manifest(read_file(path, MAX_MANIFEST))
            data, unknown = self._blob(manifest, INDEX), manifest.unknown
            below = path.parent.relative_to(self.folder / MANIFESTS).as_posix()
            view = None if below == "." else below
        else:
            data = read_file(path, MAX_INDEX)
            _require_sum(path, data)
        below = path.relative_to(self.folder).as_posix()
        file = File(str(path), f"{self._mirror.path}/{below}".lstrip("/"))
        data = decompressed(data, MAX_INDEX)
        require_text(data)
        opened = file, hashlib.sha256(data).hexdigest(), self._place, self._place_path
        index = _opened(*opened, Installs(data), str(self.folder), view, self)
        index.unknown.update(unknown)
        return index

    def spec_files(self) -> OpenIndex:
        """Open a mirror that has no index, from its spec files."""
        digest, files = hashlib.sha256(), []
        layout, paths = self.spec_paths()
        for path in paths:
            with _faults_of(str(path)):
                if path.name.endswith(_SPEC_MANIFEST):
                    data = self._blob(
                        read_manifest(read_file(path, MAX_MANIFEST)), SPEC
                    )
                else:
                    data = read_file(path, MAX_SPEC_FILE)
                files.append(read_spec_file(data)[1])
            digest.update(hashlib.sha256(data).digest())
        if not files:
            raise IndexFault(
                "the mirror has neither an index nor a spec file, expected one"
            )
        location, path_in_input, *_ = self._mirror
        opened = File(location, path_in_input or "."), digest.hexdigest(), self._place
        records = SpecFileRecords(files, f"spec files, layout {layout}")
        return _opened(*opened, self._place_path, records, location, mirror=self)

    def _blob(self, manifest: Manifest, media_type: str) -> bytes:
        """Return the bytes of the blob that a manifest names; `IndexFault` if it does
        not match.
        """
        blob = manifest.blob(media_type)
        if blob is None:
            kind = "index" if media_type == INDEX else "spec file"
            raise IndexFault(f"names no {kind}, expected one")
        data = read_file(self.folder / blob.path, MAX_INDEX)
        try:
            blob.require(data)
        except IndexFault as fault:
            raise IndexFault(f"{blob.path}: {fault}") from None
        return data


def _raise(error: OSError) -> None:
    raise error


def _require_sum(path: Path, data: bytes) -> None:
    """Raise `IndexFault` unless an index has the checksum in the file beside it (layout
    2).
    """
    beside = path.with_name(f"{path.name}.hash")
    if os.path.lexists(beside):
        recorded = read_file(beside, 1024).decode("ascii", "replace").strip()
        checksum = hashlib.sha256(data).hexdigest()
        if checksum != recorded:
            expected = f"expected {recorded[:80]!r} as in {beside.name}"
            raise IndexFault(f"has the checksum {checksum}, {expected}")


def _opened(
    file: File,
    sha256: str,
    place: Place,
    path: str,
    records: IndexRecords,
    whole: str | None,
    view: str | None = None,
    mirror: _Mirror | None = None,
) -> OpenIndex:
    """Return an index without the binaries that filters exclude; `IndexFault` for a
    wrong name.

    The folders of `path` give the names of release and stack; `whole` as in
    `IndexFacts`.
    """
    is_installed = records.is_installed
    release, stack = place.of_tree(file) if is_installed else place.of(path, view)
    try:
        require_name("release", release)
        require_name("stack", stack)
    except ValueError as error:
        raise IndexFault(str(error)) from None
    url, is_named = (
        mirror.url if mirror else None,
        is_installed and place.release is not None,
    )
    facts = IndexFacts(
        stack,
        records.format,
        url,
        whole,
        is_installed,
        is_named,
        is_signed=mirror.is_signed if mirror and not is_installed else None,
        settings=mirror.settings if mirror else None,
    )
    document = Document(file.location, file.path, sha256, release, index_facts=facts)
    unknown = Counter[str]()
    left_out = mirror.filter.left_out(records) if mirror else frozenset()
    if left_out:
        count = counted(len(left_out), "binary", "binaries")
        message = (
            f"{count} left out by include_binary or exclude_binary in {ADDRESS_FILE}"
        )
        document = document._replace(problems=(Problem(FILTERED, message),))

    def binary_of(entry: Entry) -> BinaryPlace | None:
        # The system provides the externals of an installation.
        is_listed = entry.is_binary or (
            facts.is_installed and entry.install is not None
        )
        if not is_listed or entry.node.hash in left_out:
            return None
        return mirror.binary(entry.node.hash, unknown) if mirror else BinaryPlace()

    return OpenIndex(document, records, binary_of, unknown)
