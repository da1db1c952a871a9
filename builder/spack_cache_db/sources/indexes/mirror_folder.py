"""The folder of a mirror or an installation: where its indexes, spec files and binaries
are, and what it shows about them.

A mirror is a folder with an index of its binaries. The index is, in

- layout 3, since Spack 1.0 (`url_buildcache.py`), a file that the manifest
  `v3/manifests/index/index.manifest.json` names,
- layout 2, before Spack 1.0, `build_cache/index.json`,
- the folder of an installation, which is read like a mirror, `.spack-db/index.json`.

In layout 3, a view is a part of a mirror with an index of its own, whose manifest is in
`v3/manifests/index/<view>/`. A mirror without an index is read from its spec files, one
for each binary, as if they were an index.
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
from spack_cache_db.sources.facts import Document, IndexFacts, Tarball
from spack_cache_db.sources.files import ADDRESS_FILE, SIZES_FILE, File, Place
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
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_MANIFEST,
    SPEC,
    TARBALL,
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

INDEX_MANIFEST = "index.manifest.json"
"""The name of the manifest of an index or of a view."""

LOCAL_INDEXES = (".spack-db/index.json", "index.json")
"""Paths of an index in the folder of an installation, and in a folder of an index."""

_PLAIN_INDEXES = (LAYOUT_2_INDEX, *LOCAL_INDEXES)
"""Paths of an index in a folder without layout 3."""

SPEC_MANIFEST = ".spec.manifest.json"
"""End of the name of a manifest of layout 3 that names a spec file and a tarball."""

_SPEC_SUFFIXES = (".spec.json", ".spec.json.sig", ".spec.yaml")
"""Ends of the names of spec files of layout 2."""

MOST_SIGNATURES = 1000
"""Number of spec manifests of a mirror that are searched for a signature."""


class MirrorFolder:
    """The folder of a mirror: its indexes or spec files, and its binaries.

    Attributes:
        folder: the folder.
        url: the mirror's address; None if unknown.
        settings: the properties that its users need, as JSON.
        filter: the filters of its binaries.
        faults: the faults of the files with its address and sizes.
        spec_manifests: the manifests of spec files of layout 3, by the hash of the
            spec.
    """

    def __init__(self, mirror: File, place: Place) -> None:
        self._mirror = mirror
        self._place = place
        # The folders of this path give the release and the stack.
        self._place_path = f"{mirror.path}/index.json".lstrip("/")
        self.folder = Path(mirror.location)

        # What the files with the address and the sizes contain.
        self.url: str | None = None
        self.settings: str | None = None
        self.filter = BinaryFilter()
        # The address without a slash at its end.
        self._base: str | None = None
        self._signed: bool | None = None
        self._sizes: dict[str, int] = {}
        self.faults: tuple[Fault, ...] = ()
        try:
            with file_faults_of(mirror.location):
                self._read_address()
        except InputError as error:
            self.faults = error.faults

        # zlib-1.3.1-abcdef….spec.manifest.json: the last part is the hash.
        self.spec_manifests: dict[str, Path] = {}
        for path in self.folder.glob(f"v3/manifests/spec/*/*{SPEC_MANIFEST}"):
            name = path.name.removesuffix(SPEC_MANIFEST)
            dag_hash = name.rpartition("-")[2]
            self.spec_manifests[dag_hash] = path

    def _read_address(self) -> None:
        """Read the files that `fetch` writes beside an index, if they exist.

        A broken link exists, and opening it reports the error.
        """
        path = self.folder / ADDRESS_FILE
        if os.path.lexists(path):
            address = read_address(read_file(path, MAX_ADDRESS))
            include = parse_filter(address.include_binary)
            exclude = parse_filter(address.exclude_binary)
            self.filter = BinaryFilter(include, exclude)
            self.url = address.url
            self._base = address.url.rstrip("/")
            self.settings = settings_of(address)
            self._signed = address.signed
        path = self.folder / SIZES_FILE
        if os.path.lexists(path):
            self._sizes = read_sizes(read_file(path, MAX_INDEX))

    def index_paths(self) -> list[Path]:
        """Return the manifests of its indexes and views, or its plain indexes; sorted.

        A view may be at any depth, because its name may contain slashes.
        """
        manifests = self.folder / MANIFESTS
        if not manifests.is_dir():
            paths = [self.folder / name for name in _PLAIN_INDEXES]
            return [path for path in paths if os.path.lexists(path)]
        paths = []
        visited = set()
        walk = os.walk(manifests, onerror=_raise, followlinks=True)
        for folder, folders, files in walk:
            # Links may lead in a circle. `os.walk` goes on with what is left in
            # `folders`.
            real_path = os.path.realpath(folder)
            if real_path in visited:
                folders.clear()
                continue
            visited.add(real_path)
            # A folder of this name is a fault, which opening it reports.
            if INDEX_MANIFEST in files or INDEX_MANIFEST in folders:
                paths.append(Path(folder, INDEX_MANIFEST))
        return sorted(paths)

    def index(self, path: Path) -> OpenIndex:
        """Open an index from the path of its manifest, or from its own path."""
        view = None
        unknown: frozenset[str] = frozenset()
        if path.name == INDEX_MANIFEST:
            manifest = read_manifest(read_file(path, MAX_MANIFEST))
            data = self._blob(manifest, INDEX)
            unknown = manifest.unknown
            # The folder of a view's manifest is its name.
            view = path.parent.relative_to(self.folder / MANIFESTS).as_posix()
            if view == ".":
                view = None
        else:
            data = read_file(path, MAX_INDEX)
            _require_checksum(path, data)
        data = decompressed(data, MAX_INDEX)
        require_text(data)

        path_in_mirror = path.relative_to(self.folder).as_posix()
        file = File(str(path), f"{self._mirror.path}/{path_in_mirror}".lstrip("/"))
        index = open_index(
            file,
            hashlib.sha256(data).hexdigest(),
            self._place,
            self._place_path,
            Installs(data),
            str(self.folder),
            view,
            self,
        )
        index.unknown.update(unknown)
        return index

    def spec_paths(self) -> list[Path]:
        """Return the spec files of a mirror without an index, or their manifests."""
        if self._has_layout_3_specs():
            return sorted(self.spec_manifests.values())
        below = sorted((self.folder / "build_cache").rglob("*"))
        return [path for path in below if path.name.endswith(_SPEC_SUFFIXES)]

    def _has_layout_3_specs(self) -> bool:
        return (self.folder / "v3" / "manifests" / "spec").is_dir()

    def spec_files(self) -> OpenIndex:
        """Open a mirror that has no index, from its spec files."""
        # The checksum of the index is that of the checksums of its files.
        digest = hashlib.sha256()
        files = []
        for path in self.spec_paths():
            with file_faults_of(str(path)):
                if path.name.endswith(SPEC_MANIFEST):
                    manifest = read_manifest(read_file(path, MAX_MANIFEST))
                    data = self._blob(manifest, SPEC)
                else:
                    data = read_file(path, MAX_SPEC_FILE)
                files.append(read_spec_file(data).entries)
            digest.update(hashlib.sha256(data).digest())
        if not files:
            raise IndexFault(
                "the mirror has neither an index nor a spec file, expected one"
            )

        layout = 3 if self._has_layout_3_specs() else 2
        location = self._mirror.location
        return open_index(
            File(location, self._mirror.path or "."),
            digest.hexdigest(),
            self._place,
            self._place_path,
            SpecFileRecords(files, f"spec files, layout {layout}"),
            location,
            mirror=self,
        )

    def _blob(self, manifest: Manifest, media_type: str) -> bytes:
        """Return the bytes of the blob of a kind that a manifest names.

        Raises:
            IndexFault: the manifest names none, or the bytes are others.
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

    def binary(self, dag_hash: str, unknown: Counter[str]) -> BinaryPlace:
        """Return the size and the URL of a spec's binary.

        Args:
            dag_hash: the hash of the spec.
            unknown: counts the unknown keys of manifests.

        Raises:
            IndexFault: the manifest of the binary cannot be read.
        """
        # Without a manifest, the mirror is of layout 2, or only its index was fetched.
        path = self.spec_manifests.get(dag_hash)
        if path is None:
            size = self._sizes.get(dag_hash)
            return BinaryPlace(
                size=None if size is None else str(size), tarball=self._layout_2_prefix
            )
        try:
            manifest = read_manifest(read_file(path, MAX_MANIFEST))
        except (IndexFault, OSError) as error:
            message = unreadable(error) if isinstance(error, OSError) else error
            raise IndexFault(f"{path.relative_to(self.folder)}: {message}") from None
        unknown.update(manifest.unknown)
        blob = manifest.blob(TARBALL)
        if blob is None:
            return BinaryPlace()
        tarball = None
        if self._base:
            tarball = Tarball(f"{self._base}/{blob.path}", is_whole=True)
        return BinaryPlace(str(blob.content_length), tarball)

    @cached_property
    def _layout_2_prefix(self) -> Tarball | None:
        """The start of the URLs of all binaries, from which the rest follows.

        Only in layout 2: the URL of a binary of layout 3 has its checksum.
        """
        is_layout_3 = bool(self.spec_manifests) or (self.folder / "v3").is_dir()
        if self._base is None or is_layout_3:
            return None
        return Tarball(self._base, is_whole=False)

    @cached_property
    def is_signed(self) -> bool | None:
        """Whether the binaries are signed; None if they differ or nothing shows it.

        `signed` in the address file decides, then the spec files or their manifests,
        then public keys. The file `layout.json` is the same with and without
        signatures.
        """
        if self._signed is not None:
            return self._signed
        # Spack does not sign images of registries (Spack 1.2 `cmd/buildcache.py`).
        if self.url is not None and self.url.startswith("oci:"):
            return False
        signatures = self._signatures_of_layout_3() or self._signatures_of_layout_2()
        if signatures:
            return agreed(signatures)
        return True if self._has_public_key() else None

    def _signatures_of_layout_3(self) -> list[bool]:
        """Return whether each of the first spec manifests of layout 3 is signed."""
        signatures = []
        for dag_hash in sorted(self.spec_manifests)[:MOST_SIGNATURES]:
            path = self.spec_manifests[dag_hash]
            # Opening the binary reports a manifest that cannot be read.
            with suppress(OSError, InputError, LineFault):
                signatures.append(is_clear_signed(read_file(path, MAX_MANIFEST)))
        return signatures

    def _signatures_of_layout_2(self) -> list[bool]:
        """Return whether each spec file of layout 2 is signed.

        A signed one is `zlib-….spec.json.sig`, with or without the plain file beside
        it.
        """
        paths = (self.folder / "build_cache").glob("*.spec.json*")
        signed = set()
        plain = set()
        for path in paths:
            if path.name.endswith(".sig"):
                signed.add(path.name.removesuffix(".sig"))
            elif path.name.endswith(".spec.json"):
                plain.add(path.name)
        return [name in signed for name in signed | plain]

    def _has_public_key(self) -> bool:
        """Return whether the folder has a public key of layout 3 or 2."""
        patterns = ("v3/manifests/key/*.key.manifest.json", "build_cache/_pgp/*.pub")
        return any(any(self.folder.glob(pattern)) for pattern in patterns)


def _raise(error: OSError) -> None:
    """Raise the error of a folder that `os.walk` would skip otherwise."""
    raise error


def checksum_file(path: Path) -> Path:
    """Return the file with the checksum of an index of layout 2, which may not
    exist.
    """
    return path.with_name(f"{path.name}.hash")


def _require_checksum(path: Path, data: bytes) -> None:
    """Raise `IndexFault` if the file beside an index has another checksum."""
    beside = checksum_file(path)
    if not os.path.lexists(beside):
        return
    recorded = read_file(beside, 1024).decode("ascii", "replace").strip()
    checksum = hashlib.sha256(data).hexdigest()
    if checksum != recorded:
        expected = f"expected {recorded[:80]!r} as in {beside.name}"
        raise IndexFault(f"has the checksum {checksum}, {expected}")


def agreed(signatures: Iterable[bool]) -> bool | None:
    """Return whether all binaries of a mirror are signed; None if they differ.

    Args:
        signatures: whether each is signed, for those that are known; None is returned
            if there are none.
    """
    distinct = set(signatures)
    return distinct.pop() if len(distinct) == 1 else None


def open_index(
    file: File,
    sha256: str,
    place: Place,
    place_path: str,
    records: IndexRecords,
    whole: str | None,
    view: str | None = None,
    mirror: MirrorFolder | None = None,
) -> OpenIndex:
    """Return an index without the binaries that filters exclude.

    Args:
        file: the file of the index, or its mirror.
        sha256: the checksum of its content.
        place: the release and stack that the user named.
        place_path: a path whose folders give the release and the stack otherwise.
        records: its records.
        whole: the location of the mirror or index with all binaries of the release and
            stack; None for a single spec file.
        view: the name of the view that it is the index of.
        mirror: the mirror with its binaries; None for a file alone.

    Raises:
        IndexFault: the release or the stack is not a name.
    """
    # The release and the stack.
    is_installed = records.is_installed
    if is_installed:
        release, stack = place.of_installation(file)
    else:
        release, stack = place.of_mirror(place_path, view)
    try:
        require_name("release", release)
        require_name("stack", stack)
    except ValueError as error:
        raise IndexFault(str(error)) from None

    # The index as a document.
    facts = IndexFacts(
        stack,
        records.format,
        mirror.url if mirror else None,
        whole,
        is_installed,
        is_named=is_installed and place.release is not None,
        is_signed=mirror.is_signed if mirror and not is_installed else None,
        settings=mirror.settings if mirror else None,
    )
    document = Document(file.location, file.path, sha256, release, index_facts=facts)

    # The number of binaries that its filters leave out is a problem of it.
    left_out = mirror.filter.left_out(records) if mirror else frozenset()
    if left_out:
        count = counted(len(left_out), "binary", "binaries")
        reason = f"left out by include_binary or exclude_binary in {ADDRESS_FILE}"
        problem = Problem(FILTERED, f"{count} {reason}")
        document = document._replace(problems=(problem,))

    unknown = Counter[str]()

    def binary_of(entry: Entry) -> BinaryPlace | None:
        """Return the binary of a record; None if it has none, or filters exclude it."""
        # An external of an installation counts as installed, though the system provides
        # it, and it has no binary.
        is_external = is_installed and entry.install is not None
        if not entry.is_binary and not is_external:
            return None
        if entry.node.hash in left_out:
            return None
        if mirror is None:
            return BinaryPlace()
        return mirror.binary(entry.node.hash, unknown)

    return OpenIndex(document, records, binary_of, unknown)


def unplaced_mirror(folder: Path) -> MirrorFolder:
    """Return the mirror in a folder, where its release and stack do not matter."""
    return MirrorFolder(File(str(folder), "", "mirror"), Place())


@contextmanager
def file_faults_of(location: str) -> Iterator[None]:
    """Turn the errors of a file or a folder into `InputError`."""
    with faults_of(location):
        try:
            yield
        except OSError as error:
            fault = Fault(error.filename or location, 0, unreadable(error))
            raise InputError([fault]) from None
