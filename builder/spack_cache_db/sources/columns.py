"""The one form in which every source says what it holds: each text once, each listing six numbers.

A reader fills a `Writer`, and whatever lies behind knows the `Columns` alone. Worker processes
ship them to their parent, which has to merge those of all: so texts are interned here, and
listings are arrays of unsigned integers.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from spack_cache_db.errors import Fault
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources.graph import Graph, Node, Use
from spack_cache_db.sources.tarballs import Tarball

Stacks = tuple[str, ...]
"""A set of stacks: sorted, each once."""

T = TypeVar("T", bound=Hashable)


class PageFacts(NamedTuple):
    """What is known of a page beyond what every document has: its package, its era."""

    package: str
    format: str


class IndexFacts(NamedTuple):
    """What is known of an index beyond what every document has.

    `format` is the version of its database, or how the spec files of a mirror lie; `url` is the
    address of the mirror, if anything says it. `whole` is the location of what has all binaries of
    its release and stack, a mirror or an index that lies alone; None for a spec file, which has
    one of them. `binaries` says how many the index lists.
    """

    stack: str
    format: str
    url: str | None
    whole: str | None
    binaries: int = 0


class Document(NamedTuple):
    """A piece of the input that tells of one release: a page, the index of a mirror.

    `location` is the path as the user would type it, for messages; `path` is the name within the
    input, and goes into the database. `page` is set if the document is a page, which tells of one
    package; `index_facts` if it is an index.
    """

    location: str
    path: str
    sha256: str
    release: str
    problems: tuple[Problem, ...] = ()
    page: PageFacts | None = None
    index_facts: IndexFacts | None = None


class ListingColumns(NamedTuple):
    """Parallel arrays, one number in each for a listing: indices into the texts of `Columns`.

    They count from 0, but `size` and `tarball` from 1: there, 0 means that the source knows none.
    Several documents may list one spec in one release.
    """

    document: array[int]
    spec: array[int]
    configuration: array[int]
    stacks: array[int]
    size: array[int]
    tarball: array[int]


class UnlistedColumns(NamedTuple):
    """Parallel arrays, for specs that a document knows of without listing them (as above)."""

    document: array[int]
    spec: array[int]
    configuration: array[int]


def _no_listings() -> ListingColumns:
    return ListingColumns(*(array("I") for _ in ListingColumns._fields))


def _no_unlisted() -> UnlistedColumns:
    return UnlistedColumns(*(array("I") for _ in UnlistedColumns._fields))


@dataclass(slots=True)
class Columns:
    """What a unit of the input says; `bytes_read` is the size of its files."""

    documents: list[Document] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    configurations: list[Configuration] = field(default_factory=list)
    stack_sets: list[Stacks] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    tarballs: list[Tarball] = field(default_factory=list)
    listings: ListingColumns = field(default_factory=_no_listings)
    unlisted: UnlistedColumns = field(default_factory=_no_unlisted)
    graph: Graph = field(default_factory=Graph)
    faults: list[Fault] = field(default_factory=list)
    bytes_read: int = 0


class Interned(dict[T, int], Generic[T]):
    """Numbers of things: `interned[thing]` is its own, or the next one if the thing is new.

    `things` has them in the order of their numbers.
    """

    __slots__ = ("things",)

    def __init__(self) -> None:
        self.things: list[T] = []

    def __missing__(self, thing: T) -> int:
        number = self[thing] = len(self.things)
        self.things.append(thing)
        return number


class Texts:
    """What listings refer to by number, each once: `hashes[text]` is the number of a hash."""

    __slots__ = (
        "configurations",
        "hashes",
        "nodes",
        "old_hashes",
        "rests",
        "sizes",
        "stack_sets",
        "tarballs",
        "uses",
    )

    def __init__(self) -> None:
        self.hashes = Interned[str]()
        self.configurations = Interned[Configuration]()
        self.stack_sets = Interned[Stacks]()
        self.sizes = Interned[str]()
        self.tarballs = Interned[Tarball]()
        self.nodes = Interned[Node]()
        self.uses = Interned[Use]()
        self.rests = Interned[str]()
        self.old_hashes = Interned[str]()


class Writer:
    """Fills columns: a reader asks `texts` for numbers, and adds document after document.

    A number that no listing uses in the end does no harm.
    """

    def __init__(self) -> None:
        self.texts = Texts()
        self.columns = Columns(
            hashes=self.texts.hashes.things,
            configurations=self.texts.configurations.things,
            stack_sets=self.texts.stack_sets.things,
            sizes=self.texts.sizes.things,
            tarballs=self.texts.tarballs.things,
            graph=Graph(
                self.texts.nodes.things,
                self.texts.uses.things,
                self.texts.rests.things,
                self.texts.old_hashes.things,
            ),
        )

    def add(
        self,
        document: Document,
        *,
        spec: Sequence[int],
        configuration: Sequence[int],
        stacks: Sequence[int],
        size: Sequence[int],
        tarball: Sequence[int],
    ) -> int:
        """Append a document and its listings (see `ListingColumns`); return its number."""
        columns = self.columns
        number = len(columns.documents)
        columns.documents.append(document)
        listings = columns.listings
        listings.document.extend([number] * len(spec))
        listings.spec.extend(spec)
        listings.configuration.extend(configuration)
        listings.stacks.extend(stacks)
        listings.size.extend(size)
        listings.tarball.extend(tarball)
        return number

    def add_unlisted(
        self, document: int, *, spec: Sequence[int], configuration: Sequence[int]
    ) -> None:
        """Append specs that a document knows of, with their configurations, and does not list."""
        unlisted = self.columns.unlisted
        unlisted.document.extend([document] * len(spec))
        unlisted.spec.extend(spec)
        unlisted.configuration.extend(configuration)

    def add_graph(
        self, document: int, records: Sequence[Sequence[int]], edges: Sequence[Sequence[int]]
    ) -> None:
        """Append the columns of `RecordColumns` and `EdgeColumns` behind their first.

        A document that has any is one with `index_facts`.
        """
        graph = self.columns.graph
        for columns, more in ((graph.records, records), (graph.edges, edges)):
            columns[0].extend([document] * len(more[0]))
            for column, values in zip(columns[1:], more, strict=True):
                column.extend(values)
