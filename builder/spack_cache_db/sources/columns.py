"""Columns: the common form of all sources.

Repeated texts and records are stored once (`Texts`), and tables of numbers refer to them
(`TABLES`). A reader fills a `Writer`; worker processes send its `Columns` to their parent. Numbers
count from 1; 0 means that the source does not give the value.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.errors import Fault
from spack_cache_db.model import Configuration, Problem
from spack_cache_db.schema.tarballs import TARBALL_PATH
from spack_cache_db.spack.nodes import Use

Stacks = tuple[str, ...]
"""A set of stacks: sorted, each once."""

T = TypeVar("T", bound=Hashable)

_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")

FORMS = PUBLISHED, LISTED, NAMED = "site", "list", "names"
"""Forms of package data, the richest first: a file of the packages site, an entry of the list that
Spack prints, and a name alone."""


class PageFacts(NamedTuple):
    """The package of a page, and the era of its format."""

    package: str
    format: str


class IndexFacts(NamedTuple):
    """The facts of an index as a document.

    `format` is the version of its database, or the layout of a mirror's spec files. `whole` is the
    location of the mirror or index with all binaries of the release and stack; None for a single
    spec file. `is_named` is true if the release of an installation was given by name.
    `is_signed` is true for a mirror whose binaries are signed, false for one without signatures,
    and None if they differ or nothing shows it. `settings` are the properties of a mirror in
    `mirrors.yaml` that its users need (`indexes.settings_of`), as JSON; None without any.
    """

    stack: str
    format: str
    url: str | None
    whole: str | None
    is_installed: bool = False
    is_named: bool = False
    is_signed: bool | None = None
    settings: str | None = None


SPEC_FILE = "spec file "
"""Start of the format of an index that is one spec file; its version follows."""


class Origin(NamedTuple):
    """The options with which the database at a location was built; `recipes` are URLs."""

    location: str
    first: str | None
    recipes: Mapping[str, str]
    without_paths: bool


class Document(NamedTuple):
    """A piece of the input about one release: a page, or the index of a mirror.

    `location` is the path as the user would type it, for messages; `path` is the path within the
    input, which goes into the database. A page has `page`, and an index has `index_facts`.
    `is_copy` is true in a snapshot that `build --snapshot` made: its binaries are in the mirror of
    the release that it copies.
    """

    location: str
    path: str
    sha256: str
    release: str
    problems: tuple[Problem, ...] = ()
    page: PageFacts | None = None
    index_facts: IndexFacts | None = None
    is_copy: bool = False


class Refusal(NamedTuple):
    """A document, or a file of package data, that contradicts another one and is left out.

    The message is the path of `known` between `before` and `after`.
    """

    refused: Document | PackageFacts
    known: Document | PackageFacts
    before: str
    after: str

    @property
    def fault(self) -> Fault:
        """The fault, with paths as the user would type them."""
        return Fault(self.refused.location, 0, f"{self.before} {self.known.location}{self.after}")

    @property
    def recorded(self) -> tuple[str, str]:
        """The path within the input and the message; neither depends on the input's location."""
        return self.refused.path, f"{self.before} {self.known.path}{self.after}"


class NodeFacts(NamedTuple):
    """The facts of a node beyond its configuration and its dependencies; many specs share one.

    `parameters` (variants and compiler flags) and `external` (its path and modules) are JSON with
    sorted keys. `has_compiler` is true for nodes that name their compiler instead of depending on
    it, and `is_before_1_0` for all that Spack before 1.0 concretized (spec format below 5).
    """

    namespace: str
    package_hash: str | None
    parameters: str
    external: str | None
    has_compiler: bool
    is_before_1_0: bool


class Install(NamedTuple):
    """An installed spec: its prefix, whether it was installed explicitly, and the time in UTC."""

    prefix: str | None
    explicit: bool | None
    installed_at: str | None


class ModuleFacts(NamedTuple):
    """An environment module, with the path of the file that lists it.

    `release` is that of its installation, None if there is only one; `compiler` is in the name of
    its folder, and `tree` is the folder of modules that contains it. A list without the hash of
    the spec has its package and version. `module avail` leaves out hidden modules. `parents` is a
    JSON list of alternatives, each a list of the modules that must be loaded first; None if none.
    """

    path: str
    release: str | None
    name: str
    compiler: str | None
    tree: str | None
    hash: str | None = None
    package: str = ""
    version: str = ""
    is_hidden: bool = False
    parents: str | None = None


class Interned(dict[T, int], Generic[T]):
    """Assigns consecutive numbers to values: `interned[value]`; `things` has them in order."""

    __slots__ = ("things",)

    def __init__(self) -> None:
        self.things: list[T] = []

    def __missing__(self, value: T) -> int:
        self.things.append(value)
        number = self[value] = len(self.things)
        return number


@dataclass(frozen=True, slots=True)
class Texts:
    """The dictionaries of numbered values: `hashes[text]` is the number of a hash."""

    hashes: Interned[str] = field(default_factory=Interned)
    configurations: Interned[Configuration] = field(default_factory=Interned)
    stack_sets: Interned[Stacks] = field(default_factory=Interned)
    sizes: Interned[str] = field(default_factory=Interned)
    tarballs: Interned[Tarball] = field(default_factory=Interned)
    nodes: Interned[NodeFacts] = field(default_factory=Interned)
    uses: Interned[Use] = field(default_factory=Interned)
    installs: Interned[Install] = field(default_factory=Interned)

    def things(self) -> dict[str, list[Any]]:
        """Return the values of each dictionary, in the order of their numbers."""
        return {column.name: getattr(self, column.name).things for column in fields(self)}


DOCUMENTS = "documents"

DICTIONARIES = {
    "document": DOCUMENTS,
    "spec": "hashes",
    "configuration": "configurations",
    "stacks": "stack_sets",
    "size": "sizes",
    # Relative to the configuration, unless it is a complete URL.
    "tarball": "tarballs",
    "node": "nodes",
    "install": "installs",
    "build_spec": "hashes",
    "dependency": "hashes",
    "use": "uses",
}
"""The dictionary of `Texts`, or `DOCUMENTS`, that the numbers of each column refer to."""

TABLES = {
    # Specs in releases; several documents may list one spec in one release.
    "listings": ("document", "spec", "configuration", "stacks", "size", "tarball"),
    # Specs that a document has a record of, without a binary.
    "unlisted": ("document", "spec", "configuration"),
    # Specs that a document names as dependencies, without a record.
    "unrecorded": ("document", "spec", "configuration"),
    # The records of indexes, and the dependencies in them.
    "records": ("document", "spec", "node", "install", "build_spec"),
    "edges": ("document", "spec", "dependency", "use"),
}
"""The columns of numbers, by table."""

OPTIONAL = ("size", "tarball")
"""The columns of listings in which documents may lack a value."""


def _no_rows() -> dict[str, dict[str, array[int]]]:
    return {table: {name: array("I") for name in columns} for table, columns in TABLES.items()}


@dataclass(slots=True)
class Columns:
    """The content of a unit of the input.

    `things` are the values of the dictionaries in `Texts`, `tables` the numbers in each column, and
    `left_out` the path and message of each document that a database left out.
    """

    documents: list[Document] = field(default_factory=list)
    things: dict[str, list[Any]] = field(default_factory=lambda: Texts().things())
    tables: dict[str, dict[str, array[int]]] = field(default_factory=_no_rows)
    packages: list[PackageFacts] = field(default_factory=list)
    modules: list[ModuleFacts] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    bytes_read: int = 0


class Writer:
    """Fills columns: a reader gets numbers from `texts`, and adds one document after another."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.columns = Columns(things=self.texts.things())

    def add(self, document: Document) -> int:
        """Add a document and return its number."""
        self.columns.documents.append(document)
        return len(self.columns.documents)

    def remove(self, document: int) -> None:
        """Remove the document that was added last, with all of its rows."""
        del self.columns.documents[document - 1 :]
        for rows in self.columns.tables.values():
            start = bisect_left(rows["document"], document)
            for column in rows.values():
                del column[start:]

    def append(self, table: str, document: int, **columns: Sequence[int]) -> None:
        """Append rows of a document to one of `TABLES`, with all of its other columns."""
        rows = self.columns.tables[table]
        rows["document"].extend([document] * len(columns["spec"]))
        for name, values in columns.items():
            rows[name].extend(values)

    def append_row(self, table: str, **row: int) -> None:
        """Append one row to one of `TABLES`, with all of its columns."""
        for name, value in row.items():
            self.columns.tables[table][name].append(value)

    def add_record(
        self,
        configuration: int,
        listing: Mapping[str, int] | None,
        edges: Collection[tuple[int, int]],
        document: int,
        spec: int,
        **record: int,
    ) -> None:
        """Add the record of a spec in an index, with the other columns of `records`.

        `listing` has stacks, size and tarball of its binary; `edges` are dependencies and uses.
        """
        row = {"document": document, "spec": spec}
        table = "unlisted" if listing is None else "listings"
        self.append_row(table, **row, configuration=configuration, **(listing or {}))
        self.append_row("records", **row, **record)
        columns = {"dependency": [end for end, _ in edges], "use": [use for _, use in edges]}
        self.append("edges", document, spec=[spec] * len(edges), **columns)

    def add_unrecorded(self, document: int, spec: int, package: str) -> None:
        """Add a spec that an index names as a dependency, without a record of it."""
        number = self.texts.configurations[Configuration(package, "", "none", "", "", "", ())]
        self.append_row("unrecorded", document=document, spec=spec, configuration=number)


class Tarball(NamedTuple):
    """The stored part of a URL: all of it, or only the mirror's prefix."""

    url: str
    is_whole: bool


def _suffix(spec: Configuration) -> str:
    """Return the part of a tarball's URL between the mirror's prefix and the hash."""
    parts = spec._asdict() | {"compiler": spec.compiler.replace("@", "-")}
    return _BEFORE_HASH.format(**parts)


def tarball_url(tarball: Tarball, spec: Configuration, dag_hash: str) -> str:
    """Return the complete URL of a tarball."""
    url, is_whole = tarball
    return url if is_whole else f"{url}{_suffix(spec)}{dag_hash}{_AFTER_HASH}"


class TarballParts:
    """Splits URLs into prefix and suffix; `configurations` are in the order of their numbers."""

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations
        self._suffixes: dict[int, str] = {}
        self._mirror = Tarball("", is_whole=False)

    def split(self, url: str, configuration: int, dag_hash: str) -> Tarball:
        """Return the stored part of a URL; `configuration` is a number."""
        suffix = self._suffixes.get(configuration)
        if suffix is None:
            suffix = _suffix(self._configurations[configuration - 1])
            self._suffixes[configuration] = suffix
        end = f"{suffix}{dag_hash}{_AFTER_HASH}"
        # Consecutive tarballs usually belong to the same mirror.
        if url != self._mirror.url + end:
            if not url.endswith(end):
                return Tarball(url, is_whole=True)
            self._mirror = Tarball(url[: -len(end)], is_whole=False)
        return self._mirror


class KnownVersion(NamedTuple):
    """A version of a package; `is_deprecated` is None if unknown."""

    is_deprecated: bool | None
    is_branch: bool


class KnownVariant(NamedTuple):
    """A variant of a package: its default (a text, or whether it is on) and its description."""

    default: str | bool
    description: str


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """The content of one file about a package; `path` and `location` as in `Document`.

    `texts` are by column of `known_packages`, `dependencies` have their types, which are empty if
    unknown, and `descriptions` are those of other packages.
    """

    location: str
    path: str
    form: str
    name: str
    texts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, KnownVersion] = field(default_factory=dict)
    variants: Mapping[str, KnownVariant] = field(default_factory=dict)
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dependents: tuple[str, ...] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def content(self) -> PackageFacts:
        """The facts without the fields that depend on the file's path or on other files."""
        return replace(self, location="", path="", problems=())
