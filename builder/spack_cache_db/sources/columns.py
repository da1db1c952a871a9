"""Columns: the one form that every source is turned into.

Texts and records that repeat are held once (`Texts`), and tables of numbers refer to them
(`TABLES`). A reader fills a `Writer`; whatever lies behind knows `Columns` alone, which worker
processes send to their parent. Numbers count from 1 everywhere; 0 means that the source does not
say.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.errors import Fault
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.schema import TARBALL_PATH
from spack_cache_db.spack.nodes import Use

Stacks = tuple[str, ...]
"""A set of stacks: sorted, each once."""

T = TypeVar("T", bound=Hashable)

_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")

PUBLISHED, LISTED, NAMED = "site", "list", "names"
"""The forms, the richest first: a file of the packages site, a member of the list that Spack
prints, and a name of which nothing else is said."""

FORMS = (PUBLISHED, LISTED, NAMED)


class PageFacts(NamedTuple):
    """The package of a page, and the era of its format."""

    package: str
    format: str


class IndexFacts(NamedTuple):
    """The facts of an index as a document.

    `format` is the version of its database, or the layout of a mirror's spec files; `url` is the
    address of the mirror, where it is known. `whole` is the location of what has all binaries of
    its release and stack: a mirror, or an index that lies alone. It is None for a spec file, which
    has one of them. `binaries` is the number of binaries that the index lists. `is_installed` says
    that it is the index of an installation, and `is_named` that its release was given by name.
    """

    stack: str
    format: str
    url: str | None
    whole: str | None
    binaries: int = 0
    is_installed: bool = False
    is_named: bool = False


SPEC_FILE = "spec file "
"""How the format begins of an index that is one spec file, followed by its version."""


class Origin(NamedTuple):
    """The options with which a database was built.

    Attributes:
        location: where the database is, as the user would type it.
        first: the release that comes before all others, if one was given.
        recipes: the addresses of recipes, by their namespaces.
        without_paths: whether the paths of installed specs and externals were left out.
    """

    location: str
    first: str | None
    recipes: Mapping[str, str]
    without_paths: bool


class Document(NamedTuple):
    """A piece of the input about one release: a page, or the index of a mirror.

    `location` is the path as the user would type it, for messages; `path` is the name within the
    input, and goes into the database. `page` is set if the document is a page, which is about one
    package; `index_facts` is set if it is an index.
    """

    location: str
    path: str
    sha256: str
    release: str
    problems: tuple[Problem, ...] = ()
    page: PageFacts | None = None
    index_facts: IndexFacts | None = None


class Refusal(NamedTuple):
    """A document, or a file of package data, that another one excludes.

    Attributes:
        refused: what is left out.
        known: what it contradicts.
        before: what is wrong, up to the place of `known`.
        after: the rest of the sentence.
    """

    refused: Document | PackageFacts
    known: Document | PackageFacts
    before: str
    after: str

    @property
    def fault(self) -> Fault:
        """The fault, with the places as the user would type them."""
        return Fault(self.refused.location, 0, self._text(self.known.location))

    @property
    def recorded(self) -> tuple[str, str]:
        """The path within the input and the message, which do not depend on where the input is."""
        return self.refused.path, self._text(self.known.path)

    def _text(self, place: str) -> str:
        return f"{self.before} {place}{self.after}"


class NodeFacts(NamedTuple):
    """The facts of a node beyond its configuration and its dependencies.

    Many specs share one. `parameters` (variants and compiler flags) and `external` (where the
    system has it) are JSON with sorted keys. `has_compiler` says that the node is of before Spack
    1.0, and names its compiler instead of depending on one.
    """

    namespace: str
    package_hash: str | None
    parameters: str
    external: str | None
    has_compiler: bool


class Install(NamedTuple):
    """How a spec is installed: its prefix, whether somebody asked for it, and when, in UTC."""

    prefix: str | None
    explicit: bool | None
    installed_at: str | None


class ModuleFacts(NamedTuple):
    """An environment module.

    Attributes:
        path: the file that lists it, by its name within the input.
        release: the installation whose specs it may load; None for the only one.
        name: what `module load` calls it.
        compiler: the compiler that its folder names.
        tree: the folder of modules in which it is.
        hash: the hash of the spec that it loads.
        package: the package as the modules call it; empty where there is a hash.
        version: the same for its version.
        is_hidden: whether lists of modules leave it out.
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


class Interned(dict[T, int], Generic[T]):
    """Numbers of things: `interned[thing]` is its own, or the next one if the thing is new.

    `things[number - 1]` is the thing again.
    """

    __slots__ = ("things",)

    def __init__(self) -> None:
        self.things: list[T] = []

    def __missing__(self, thing: T) -> int:
        self.things.append(thing)
        number = self[thing] = len(self.things)
        return number


@dataclass(frozen=True, slots=True)
class Texts:
    """The dictionaries to which numbers refer: `hashes[text]` is the number of a hash."""

    hashes: Interned[str] = field(default_factory=Interned)
    configurations: Interned[Configuration] = field(default_factory=Interned)
    stack_sets: Interned[Stacks] = field(default_factory=Interned)
    sizes: Interned[str] = field(default_factory=Interned)
    tarballs: Interned[Tarball] = field(default_factory=Interned)
    nodes: Interned[NodeFacts] = field(default_factory=Interned)
    uses: Interned[Use] = field(default_factory=Interned)
    installs: Interned[Install] = field(default_factory=Interned)

    def things(self) -> dict[str, list[Any]]:
        """Return the things of each dictionary, in the order of their numbers."""
        return {each.name: getattr(self, each.name).things for each in fields(self)}


DOCUMENTS = "documents"


class Meaning(NamedTuple):
    """The meaning of the numbers of a column.

    `of` names the dictionary in `Texts` to which they refer, or `DOCUMENTS`. `is_optional` says
    that a source need not know it, which is 0.
    """

    of: str
    is_optional: bool = False


_DOCUMENT, _SPEC = Meaning(DOCUMENTS), Meaning("hashes")

TABLES: Mapping[str, Mapping[str, Meaning]] = {
    # Specs in releases; several documents may list one spec in one release.
    "listings": {
        "document": _DOCUMENT,
        "spec": _SPEC,
        "configuration": Meaning("configurations"),
        "stacks": Meaning("stack_sets"),
        "size": Meaning("sizes", is_optional=True),
        # Relative to the configuration, unless it is a whole URL.
        "tarball": Meaning("tarballs", is_optional=True),
    },
    # Specs that a document knows and does not list.
    "unlisted": {
        "document": _DOCUMENT,
        "spec": _SPEC,
        "configuration": Meaning("configurations"),
    },
    # Specs that a document names as dependencies and says nothing else of.
    "unrecorded": {
        "document": _DOCUMENT,
        "spec": _SPEC,
        "configuration": Meaning("configurations"),
    },
    # The records of indexes.
    "records": {
        "document": _DOCUMENT,
        "spec": _SPEC,
        "node": Meaning("nodes"),
        "install": Meaning("installs", is_optional=True),
        "build_spec": Meaning("hashes", is_optional=True),
    },
    # The dependencies that indexes tell of.
    "edges": {
        "document": _DOCUMENT,
        "spec": _SPEC,
        "dependency": _SPEC,
        "use": Meaning("uses"),
    },
}
"""Every column of numbers, by table."""


def _no_rows() -> dict[str, dict[str, array[int]]]:
    return {table: {name: array("I") for name in columns} for table, columns in TABLES.items()}


@dataclass(slots=True)
class Columns:
    """The content of a unit of the input.

    `things` are those of each dictionary in `Texts`; `tables` has an array of numbers for each
    column of `TABLES`; `packages` are what package data says, which is of no release; `modules` are
    environment modules; `origins` are
    the options of databases, and `left_out` the documents that these left out: path and message;
    `bytes_read` is the size of the unit's files.
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
    """Fills columns: a reader asks `texts` for numbers, and adds document after document.

    A number that no row uses in the end does no harm.
    """

    def __init__(self) -> None:
        self.texts = Texts()
        self.columns = Columns(things=self.texts.things())

    def add(self, document: Document) -> int:
        """Add a document and return its number."""
        self.columns.documents.append(document)
        return len(self.columns.documents)

    def remove(self, document: int) -> None:
        """Remove a document with all of its rows; it is the one that was added last."""
        del self.columns.documents[document - 1 :]
        for rows in self.columns.tables.values():
            start = bisect_left(rows["document"], document)
            for column in rows.values():
                del column[start:]

    def append(self, table: str, document: int, **columns: Sequence[int]) -> None:
        """Append rows of a document to one of `TABLES`.

        Args:
            table: the table.
            document: its number. Only documents with `index_facts` have records and edges.
            columns: all other columns of the table.
        """
        rows = self.columns.tables[table]
        columns["document"] = [document] * len(columns["spec"])
        if columns.keys() != rows.keys():
            raise TypeError(f"the columns of {table} are {[*rows]}, not {[*columns]}")
        for name, values in columns.items():
            rows[name].extend(values)

    def append_row(self, table: str, **row: int) -> None:
        """Append one row to one of `TABLES`, with all of its columns."""
        rows = self.columns.tables[table]
        for name, value in row.items():
            rows[name].append(value)


class Tarball(NamedTuple):
    """The part of a URL that has to be stored: all of it, or only the mirror's prefix."""

    url: str
    is_whole: bool


def tarball_suffix(spec: Configuration) -> str:
    """Return what follows a mirror's prefix in a tarball's URL, up to the hash."""
    parts = spec._asdict() | {"compiler": spec.compiler.replace("@", "-")}
    return _BEFORE_HASH.format(**parts)


def tarball_url(tarball: Tarball, spec: Configuration, dag_hash: str) -> str:
    """Return the whole URL again."""
    return tarball.url if tarball.is_whole else _joined(tarball.url, tarball_suffix(spec), dag_hash)


class TarballParts:
    """Takes URLs apart; what they have in common is made once.

    Args:
        configurations: those of the specs, in the order of their numbers; it may grow.
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations
        self._suffixes: dict[int, str] = {}
        self._mirror = Tarball("", is_whole=False)

    def split(self, url: str, configuration: int, dag_hash: str) -> Tarball:
        """Return what has to be stored of a URL; `configuration` is the number of the spec's."""
        suffix = self._suffixes.get(configuration)
        if suffix is None:
            suffix = tarball_suffix(self._configurations[configuration - 1])
            self._suffixes[configuration] = suffix
        # Tarballs that are listed together lie in one mirror: mostly it is the one seen last.
        if url == _joined(self._mirror.url, suffix, dag_hash):
            return self._mirror
        end = _joined("", suffix, dag_hash)
        if not url.endswith(end):
            return Tarball(url, is_whole=True)
        self._mirror = Tarball(url[: -len(end)], is_whole=False)
        return self._mirror


def _joined(prefix: str, suffix: str, dag_hash: str) -> str:
    return f"{prefix}{suffix}{dag_hash}{_AFTER_HASH}"


class KnownVersion(NamedTuple):
    """A version of a package.

    `is_deprecated` is None where the source does not say it; `is_branch` says that a branch is
    named for it.
    """

    is_deprecated: bool | None
    is_branch: bool


class KnownVariant(NamedTuple):
    """A variant of a package: its default, a text or whether it is on, and what it means."""

    default: str | bool
    description: str


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """The content of one file about a package.

    Attributes:
        location: the file's path as the user would type it.
        path: its name within the input.
        form: one of `FORMS`.
        name: that of the package.
        texts: texts by the column of `known_packages` that has them.
        versions: versions by name.
        variants: variants by name.
        dependencies: the types of each dependency by its name, empty where they are not told.
        dependents: the names of the packages that depend on this one.
        descriptions: what is said of other packages, by name.
        problems: what does not add up in it.
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
    def content(self) -> tuple[Any, ...]:
        """All fields that do not depend on where the file lies, and what lies beside it."""
        outside = ("location", "path", "problems")
        return tuple(getattr(self, each.name) for each in fields(self) if each.name not in outside)
