"""Collects what a reader finds as columns of numbers and dictionaries of texts."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

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

T = TypeVar("T", bound=Hashable)


class Interned(dict[T, int], Generic[T]):
    """Assigns consecutive numbers to values: `interned[value]`; `things` has them in
    order.
    """

    __slots__ = ("things",)

    def __init__(self) -> None:
        self.things: list[T] = []

    def __missing__(self, value: T) -> int:
        self.things.append(value)
        number = len(self.things)
        self[value] = number
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
        things = {}
        for dictionary in fields(self):
            things[dictionary.name] = getattr(self, dictionary.name).things
        return things


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
"""The dictionary of `Texts`, or `DOCUMENTS`, that the numbers of each column refer
to.
"""

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
    tables = {}
    for table, columns in TABLES.items():
        tables[table] = {name: array("I") for name in columns}
    return tables


@dataclass(slots=True)
class Columns:
    """The content of a unit of the input.

    `things` are the values of the dictionaries in `Texts`, `tables` the numbers in each
    column, and `left_out` the path and message of each document that a database left
    out.
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
    """Fills columns: a reader gets numbers from `texts`, and adds one document after
    another.
    """

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
        """Append rows of a document to one of `TABLES`, with all of its other
        columns.
        """
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

        `listing` has stacks, size and tarball of its binary; `edges` are dependencies
        and uses.
        """
        row = {"document": document, "spec": spec}
        table = "unlisted" if listing is None else "listings"
        self.append_row(table, **row, configuration=configuration, **(listing or {}))
        self.append_row("records", **row, **record)
        columns = {
            "dependency": [end for end, _ in edges],
            "use": [use for _, use in edges],
        }
        self.append("edges", document, spec=[spec] * len(edges), **columns)

    def add_unrecorded(self, document: int, spec: int, package: str) -> None:
        """Add a spec that an index names as a dependency, without a record of it."""
        # Only the name is known.
        configuration = Configuration(package, "", NO_COMPILER, "", "", "", ())
        self.append_row(
            "unrecorded",
            document=document,
            spec=spec,
            configuration=self.texts.configurations[configuration],
        )
