"""Opens the indexes of mirrors and installations; each is one document.

Layout 3 (Spack 1.0 `url_buildcache.py`) has manifests that name blobs, layout 2 (`build_cache/`)
plain files. An installation has the same index below `.spack-db/`. A mirror without an index is
read from its spec files.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.errors import Fault, InputError, counted, faults_of
from spack_cache_db.records import FILTERED, Problem
from spack_cache_db.sources import (
    ADDRESS_FILE,
    BROKEN,
    MAX_INDEX,
    MAX_NAME,
    SIZES_FILE,
    File,
    Place,
    RawFile,
    Share,
    as_json,
    message_of,
    printable_name,
    require_bounded,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.columns import (
    SPEC_FILE,
    Document,
    IndexFacts,
    NodeFacts,
    Tarball,
    Writer,
)
from spack_cache_db.sources.indexes import (
    GZIP,
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_ADDRESS,
    MAX_MANIFEST,
    SPEC,
    TARBALL,
    ZSTD,
    Entry,
    IndexFault,
    IndexRecords,
    Installs,
    Manifest,
    SpecFileRecords,
    decompressed,
    read_address,
    read_manifest,
    read_sizes,
    read_spec_file,
)
from spack_cache_db.sources.indexes.binary_filter import BinaryFilter, parse_filter
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Node, compiler_of, configuration_of, require_hash

MAX_SPEC_FILE = 2**26
"""Bytes of a spec file; the largest known have a few hundred thousand."""

_INDEX_MANIFEST = "index.manifest.json"
_PLAIN = (LAYOUT_2_INDEX, ".spack-db/index.json", "index.json")
"""Paths of an index in a folder without layout 3: mirror, installation, or single index."""

_SPEC_MANIFEST = ".spec.manifest.json"
_SPEC_SUFFIXES = (".spec.json", ".spec.json.sig", ".spec.yaml")


def is_spacks(data: bytes) -> bool:
    """Return whether bytes start like an index or a spec file, compressed, signed or plain."""
    starts = (b"{", b"-----BEGIN PGP SIGNED MESSAGE", b"spec:", GZIP, ZSTD)
    return data[:64].lstrip().startswith(starts)


class BinaryPlace(NamedTuple):
    """Size (as text) and URL of a binary's tarball, if known."""

    size: str | None = None
    tarball: Tarball | None = None


class OpenIndex(NamedTuple):
    """An opened index: its document, its records, and a function that returns a record's binary.

    `unknown` counts the manifests with each key that is not known.
    """

    document: Document
    records: IndexRecords
    binary_of: Callable[[Entry], BinaryPlace | None]
    unknown: Counter[str]


def open_file(file: RawFile, place: Place) -> OpenIndex:
    """Open an index or a spec file outside a mirror; `InputError` if it cannot be read."""
    with _faults_of(file.location):
        data = decompressed(file.data, MAX_INDEX)
        opened = File(file.location, file.path), hashlib.sha256(data).hexdigest(), place
        if b'"database"' in data[:256]:
            require_text(data)
            return _opened(*opened, file.path, Installs(data), file.location)
        # `_cache/<release>/<package>/spec-N.json`, as in the folders of pages.
        version, entries = read_spec_file(data, MAX_INDEX)
        folders = file.path.split("/")[:-1]
        records = SpecFileRecords([entries], f"{SPEC_FILE}{version}")
        return _opened(*opened, "/".join([*folders[-2:-1], "spec.json"]), records, None)


def open_mirror(mirror: File, place: Place) -> Iterator[OpenIndex | Fault]:
    """Yield the indexes of a mirror, or one made from its spec files, and the faults of others.

    If the address cannot be read, binaries have no URL. `InputError` if it cannot be listed.
    """
    with _faults_of(mirror.location):
        mirror_folder = _Mirror(mirror, place)
        paths = mirror_folder.index_paths()
    yield from mirror_folder.faults
    for path in paths or [mirror_folder.folder]:
        try:
            with _faults_of(str(path) if paths else mirror.location):
                index = mirror_folder.index(path) if paths else mirror_folder.spec_files()
        except InputError as error:
            yield from error.faults
        else:
            yield index


def files_without_index(folder: Path) -> list[str]:
    """Return the names of the files that `build` reads from a folder without a mirror's index.

    They are the index of an installation, a single index, or spec files. `InputError` if a manifest
    cannot be read.
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
    """Return the files of a mirror that determine its content; manifests stand for their blobs."""
    mirror = _Mirror(File(str(folder), "", "mirror"), Place())
    paths = mirror.index_paths()
    sums = (path.with_name(f"{path.name}.hash") for path in paths)
    beside = [folder / ADDRESS_FILE, folder / SIZES_FILE, *sums]
    specs = sorted(mirror.spec_manifests.values()) if paths else mirror.spec_paths()[1]
    return [*paths, *specs, *filter(Path.is_file, beside)]


Binary = tuple[str, str, str]
"""The package, the version and the hash of a binary."""


def listed_binaries(folder: Path) -> list[Binary]:
    """Return the binaries that the indexes of a mirror list; `build` reports faulty records."""
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
            raise InputError([Fault(error.filename or location, 0, unreadable(error))]) from None


class _Mirror:
    """The folder of a mirror: its indexes or spec files, and its binaries.

    `url` is the mirror's address, None if unknown; `faults` are the faults of the address file.
    """

    def __init__(self, mirror: File, place: Place) -> None:
        self.folder = folder = Path(mirror.location)
        self.url: str | None = None
        self.faults: tuple[Fault, ...] = ()
        self.filter = BinaryFilter()
        self._sizes: dict[str, int] = {}
        try:
            with _faults_of(mirror.location):
                # A broken link exists, and opening it reports the error.
                if os.path.lexists(folder / ADDRESS_FILE):
                    address = read_address(read_file(folder / ADDRESS_FILE, MAX_ADDRESS))
                    filters = address.include_binary, address.exclude_binary
                    self.filter = BinaryFilter(*map(parse_filter, filters))
                    self.url = address.url
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
        self._prefix = Tarball(self._base, is_whole=False) if self._base and is_layout_2 else None

    def binary(self, dag_hash: str, unknown: Counter[str]) -> BinaryPlace:
        """Return size and URL of a spec's binary; `IndexFault` if its manifest cannot be read."""
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
        tarball = Tarball(f"{self._base}/{blob.path}", is_whole=True) if self._base else None
        return BinaryPlace(str(blob.content_length), tarball)

    def index_paths(self) -> list[Path]:
        """Return the manifests of its indexes and views, or its plain indexes; sorted.

        A view may be at any depth, because its name may contain slashes.
        """
        manifests = self.folder / MANIFESTS
        if not manifests.is_dir():
            return [path for name in _PLAIN if os.path.lexists(path := self.folder / name)]
        paths, visited = list[Path](), set[str]()
        for folder, folders, files in os.walk(manifests, onerror=_raise, followlinks=True):
            real = os.path.realpath(folder)
            if real in visited:
                folders.clear()
            elif _INDEX_MANIFEST in (*files, *folders):
                paths.append(Path(folder, _INDEX_MANIFEST))
            visited.add(real)
        return sorted(paths)

    def spec_paths(self) -> tuple[str, list[Path]]:
        """Return the layout of a mirror without an index, and its spec files or their manifests."""
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
                    data = self._blob(read_manifest(read_file(path, MAX_MANIFEST)), SPEC)
                else:
                    data = read_file(path, MAX_SPEC_FILE)
                files.append(read_spec_file(data, MAX_SPEC_FILE)[1])
            digest.update(hashlib.sha256(data).digest())
        if not files:
            raise IndexFault("the mirror has neither an index nor a spec file, expected one")
        location, path_in_input, *_ = self._mirror
        opened = File(location, path_in_input or "."), digest.hexdigest(), self._place
        records = SpecFileRecords(files, f"spec files, layout {layout}")
        return _opened(*opened, self._place_path, records, location, mirror=self)

    def _blob(self, manifest: Manifest, media_type: str) -> bytes:
        """Return the bytes of the blob that a manifest names; `IndexFault` if it does not match."""
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
    """Raise `IndexFault` unless an index has the checksum in the file beside it (layout 2)."""
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
    """Return an index without the binaries that filters exclude; `IndexFault` for a wrong name.

    The folders of `path` give the names of release and stack; `whole` as in `IndexFacts`.
    """
    is_installed = records.is_installed
    release, stack = place.of_tree(file) if is_installed else place.of(path, view)
    try:
        require_name("release", release)
        require_name("stack", stack)
    except ValueError as error:
        raise IndexFault(str(error)) from None
    url, is_named = mirror.url if mirror else None, is_installed and place.release is not None
    facts = IndexFacts(stack, records.format, url, whole, is_installed, is_named)
    document = Document(file.location, file.path, sha256, release, index_facts=facts)
    unknown = Counter[str]()
    left_out = mirror.filter.left_out(records) if mirror else frozenset()
    if left_out:
        count = counted(len(left_out), "binary", "binaries")
        message = f"{count} left out by include_binary or exclude_binary in {ADDRESS_FILE}"
        document = document._replace(problems=(Problem(FILTERED, message),))

    def binary_of(entry: Entry) -> BinaryPlace | None:
        # The system provides the externals of an installation.
        is_listed = entry.is_binary or (facts.is_installed and entry.install is not None)
        if not is_listed or entry.node.hash in left_out:
            return None
        return mirror.binary(entry.node.hash, unknown) if mirror else BinaryPlace()

    return OpenIndex(document, records, binary_of, unknown)


def add_indexes(
    writer: Writer, indexes: Iterable[OpenIndex | Fault], share: Share | None = None
) -> None:
    """Add indexes whole or not at all; `InputError` has the given faults and those of indexes.

    `share` is called every few thousand records with the part of an index that has been read.
    """
    faults: list[Fault] = []
    for index in indexes:
        if isinstance(index, Fault):
            faults.append(index)
            continue
        number = writer.add(index.document)
        try:
            _IndexRows(writer, number, index).add(share)
        except IndexFault as fault:
            writer.remove(number)
            faults.append(Fault(index.document.location, 0, fault.message))
    if faults:
        raise InputError(faults)


class _IndexRows:
    """The rows of one index, whose document has a number."""

    def __init__(self, writer: Writer, document: int, index: OpenIndex) -> None:
        self._writer = writer
        self._texts = texts = writer.texts
        self._document = document
        self._index = index
        facts = index.document.index_facts
        self._is_installed = facts is not None and facts.is_installed
        self._stacks = texts.stack_sets[(facts.stack,) if facts else ()]
        self._configurations: dict[object, int] = {}
        # Keys that are not hashes are rejected later, and get no number.
        self._numbers = {
            dag_hash: texts.hashes[dag_hash] for dag_hash in index.records if is_hash(dag_hash)
        }
        self._compilers: dict[str, Node | None] = {}
        self._unrecorded: dict[str, str] = {}

    def add(self, share: Share | None) -> None:
        """Add all records; `IndexFault` for the first that cannot be stored."""
        records, binary_of = self._index.records, self._index.binary_of
        unknown = Counter[str]()
        for count, dag_hash in enumerate(records):
            if share and count and count % 5000 == 0:
                share(count / len(records))
            try:
                entry = records.entry(dag_hash)
                self._add(entry, binary_of(entry))
            except BROKEN as error:
                message = f"{dag_hash}: {message_of(error)}, expected a node of Spack's"
                raise IndexFault(message) from None
            unknown.update(entry.unknown)
        problems = [*self._index.document.problems, *_unknown_keys("record", unknown)]
        problems += _unknown_keys("manifest", self._index.unknown)
        for dag_hash, package in sorted(self._unrecorded.items()):
            self._writer.add_unrecorded(self._document, self._numbers[dag_hash], package)
            message = f"the spec {dag_hash} is needed, and has no record: only its name is known"
            # Another index may use another name, and the database has one name for it.
            value = as_json({"package": package})
            problems.append(Problem("no_record", f"{message}, {package}", dag_hash, value))
        document = self._index.document._replace(problems=tuple(problems))
        self._writer.columns.documents[self._document - 1] = document

    def _add(self, entry: Entry, binary: BinaryPlace | None) -> None:
        node, texts, listing = entry.node, self._texts, None
        parameters = as_json(node.parameters)
        if binary:
            listing = {
                "stacks": self._stacks,
                "size": texts.sizes[binary.size] if binary.size else 0,
                "tarball": texts.tarballs[binary.tarball] if binary.tarball else 0,
            }
        install = entry.install if self._is_installed else None
        self._writer.add_record(
            self._configuration(node, parameters),
            listing,
            {(self._end(edge.name, edge.hash), texts.uses[edge.use]) for edge in node.edges},
            document=self._document,
            spec=self._numbers[node.hash],
            node=self._node(node, parameters),
            install=texts.installs[install] if install else 0,
            build_spec=self._end(*node.build_spec) if node.build_spec else 0,
        )

    def _configuration(self, node: Node, parameters: str) -> int:
        compiler = compiler_of(node, self._provider)
        key = (*node[:2], *node[3:6], compiler, parameters)
        number = self._configurations.get(key)
        if number is None:
            configuration = configuration_of(node, compiler)
            require_bounded(configuration)
            number = self._configurations[key] = self._texts.configurations[configuration]
        return number

    def _node(self, node: Node, parameters: str) -> int:
        external = node.external
        if external is not None:
            external = {key: external[key] for key in ("path", "module") if external.get(key)}
        require_name("namespace", node.namespace or "")
        return self._texts.nodes[
            NodeFacts(
                node.namespace or "",
                node.package_hash,
                parameters,
                None if external is None else as_json(external),
                has_compiler=node.compiler is not None,
            )
        ]

    def _provider(self, dag_hash: str) -> Node | None:
        """Return the node of a compiler; cached, because many records share it."""
        if dag_hash not in self._compilers:
            records = self._index.records
            compiler = records.entry(dag_hash).node if dag_hash in records else None
            self._compilers[dag_hash] = compiler
        return self._compilers[dag_hash]

    def _end(self, name: str, dag_hash: str) -> int:
        """Return the number of a dependency, and remember its name if it has no record."""
        number = self._numbers.get(dag_hash)
        if number is None:
            require_hash(dag_hash)
            require_short("package", name, MAX_NAME)
            self._unrecorded[dag_hash] = name
            number = self._numbers[dag_hash] = self._texts.hashes[dag_hash]
        return number


def _unknown_keys(kind: str, counts: Counter[str]) -> Iterator[Problem]:
    """Yield a problem for each key with the number of records or manifests that have it."""
    for key, count in sorted(counts.items()):
        have = f"{count:,} {kind}{' has' if count == 1 else 's have'} it"
        message = f"the key {printable_name(key)} is not known and left out: {have}"
        yield Problem("unknown_key", message)
