"""Columns, the common form into which all sources are read, and the writer of them.

A source repeats most of its texts and records: thousands of specs share a
configuration, a stack or a size. So each value is stored once, in a dictionary that
gives it a number (`Texts`), and a row of a table (`TABLES`) has only numbers:

    listings:  document  spec  configuration  stacks  size  tarball
               1         7     3              1       0     2

is the seventh hash with the third configuration, in document 1. Numbers count from 1; 0
means that the source does not give the value.

A reader fills a `Writer`. Worker processes send its `Columns` to their parent, which is
quick, because arrays of numbers need no decoding.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spack_cache_db.errors import Fault
from spack_cache_db.model import NO_COMPILER, Configuration
from spack_cache_db.sources.facts import (
    Document,
    Install,
    ModuleFacts,
    NodeFacts,
    Origin,
    PackageFacts,
    Stacks,
    Tarball,
)
from spack_cache_db.spack.nodes import Use

if TYPE_CHECKING:
    # Commands that read no database, such as `fetch`, start without NumPy.
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T", bound=Hashable)


class Interned(dict[T, int], Generic[T]):
    """Assigns consecutive numbers to values: `interned[value]`.

    A new value gets the next number. `things` has the values in the order of their
    numbers, so number 1 is `things[0]`.
    """

    __slots__ = ("things",)

    def __init__(self) -> None:
        self.things: list[T] = []

    def __missing__(self, value: T) -> int:
        self.things.append(value)
        number = len(self.things)
        self[value] = number
        return number

    def extend(self, values: Sequence[T]) -> None:
        """Assign numbers to distinct values that have none; `ValueError` for others."""
        first = len(self.things) + 1
        self.things.extend(values)
        self.update(zip(values, range(first, first + len(values)), strict=True))
        if len(self) < len(self.things):
            raise ValueError("a value is repeated")


@dataclass(frozen=True, slots=True)
class Texts:
    """The dictionaries of numbered values, of texts and of records: `hashes[text]` is
    the number of a hash.
    """

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
        things = {}
        for attribute in fields(self):
            dictionary = getattr(self, attribute.name)
            things[attribute.name] = dictionary.things
        return things


TABLES = {
    # Specs in releases; several documents may list one spec in one release.
    "listings": ("document", "spec", "configuration", "stacks", "size", "tarball"),
    # Specs that a document has a record of, without a binary.
    "unlisted": ("document", "spec", "configuration"),
    # Specs that a document names as dependencies, without a record.
    "unrecorded": ("document", "spec", "configuration"),
    # The records of indexes, and the lists of dependencies in them. Several documents
    # may share the list of a spec.
    "records": ("document", "spec", "node", "install", "build_spec", "edge_list"),
    "edges": ("edge_list", "dependency", "use"),
}
"""The columns of numbers, by table."""

OPTIONAL = ("size", "tarball")
"""The columns of listings in which documents may lack a value."""

DOCUMENTS = "documents"
EDGES = "edges"
EDGE_LISTS = "edge_lists"

DICTIONARIES = {
    "document": DOCUMENTS,
    "spec": "hashes",
    "configuration": "configurations",
    "stacks": "stack_sets",
    "size": "sizes",
    # The beginning of a URL, whose end follows from the configuration and the hash; or
    # the whole URL.
    "tarball": "tarballs",
    "node": "nodes",
    "install": "installs",
    "build_spec": "hashes",
    "dependency": "hashes",
    "use": "uses",
    "edge_list": EDGE_LISTS,
}
"""What the numbers of each column refer to: a dictionary of `Texts`, `DOCUMENTS`, which
is the list of documents, or `EDGE_LISTS`, the lists in the table `EDGES`.
"""


def _no_rows() -> dict[str, dict[str, array[int]]]:
    """Return the tables without a row; "I" is an array of unsigned numbers."""
    tables = {}
    for table, columns in TABLES.items():
        tables[table] = {name: array("I") for name in columns}
    return tables


@dataclass(slots=True)
class Columns:
    """The content of a unit of the input, which is what one process reads at a time.

    Attributes:
        documents: its pages and indexes; the first has the number 1.
        things: the values of each dictionary of `Texts`.
        tables: the numbers of each table, by column.
        packages: package data.
        modules: environment modules.
        origins: the options with which a database was built, if the unit is one.
        left_out: the path and the message of each document that such a database left
            out.
        faults: why some files could not be read.
        bytes_read: the size of its files; mirrors count as nothing.
        checksum: the checksum of its files (`sources.checksums`); None if it is not
            known.
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
    checksum: int | None = None


class Writer:
    """Fills columns: a reader adds one document after another, each with its rows.

    Attributes:
        texts: the dictionaries, from which a reader gets the numbers of its values.
        columns: the columns so far.
    """

    def __init__(self) -> None:
        self.texts = Texts()
        # The lists of values are shared, so those that are added are in both.
        self.columns = Columns(things=self.texts.things())
        # The methods that append a number to each column, by table.
        self._append_to = {}
        for table, columns in self.columns.tables.items():
            self._append_to[table] = [column.append for column in columns.values()]
        # The number of edges before those of the last document.
        self._edges_before = 0

    def add(self, document: Document) -> int:
        """Add a document and return its number."""
        self.columns.documents.append(document)
        self._edges_before = len(self.columns.tables[EDGES]["use"])
        return len(self.columns.documents)

    def remove(self, document: int) -> None:
        """Remove the document that was added last, with all of its rows.

        A reader does so if it finds a fault after it has added rows.
        """
        del self.columns.documents[document - 1 :]
        # Rows were added document by document, so those of the last are at the end.
        for table, rows in self.columns.tables.items():
            start = self._edges_before
            if table != EDGES:
                start = bisect_left(rows["document"], document)
            for column in rows.values():
                del column[start:]

    def add_edges(self, edges: Collection[tuple[int, int]]) -> int:
        """Add a list of dependencies, each with its use, and return the number of the
        list; that of an empty list is 0.
        """
        if not edges:
            return 0
        rows = self.columns.tables[EDGES]
        numbers = rows["edge_list"]
        number = numbers[-1] + 1 if numbers else 1
        numbers.extend([number] * len(edges))
        dependencies, uses = zip(*edges, strict=True)
        rows["dependency"].extend(dependencies)
        rows["use"].extend(uses)
        return number

    def extend(
        self, table: str, columns: Mapping[str, npt.NDArray[np.integer[Any]]]
    ) -> None:
        """Append rows, such as those of several documents.

        Args:
            table: one of `TABLES`.
            columns: the numbers in each of its columns; others are left out.
        """
        for name, numbers in self.columns.tables[table].items():
            numbers.frombytes(columns[name].astype("uint32").tobytes())

    def append_row(self, table: str, *row: int) -> None:
        """Append one row to one of `TABLES`: the number in each of its columns."""
        for append, number in zip(self._append_to[table], row, strict=True):
            append(number)

    def add_record(
        self,
        configuration: int,
        listing: tuple[int, int, int] | None,
        edges: Collection[tuple[int, int]],
        *,
        document: int,
        spec: int,
        node: int,
        install: int,
        build_spec: int,
    ) -> None:
        """Add the record of a spec, from an index or from a database that was built of
        indexes. All arguments are numbers.

        Args:
            configuration: its configuration.
            listing: the stacks, size and tarball of its binary; None if it has none.
            edges: its dependencies, each with its use.
            document: the index.
            spec: its hash.
            node: its node.
            install: its installation; 0 if it is not installed.
            build_spec: the hash of the spec that it is spliced from; 0 if it is not.
        """
        if listing is None:
            self.append_row("unlisted", document, spec, configuration)
        else:
            self.append_row("listings", document, spec, configuration, *listing)
        edge_list = self.add_edges(edges)
        self.append_row("records", document, spec, node, install, build_spec, edge_list)

    def add_unrecorded(self, document: int, spec: int, package: str) -> None:
        """Add a spec that an index names as a dependency, without a record of it."""
        # Only the name is known.
        configuration = Configuration(
            package=package,
            version="",
            compiler=NO_COMPILER,
            os="",
            platform="",
            target="",
            variants=(),
        )
        number = self.texts.configurations[configuration]
        self.append_row("unrecorded", document, spec, number)
