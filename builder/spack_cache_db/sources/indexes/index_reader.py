"""Records of an index → columns; each spelling is looked up once.

Architecture, parameters and edges are long texts of which few differ, so numbers stand for their
bytes. Configurations are in the normal form of pages, so that both kinds of source meet in one.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources import Share
from spack_cache_db.sources.columns import (
    TABLES,
    Document,
    IndexFacts,
    Interned,
    NodeFacts,
    Tarball,
    Texts,
    Use,
    Writer,
)
from spack_cache_db.sources.indexes import (
    Arch,
    BuildSpec,
    EdgeParameters,
    IndexFault,
    NodeDependency,
    Record,
    SpecNode,
    require_hash,
)
from spack_cache_db.sources.indexes.index_records import Entry, IndexRecords
from spack_cache_db.sources.strictness import (
    BROKEN,
    MAX_NAME,
    as_json,
    decode_once,
    named,
    read_strictly,
    require_bounded,
    require_name,
    require_short,
    said,
    short,
)
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.normal_forms import (
    LANGUAGES,
    NO_COMPILER,
    normal_compiler,
    printed_variants,
)

INSTALLATION = (
    "path", "installed", "explicit", "installation_time", "deprecated_for", "origin",
)  # fmt: skip
"""The keys of a record that only the database of an installation has."""

UNKNOWN_KEYS = "unknown_keys"
"""The key under which those of a record that are not known are kept: a list of [path, value]."""

_installation = attrgetter(*INSTALLATION)
_NO_INSTALLATION = (UNSET,) * len(INSTALLATION)

RECORDS_PER_CALL = 5000

_COLUMNS = {
    table: [name for name in columns if name != "document"]
    for table, columns in TABLES.items()
    if table != "edges"
}
"""The columns of each table that are of a row and not of the whole index, in their order."""

NODE_REST = ("compiler", "patches", "annotations")
"""The keys of a node that are kept as they are, beside those that have columns."""

_node_rest = attrgetter(*NODE_REST)

_ARCH = msgspec.json.Decoder(Arch)
_EDGE = msgspec.json.Decoder(EdgeParameters)
_PARAMETERS = msgspec.json.Decoder(dict[str, bool | str | tuple[str, ...]])

NO_LANGUAGE = len(LANGUAGES)


class BinaryPlace(NamedTuple):
    """Where a binary lies: bytes of its tarball as text, and its address, where they are known.

    `unknown_keys` are those of the manifest that says so.
    """

    size: str | None = None
    tarball: Tarball | None = None
    unknown_keys: frozenset[str] = frozenset()


class Uses(dict[bytes | tuple[str, ...] | UnsetType, int]):
    """Numbers of uses by what an edge says: the text of its `parameters`, or its `type`.

    `language[number]` is the place in `LANGUAGES` of the first that the use provides, or
    `NO_LANGUAGE`. Asking for what is no `parameters` object raises `msgspec.DecodeError`.
    """

    def __init__(self, uses: Interned[Use]) -> None:
        super().__init__()
        self._uses = uses
        self.language: dict[int, int] = {}

    def __missing__(self, key: bytes | tuple[str, ...] | UnsetType) -> int:
        use = use_of(key)
        number = self[key] = self._uses[use]
        provided = [at for at, each in enumerate(LANGUAGES) if each in use.virtuals]
        self.language[number] = min(provided, default=NO_LANGUAGE)
        return number

    def of(self, dependencies: tuple[NodeDependency, ...]) -> list[int]:
        """Return the number of each edge's use; raise as asking for one does."""
        return [
            self[each.type if each.parameters is UNSET else bytes(each.parameters)]
            for each in dependencies
        ]


def use_of(key: bytes | tuple[str, ...] | UnsetType) -> Use:
    """Return a use from what an edge says (see `Uses`)."""
    if isinstance(key, bytes):
        parameters = decode_once(key, _EDGE)
        direct = None if parameters.direct is UNSET else parameters.direct
        return Use(_set(parameters.deptypes), _set(parameters.virtuals), direct)
    return Use(_set(() if key is UNSET else key), (), None)


def _set(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words sorted; `ValueError` for one that cannot stand in a list with commas."""
    for word in words:
        if not word or "," in word:
            raise ValueError(f"{named(word)!r} is no type or virtual, expected a word")
        require_name("type or virtual", word)
    return tuple(sorted(words))


@lru_cache(maxsize=4096)
def read_arch(text: bytes) -> Arch:
    """Return the architecture of a node from its JSON; `BROKEN` if it cannot be read."""
    return decode_once(text, _ARCH)


@lru_cache(maxsize=65536)
def variants_of(text: bytes) -> tuple[str, ...]:
    """Return the variants of a `parameters` object in normal form, sorted, without flags.

    Raises:
        msgspec.DecodeError: it is none.
        ValueError: a key stands twice.
    """
    parameters = decode_once(text, _PARAMETERS)
    return printed_variants(parameters)


class Spellings:
    """Numbers of configurations and of `NodeFacts` by what nodes of an index say."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._said = Interned[bytes]()
        self._configurations: dict[object, int] = {}
        self._nodes: dict[object, int] = {}

    def numbers(self, node: SpecNode, compiler: str) -> tuple[int, int]:
        """Return the number of a node's configuration, and that of the node.

        Raises:
            msgspec.DecodeError: a part of it is none of Spack's.
            ValueError: a text of it is too long.
        """
        arch, parameters = self._said[bytes(node.arch)], self._said[bytes(node.parameters)]
        key = (node.name, node.version, compiler, arch, parameters)
        configuration = self._configurations.get(key)
        if configuration is None:
            configuration = self._configuration(node, compiler)
            self._configurations[key] = configuration
        external = None if node.external is UNSET else bytes(node.external)
        rest = (node.namespace, node.package_hash, arch, parameters, _node_rest(node), external)
        facts = self._nodes.get(rest)
        if facts is None:
            facts = self._nodes[rest] = self._texts.nodes[_facts(node)]
        return configuration, facts

    def _configuration(self, node: SpecNode, compiler: str) -> int:
        arch = read_arch(bytes(node.arch))
        configuration = Configuration(
            node.name,
            node.version,
            compiler,
            arch.platform_os,
            arch.platform,
            arch.target if isinstance(arch.target, str) else arch.target.name,
            variants_of(bytes(node.parameters)),
        )
        require_bounded(configuration)
        return self._texts.configurations[configuration]


def _facts(node: SpecNode) -> NodeFacts:
    target = read_arch(bytes(node.arch)).target
    require_name("namespace", node.namespace)
    external = None
    if node.external is not UNSET:
        external = read_strictly(bytes(node.external))
        if not isinstance(external, dict):
            raise ValueError("external is no object")
        external = as_json(external)
    return NodeFacts(
        namespace=node.namespace,
        package_hash=None if node.package_hash is UNSET else node.package_hash,
        parameters=as_json(read_strictly(bytes(node.parameters))),
        target=None if isinstance(target, str) else as_json(msgspec.to_builtins(target)),
        external=external,
        rest=as_json(said_of(node, NODE_REST)),
    )


def said_of(record: Record | SpecNode, keys: Iterable[str]) -> dict[str, Any]:
    """Return the keys that a record says something of, as plain values."""
    values = {key: getattr(record, key) for key in keys}
    said = {key: value for key, value in values.items() if value is not UNSET}
    plain: dict[str, Any] = msgspec.to_builtins(said)
    return plain


class _Rows:
    """What one index gives: rows of `TABLES`, one after the other, and the columns of its edges.

    `stacks` is the number of its set of stacks; `numbers` is the number of each hash that the index
    has; `names` the name of each spec, and `named` what edges call it; `compilers` are those that
    are specs, by their hashes. `unrecorded` are the hashes and names that edges have, and the index
    has no record of.
    """

    def __init__(self, stacks: int, numbers: dict[str, int]) -> None:
        self.tables = {table: array("I") for table in _COLUMNS}
        self.edges = {name: array("I") for name in ("spec", "dependency", "use")}
        self.stacks = stacks
        self.numbers = numbers
        self.names: dict[int, str] = {}
        self.named: dict[int, str] = {}
        self.compilers: dict[str, str] = {}
        self.unrecorded: dict[str, str] = {}


class IndexReader:
    """Adds the records of indexes to the columns of a unit."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts = writer.texts
        self._spellings = Spellings(writer.texts)
        self._uses = Uses(writer.texts.uses)

    def add(
        self,
        document: Document,
        known: IndexRecords,
        listed: Callable[[Entry], BinaryPlace | None],
        share: Share | None = None,
    ) -> None:
        """Add all records of an index.

        Args:
            document: the index; problems of its records are added to it.
            known: its records; edges lead to nothing else.
            listed: where a record's binary lies; None for a record without one.
            share: told after some thousands of records, each time, how much has been read.

        Raises:
            InputError: with every fault of the index; nothing of it is kept.
        """
        facts, hashes = document.index_facts, self._texts.hashes
        if facts is None:
            raise TypeError("the document is no index")
        # What is no hash is refused below, and may not meet those of other documents.
        numbers = {dag_hash: hashes[dag_hash] for dag_hash in known if is_hash(dag_hash)}
        rows = _Rows(self._texts.stack_sets[(facts.stack,)], numbers)
        faults: list[str] = []
        unknown, in_manifests = Counter[str](), Counter[str]()
        for count, dag_hash in enumerate(known):
            if share and count and count % RECORDS_PER_CALL == 0:
                share(count / len(known))
            try:
                entry, place = self._add_record(rows, dag_hash, known, listed)
            except IndexFault as fault:
                faults.append(str(fault))
            else:
                unknown.update({each.place() for each in entry.unknown})
                in_manifests.update(place.unknown_keys if place else ())
        faults += self._misnamed(rows)
        if faults:
            raise InputError(Fault(document.location, 0, each) for each in faults)
        problems = [*unknown_keys("record", unknown), *unknown_keys("manifest", in_manifests)]
        problems += [_unrecorded(*each) for each in sorted(rows.unrecorded.items())]
        self._write(document, facts, rows, problems)

    def _write(
        self, document: Document, facts: IndexFacts, rows: _Rows, problems: list[Problem]
    ) -> None:
        nothing = Configuration("", "", NO_COMPILER, "", "", "", ())
        for dag_hash, package in rows.unrecorded.items():
            configuration = self._texts.configurations[nothing._replace(package=package)]
            rows.tables["unrecorded"].extend((rows.numbers[dag_hash], configuration))
        binaries = len(rows.tables["listings"]) // len(_COLUMNS["listings"])
        number = self._writer.add(
            document._replace(
                problems=(*document.problems, *problems),
                index_facts=facts._replace(binaries=binaries),
            )
        )
        for table, columns in _COLUMNS.items():
            values = rows.tables[table]
            each = {name: values[at :: len(columns)] for at, name in enumerate(columns)}
            self._writer.append(table, number, **each)
        self._writer.append("edges", number, **rows.edges)

    def _add_record(
        self,
        rows: _Rows,
        dag_hash: str,
        known: IndexRecords,
        listed: Callable[[Entry], BinaryPlace | None],
    ) -> tuple[Entry, BinaryPlace | None]:
        entry = known.entry(dag_hash)
        try:
            return entry, self._add_entry(rows, entry, known, listed(entry))
        except BROKEN as error:
            try:
                entry = known.tolerant_entry(dag_hash)
                return entry, self._add_entry(rows, entry, known, listed(entry))
            except BROKEN:
                words = f"{dag_hash}: {said(error)}, expected a node of Spack's"
                raise IndexFault(words) from None

    def _add_entry(
        self, rows: _Rows, entry: Entry, known: IndexRecords, listed: BinaryPlace | None
    ) -> BinaryPlace | None:
        """Add a record whole, or nothing of it; return where its binary lies."""
        node, texts = entry.node, self._texts
        uses = self._uses.of(node.edges)
        ends = self._ends(rows, node)
        compiler = self._compiler(rows, node, uses, known)
        configuration, facts = self._spellings.numbers(node, compiler)
        rest = self._record(rows, entry)
        spec = rows.numbers[node.hash]
        rows.names[spec] = node.name
        tables, edges = rows.tables, rows.edges
        pairs = {*zip(ends, uses, strict=True)}
        if len(pairs) < len(ends):
            ends, uses = [end for end, _ in pairs], [use for _, use in pairs]
        edges["spec"].extend([spec] * len(ends))
        edges["dependency"].extend(ends)
        edges["use"].extend(uses)
        if listed is None:
            tables["unlisted"].extend((spec, configuration))
        else:
            size = texts.sizes[listed.size] if listed.size else 0
            tarball = texts.tarballs[listed.tarball] if listed.tarball else 0
            tables["listings"].extend((spec, configuration, rows.stacks, size, tarball))
        tables["records"].extend((spec, facts, *rest))
        return listed

    def _compiler(self, rows: _Rows, node: SpecNode, uses: list[int], known: IndexRecords) -> str:
        """Return the compiler that a page prints, which nodes up to specfile 4 name themselves.

        Since specfile 5 it is the dependency that provides C, or else C++, or else Fortran (Spack
        1.1 `spec.py`, `DeprecatedCompilerSpec.factory`).
        """
        if node.compiler is not UNSET:
            return normal_compiler(f"{node.compiler.name}@{node.compiler.version}")
        if node.annotations is not UNSET and node.annotations.compiler is not UNSET:
            return normal_compiler(node.annotations.compiler)
        languages = [*map(self._uses.language.__getitem__, uses)]
        first = min(languages, default=NO_LANGUAGE)
        if first == NO_LANGUAGE:
            return NO_COMPILER
        provider = node.edges[languages.index(first)]
        compiler = rows.compilers.get(provider.hash)
        if compiler is None:
            compiler = provider.name
            if provider.hash in known:
                version = known.entry(provider.hash).node.version
                compiler = normal_compiler(f"{compiler}@{version}")
            rows.compilers[provider.hash] = compiler
        return compiler

    def _ends(self, rows: _Rows, node: SpecNode) -> list[int]:
        """Return the numbers of what a node depends on."""
        ends = [rows.numbers.get(each.hash) or self._unrecorded(rows, each) for each in node.edges]
        called = rows.named
        for end, each in zip(ends, node.edges, strict=True):
            if called.setdefault(end, each.name) != each.name:
                raise _two_names(node, each, called[end])
        return ends

    def _unrecorded(self, rows: _Rows, other: NodeDependency | BuildSpec) -> int:
        """Return the number of a spec of which nothing is known but its hash and name."""
        require_hash(other.hash)
        require_short("package", other.name, MAX_NAME)
        rows.unrecorded[other.hash] = other.name
        number = rows.numbers[other.hash] = self._texts.hashes[other.hash]
        return number

    def _misnamed(self, rows: _Rows) -> Iterator[str]:
        """Yield a fault for each spec that an edge calls by a name which is not its own."""
        for number, called in rows.named.items():
            own = rows.names.get(number, called)
            if own != called:
                dag_hash = self._texts.hashes.things[number - 1]
                words = f"is called {named(called)} by what depends on it"
                yield f"{dag_hash}: {words}, its own name is {named(own)}"

    def _record(self, rows: _Rows, entry: Entry) -> tuple[int, ...]:
        """Return the numbers of a record behind that of its node, as in `_COLUMNS`."""
        texts, record, node = self._texts, entry.record, entry.node
        rest = dict(entry.rest or ())
        if _installation(record) != _NO_INSTALLATION:
            rest |= said_of(record, INSTALLATION)
        if entry.unknown:
            rest[UNKNOWN_KEYS] = entry.unknown
        return (
            0 if record.ref_count is UNSET else record.ref_count + 1,
            0 if record.in_buildcache is UNSET else 1 + record.in_buildcache,
            texts.rests[as_json(rest)] if rest else 0,
            0 if node.full_hash is UNSET else texts.old_hashes[node.full_hash],
            0 if node.build_hash is UNSET else texts.old_hashes[node.build_hash],
            0 if node.build_spec is UNSET else self._build_spec(rows, node, node.build_spec),
        )

    def _build_spec(self, rows: _Rows, node: SpecNode, build_spec: BuildSpec) -> int:
        number = rows.numbers.get(build_spec.hash) or self._unrecorded(rows, build_spec)
        if rows.named.setdefault(number, build_spec.name) != build_spec.name:
            raise _two_names(node, build_spec, rows.named[number])
        return number


def _two_names(node: SpecNode, called: NodeDependency | BuildSpec, other: str) -> IndexFault:
    names = f"{named(called.name)} here and {named(other)} elsewhere"
    return IndexFault(f"{node.hash}: {called.hash} is called {names}, expected one name")


def _unrecorded(dag_hash: str, name: str) -> Problem:
    message = f"the spec {dag_hash} is needed, and has no record: only its name is known, {name}"
    # Another index may call it otherwise, and the file has one name for it.
    return Problem("no_record", message, dag_hash, as_json({"package": name}))


def unknown_keys(what: str, counts: Mapping[str, int]) -> Iterator[Problem]:
    """Yield a problem for each key that is not known.

    Args:
        what: `record` or `manifest`.
        counts: how many of them have each key.
    """
    fate = "kept as it is" if what == "record" else "passed over"
    for place, count in sorted(counts.items()):
        have = f"{what} has" if count == 1 else f"{what}s have"
        message = f"the key {short(place)} is not known and {fate}: {count:,} {have} it"
        yield Problem("unknown_key", message)
