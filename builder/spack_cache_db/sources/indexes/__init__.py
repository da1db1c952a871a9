"""Reads the files of Spack's mirrors: addresses, manifests, indexes and spec files into columns.

Manifests and blobs are those of layout 3 (Spack 1.0 `url_buildcache.py`). An index is Spack's
database JSON of versions 5 to 8. Its records are decoded one by one, so that an index of 200 MB
takes little more memory than its bytes. A mirror without an index has a spec file for each binary:
JSON since Spack 0.17, YAML before; clear-signed or not, compressed by gzip in layout 3 (Spack
`binary_distribution.py`). Its first node is the binary, the others are its dependencies.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import zstandard
from msgspec import Meta, Raw, Struct

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.errors import Fault, InputError, LineFault, counted
from spack_cache_db.model import Problem
from spack_cache_db.sources import (
    BROKEN,
    MAX_NAME,
    SIZES_FILE,
    Share,
    as_json,
    message_of,
    printable_name,
    require_bounded,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.columns import Document, Install, NodeFacts, Tarball, Writer
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import (
    Node,
    compiler_of,
    configuration_of,
    read_node,
    require_hash,
    require_known,
)


class IndexFault(LineFault):
    """The reason why a file cannot be read; the message has what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


@contextmanager
def _whole(kind: str, expected: str) -> Iterator[None]:
    """Turn exceptions of decoders into `IndexFault`."""
    try:
        yield
    except (*BROKEN, zlib.error, zstandard.ZstdError) as error:
        raise IndexFault(f"broken {kind}: {message_of(error)}{expected}") from None


_CLEAR_SIGNED = re.compile(
    rb"-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n(.*?)"
    rb"\r?\n-----BEGIN PGP SIGNATURE-----",
    re.DOTALL,
)
"""RFC 9580 section 7, "Cleartext Signature Framework": armor headers, an empty line, the text."""


def without_signature(data: bytes) -> bytes:
    """Return the text of a clear-signed message; other data as it is."""
    signed = _CLEAR_SIGNED.match(data.lstrip())
    # A line of the text that begins with a dash has "- " before it (RFC 9580 section 7.1).
    return data if signed is None else re.sub(rb"^- ", b"", signed[1], flags=re.MULTILINE)


def is_clear_signed(data: bytes) -> bool:
    """Return whether data is a clear-signed message."""
    return data.lstrip().startswith(b"-----BEGIN PGP SIGNED MESSAGE-----")


VARIABLE_NAME = "[A-Za-z_][A-Za-z0-9_]{0,199}"
"""The name of an environment variable, as a regular expression."""

VariableName = Annotated[str, Meta(pattern=f"^{VARIABLE_NAME}$")]


class LoginVariables(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The names of the variables with the login for a mirror; `id` itself is not published."""

    id_variable: VariableName | None = None
    secret_variable: VariableName | None = None
    id: str | None = None


class Properties(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The properties of a mirror in Spack's `mirrors.yaml` that its users need, without secrets.

    Source: Spack 1.2 `schema/mirrors.py` and `cmd/mirror.py`, `mirror_add`.

    Attributes:
        signed: whether Spack requires signatures; None if it is not configured.
        endpoint_url: the URL of the object store of an `s3://` URL.
        profile: the name of a profile of Amazon's tools.
        access_pair: the variables with the login.
        access_token_variable: the variable with the token of a session.
        view: the view whose index is read.
    """

    signed: bool | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    access_pair: LoginVariables | None = None
    access_token_variable: VariableName | None = None
    view: str | None = None


class Address(Properties, frozen=True, kw_only=True):
    """The URL of a mirror, its properties, and its filters of binaries."""

    url: str
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()


_ADDRESS = msgspec.json.Decoder(Address)
_IN_COMMANDS = ("endpoint_url", "profile", "view")
"""Properties of a mirror that are arguments of commands."""

MAX_ADDRESS = 2**16
"""Bytes of the file with the address of a mirror."""


def read_address(data: bytes) -> Address:
    """Return the address of a mirror from the bytes of its file; `IndexFault` if it has none."""
    with _whole("address of a mirror", ', expected {"url": …}'):
        address = _ADDRESS.decode(data)
    url = address.url
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault("the address of a mirror is not a URL, expected one such as https://…")
    for name in _IN_COMMANDS:
        value = getattr(address, name)
        if value is not None and (not value or not value.isprintable() or " " in value):
            message = f"the {name} of a mirror is {value!r:.60}, expected a text without blanks"
            raise IndexFault(message)
    return address


def settings_of(properties: Properties) -> str | None:
    """Return the properties that `spack mirror add` needs, as JSON with sorted keys.

    The login itself is left out; None if there is nothing else. `signed` is a column of its own.
    """
    names = ("endpoint_url", "profile", "access_token_variable", "view")
    settings = {name: value for name in names if (value := getattr(properties, name))}
    pair = properties.access_pair
    if pair is not None:
        variables = {"id_variable": pair.id_variable, "secret_variable": pair.secret_variable}
        known = {name: variable for name, variable in variables.items() if variable}
        if known:
            settings["access_pair"] = known
    return as_json(settings) if settings else None


def write_address(address: Address) -> bytes:
    """Return the content of the file with the address of a mirror."""
    return msgspec.json.format(msgspec.json.encode(address), indent=2) + b"\n"


Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size that SQLite can store."""

_SIZES = msgspec.json.Decoder(dict[str, Bytes])


def read_sizes(data: bytes) -> dict[str, int]:
    """Return the size of each binary by its hash; `IndexFault` if it is another file."""
    with _whole(SIZES_FILE, "; remove it"):
        return _SIZES.decode(data)


MANIFESTS = "v3/manifests/index"
"""The folder of a mirror of layout 3 with the manifests of its indexes."""

LAYOUT_2_INDEX = "build_cache/index.json"

INDEX = "application/vnd.spack.db."
SPEC = "application/vnd.spack.spec."
TARBALL = "application/vnd.spack.install."
"""Start of the media type of an index, a spec file and a binary."""

MAX_MANIFEST = 2**20
"""Bytes of a manifest; known manifests have a few hundred."""


class Blob(Struct, frozen=True, rename="camel"):
    """One blob: its length in bytes, its kind, and the checksum that is its name."""

    content_length: Bytes
    media_type: str
    checksum_algorithm: Literal["sha256"]
    checksum: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]

    @property
    def path(self) -> PurePosixPath:
        """The path of the blob below the mirror."""
        return PurePosixPath("blobs", self.checksum_algorithm, self.checksum[:2], self.checksum)

    def require(self, data: bytes) -> None:
        """Raise `IndexFault` unless these are the blob's bytes."""
        size, checksum = len(data), hashlib.sha256(data).hexdigest()
        if size != self.content_length:
            expected = f"expected {self.content_length:,} as in its manifest"
            raise IndexFault(f"has {size:,} bytes, {expected}")
        if checksum != self.checksum:
            expected = f"expected {self.checksum} as in its manifest"
            raise IndexFault(f"has the checksum {checksum}, {expected}")


class Manifest(NamedTuple):
    """A manifest: its blobs, and its unknown keys."""

    blobs: tuple[Blob, ...]
    unknown: frozenset[str]

    def blob(self, media_type: str) -> Blob | None:
        """Return the first blob whose media type starts with a text."""
        return next((blob for blob in self.blobs if blob.media_type.startswith(media_type)), None)


def read_manifest(data: bytes) -> Manifest:
    """Return a manifest; `IndexFault` if it is not a manifest of layout 3."""
    unknown: set[str] = set()
    with _whole("manifest", ", expected Spack's layout 3"):
        content = msgspec.json.decode(without_signature(data))
        require_known(content, {"version", "data"}, "", unknown)
        if (version := content.get("version")) != 3:
            raise IndexFault(f"is of layout {version!r:.20}, expected 3")
        blobs = msgspec.convert(content.get("data"), tuple[Blob, ...])
        for blob in content["data"]:
            require_known(blob, {*Blob.__struct_encode_fields__, "compression"}, "data[]", unknown)
    return Manifest(blobs, frozenset(unknown))


def is_sum(text: str) -> bool:
    """Return whether a text is a sha256: 64 lowercase hexadecimal digits."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of compressed data."""

_STEP = 1024
"""Bytes that are decompressed at once: at most 1 MB with gzip, 32 MB with zstd."""


def decompressed(data: bytes, max_size: int) -> bytes:
    """Return decompressed bytes, at most `max_size`; data that is not compressed is unchanged."""
    decompressor: Any
    if data.startswith(GZIP):
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    elif data.startswith(ZSTD):
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    else:
        return data
    # Indexes consist mostly of hashes, which never compress to a hundredth.
    max_size = min(max_size, 2**26 + 100 * len(data))
    content = bytearray()
    with _whole("compression", ", expected a whole file"):
        for start in range(0, len(data), _STEP):
            content += decompressor.decompress(data[start : start + _STEP])
            if len(content) > max_size:
                message = f"has more than {max_size:,} bytes when it is not compressed"
                raise IndexFault(f"{message}, expected less")
    if not decompressor.eof:
        raise IndexFault("broken compression: it is cut, expected a whole file")
    return bytes(content)


FORMAT_OF_1_0 = 5
"""The spec format of Spack 1.0, the first that has compilers as dependencies."""

SPEC_FORMATS = {"5": 1, "6": 3, "7": 4, "8": FORMAT_OF_1_0}
"""The spec formats by the database versions of Spack 0.13 to 1.1, which are read.

Source: Spack 1.2 `database.py`, `reader`.
"""

VERSIONS = tuple(SPEC_FORMATS)

MAX_SPEC_FILE = 2**26
"""Bytes of a spec file; the largest known have a few hundred thousand."""

NODE_LIMIT = 10_000
"""Nodes of a spec file; the largest known have a few hundred."""

_RECORD = {
    "spec", "ref_count", "in_buildcache", "path", "installed", "explicit", "installation_time",
    "deprecated_for", "origin",
}  # fmt: skip
_SPEC_FILE = {
    "spec", "binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash",
}  # fmt: skip

_YAML = YamlBounds(size=2**24, parts=500_000)


class Database(Struct):
    """The object under `database`; `installs` has a record for each hash.

    Spack reads only these two keys (Spack 1.2 `database.py`, `_read_from_file`).
    """

    version: str | int
    installs: dict[str, Raw]


class Index(Struct):
    """The content of an index."""

    database: Database


class ExactDatabase(Database, forbid_unknown_fields=True):
    """The object under `database` as Spack writes it today."""


class ExactIndex(Struct, forbid_unknown_fields=True):
    """The content of an index as Spack writes it today."""

    database: ExactDatabase


_INDEX = msgspec.json.Decoder(Index)
_EXACT_INDEX = msgspec.json.Decoder(ExactIndex)
_KEYS = msgspec.json.Decoder(dict[str, Raw])
_EXACT_NUMBERS = msgspec.json.Decoder(float_hook=str)
"""Decodes `1.10` as a text, because the number is 1.1."""


def _database_of(data: bytes) -> tuple[Database, frozenset[str]]:
    """Return the content of an index without its records, and its unknown keys.

    An index may have 200 MB, so only one with other keys than today's is decoded again.
    """
    try:
        return _EXACT_INDEX.decode(data).database, frozenset()
    except msgspec.ValidationError:
        # If it is not an index, this raises the error that says why.
        database = _INDEX.decode(data).database
    return database, _unknown_keys_of_index(data)


def _unknown_keys_of_index(data: bytes) -> frozenset[str]:
    """Return the keys of an index, beside its records, that are not known."""
    top = _KEYS.decode(data)
    database = _KEYS.decode(top["database"])
    unknown = top.keys() - {"database"}
    unknown |= {f"database.{key}" for key in database.keys() - {"version", "installs"}}
    return frozenset(unknown)


class Entry(NamedTuple):
    """One record of an index, and its unknown keys, such as `spec.dependencies[].odd`.

    `is_binary` is true if the mirror has a binary of it, or Spack installed it. `spec_format` is
    the format in which Spack first wrote the spec. `numbers` are the keys whose numbers are
    read as texts, as Spack writes them.
    """

    node: Node
    is_binary: bool
    install: Install | None = None
    unknown: frozenset[str] = frozenset()
    spec_format: int = FORMAT_OF_1_0
    numbers: frozenset[str] = frozenset()


def read_entry(record: Any, spec_format: int = FORMAT_OF_1_0) -> Entry:
    """Return a record from its decoded JSON; `ValueError` if it is not one of Spack's.

    `spec_format` is that of a node that does not record its original format.
    """
    unknown: set[str] = set()
    require_known(record, _RECORD, "", unknown)
    node = read_node(record.get("spec"), unknown)
    for key in ("in_buildcache", "installed", "explicit"):
        if not isinstance(record.get(key), bool | None):
            raise ValueError(f"has {key} {record[key]!r:.60}, expected true or false")
    is_binary, installed = record.get("in_buildcache"), record.get("installed")
    # Only some versions of indexes have `in_buildcache`.
    if is_binary is None:
        is_binary = node.external is None and installed is not False
    install = _install(record) if installed else None
    if node.spec_format is not None:
        spec_format = node.spec_format
    return Entry(node, is_binary, install, frozenset(unknown), spec_format)


def _install(record: Mapping[str, Any]) -> Install:
    prefix, seconds = record.get("path"), record.get("installation_time")
    if not isinstance(prefix, str | None):
        raise ValueError(f"has path {prefix!r:.60}, expected a text")
    try:
        when = None if seconds is None else str(datetime.fromtimestamp(seconds, UTC))[:19]
    except (TypeError, ValueError, OverflowError, OSError):
        when = None
    # Old databases write "None" for an external without a path (Spack `database.py`).
    return Install(None if prefix == "None" else prefix, record.get("explicit"), when)


class Installs(dict[str, Raw]):
    """The records of one index by hash; `entry` decodes one record."""

    def __init__(self, data: bytes) -> None:
        """Decode an index without its records; `IndexFault` if it cannot be read."""
        with _whole("index", ", expected Spack's index"):
            database, self.unknown = _database_of(data)
        version = str(database.version)
        if version not in VERSIONS:
            versions = ", ".join(VERSIONS)
            raise IndexFault(f"database version {version:.20}, expected one of {versions}")
        super().__init__(database.installs)
        self.format = version
        self._spec_format = SPEC_FORMATS[version]

    @cached_property
    def is_installed(self) -> bool:
        """Whether this is the index of an installation.

        Its records have `path` instead of `in_buildcache` (Spack `database.py`, `InstallRecord`).
        """
        for text in self.values():
            try:
                record = msgspec.json.decode(text)
            except BROKEN:
                continue  # Reading the record reports it.
            if isinstance(record, dict):
                if "in_buildcache" in record:
                    return False
                if "installed" in record and isinstance(record.get("path"), str):
                    return True
        return False

    def entry(self, dag_hash: str) -> Entry:
        """Return a record; `IndexFault` if it cannot be read, `KeyError` if there is none."""
        try:
            try:
                entry = read_entry(msgspec.json.decode(self[dag_hash]), self._spec_format)
            except ValueError:
                entry = self._entry_with_numbers(dag_hash)
            require_hash(dag_hash)
            if entry.node.hash != dag_hash:
                message = f"its spec has the hash {printable_name(entry.node.hash)}"
                raise ValueError(f"{message}, expected that of the record")
        except BROKEN as error:
            raise IndexFault(f"{printable_name(dag_hash)}: {message_of(error)}") from None
        return entry

    def _entry_with_numbers(self, dag_hash: str) -> Entry:
        """Return a record that has numbers where Spack writes texts, such as a version 1.10."""
        record = _EXACT_NUMBERS.decode(self[dag_hash])
        numbers: set[str] = set()
        if isinstance(record, dict) and isinstance(record.get("spec"), dict):
            plain = msgspec.json.decode(self[dag_hash])["spec"]
            record["spec"] = _with_texts(record["spec"], plain, "spec", numbers)
        entry = read_entry(record, self._spec_format)
        return entry._replace(numbers=frozenset(numbers))


def _with_texts(value: Any, plain: Any, path: str, numbers: set[str]) -> Any:
    """Return decoded JSON with texts in place of its numbers.

    Args:
        value: the JSON, whose fractions are texts already.
        plain: the same with numbers.
        path: where it is in the record; below `annotations`, Spack writes numbers.
        numbers: the paths of numbers, to which others are added.
    """
    if isinstance(value, dict):
        texts = {}
        for key, inner in value.items():
            is_number_of_spack = key == "annotations"
            texts[key] = (
                inner
                if is_number_of_spack
                else _with_texts(inner, plain[key], f"{path}.{key}", numbers)
            )
        return texts
    if isinstance(value, list):
        pairs = zip(value, plain, strict=True)
        return [_with_texts(inner, other, f"{path}[]", numbers) for inner, other in pairs]
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        numbers.add(path)
        return str(value)
    return value


def read_spec_file(data: bytes) -> tuple[int, list[Entry]]:
    """Return the version and the nodes of a spec file; the node of the binary comes first."""
    text = without_signature(decompressed(data, MAX_SPEC_FILE))
    require_text(text)
    with _whole("spec file", ", expected one of Spack's"):
        is_json = text.lstrip().startswith(b"{")
        return _spec_file(msgspec.json.decode(text) if is_json else load(text.decode(), _YAML))


def _spec_file(file: Any) -> tuple[int, list[Entry]]:
    if isinstance(file, dict) and "concrete_specs" in file:
        kind = "is a spack.lock, which lists the specs of an environment, expected an index"
        advice = "to see which of them have binaries, use 'spack-cache-db cover spack.lock FILE'"
        raise IndexFault(f"{kind}; {advice}")
    unknown: set[str] = set()
    spec = require_known(file, _SPEC_FILE, "", unknown).get("spec")
    version: Any = 1
    nodes = spec
    if not isinstance(spec, list):
        graph = require_known(spec, {"_meta", "nodes"}, "spec", unknown)
        meta = require_known(graph.get("_meta"), {"version"}, "spec._meta", unknown)
        version, nodes = meta.get("version"), graph.get("nodes")
    if not isinstance(nodes, list) or not isinstance(version, int):
        raise ValueError("has no list of nodes with a version")
    if not 0 < len(nodes) <= NODE_LIMIT:
        raise ValueError(f"has {len(nodes):,} nodes, expected 1 to {NODE_LIMIT:,}")
    first, *dependencies = (read_entry({"spec": node}, version) for node in nodes)
    first = first._replace(is_binary=True, unknown=first.unknown | unknown)
    entries = [first, *(entry._replace(is_binary=False) for entry in dependencies)]
    # Specfile 1 names the ends of edges by `build_hash` if a node has it (Spack 0.16 `spec.py`,
    # `node_dict_with_hashes`).
    hashes = {entry.node.build_hash or entry.node.hash: entry.node.hash for entry in entries}
    for at, entry in enumerate(entries):
        require_hash(entry.node.hash)
        ends = (edge._replace(hash=hashes.get(edge.hash, edge.hash)) for edge in entry.node.edges)
        entries[at] = entry._replace(node=entry.node._replace(edges=tuple(ends)))
    return version, entries


class SpecFileRecords(dict[str, Entry]):
    """The nodes of spec files as records; the file of a binary has priority over other files."""

    is_installed = False
    unknown: frozenset[str] = frozenset()

    def __init__(self, files: Sequence[list[Entry]], form: str) -> None:
        self.format = form
        dependencies = (entry for entries in reversed(files) for entry in entries[1:])
        entries = [*dependencies, *(entries[0] for entries in files)]
        super().__init__({entry.node.hash: entry for entry in entries})

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        return self[dag_hash]


IndexRecords = Installs | SpecFileRecords
"""The records of an index, by hash."""


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
        numbers = Counter[str]()
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
            numbers.update(entry.numbers)
        problems = [*self._index.document.problems, *_unknown_keys("record", unknown)]
        problems += _number_keys(numbers)
        for key in sorted(records.unknown):
            message = f"the key {printable_name(key)} of the index is not known and left out"
            problems.append(Problem("unknown_key", message))
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
            node=self._node(entry, parameters),
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

    def _node(self, entry: Entry, parameters: str) -> int:
        node = entry.node
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
                is_before_1_0=entry.spec_format < FORMAT_OF_1_0,
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


def _number_keys(counts: Counter[str]) -> Iterator[Problem]:
    """Yield a problem for each key that is a number where Spack writes a text."""
    for key, count in sorted(counts.items()):
        have = counted(count, "record has", "records have")
        message = f"the key {printable_name(key)} is a number and read as a text: {have} it"
        yield Problem("number_for_text", message)


def _unknown_keys(kind: str, counts: Counter[str]) -> Iterator[Problem]:
    """Yield a problem for each key with the number of records or manifests that have it."""
    for key, count in sorted(counts.items()):
        have = f"{count:,} {kind}{' has' if count == 1 else 's have'} it"
        message = f"the key {printable_name(key)} is not known and left out: {have}"
        yield Problem("unknown_key", message)
