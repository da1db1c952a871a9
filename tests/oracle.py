"""The naive answer to every question, from what the sources list: tests compare answers
with it.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.pages import (
    UnsupportedQuery,
    check_answerable,
    compiler_of_pages,
)
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.releases import sort_releases
from spack_cache_db.spack.facts import VIRTUALS
from spack_cache_db.spack.matching import (
    compiler_matches,
    flags_match,
    variant_matches,
    version_matches,
)
from spack_cache_db.spack.normal_forms import Variant, parse_variant
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
)
from spack_cache_db.spack.targets import Build, build_runs_on, target_matches
from tests.contradictions import Listing
from tests.small_sources import MIRRORS, Sources

Answer = dict[Configuration, set[str]]
"""Hashes by their configuration."""
RUN_TIME = {"link", "run"}
ANY_TIME = {"build", "link", "run", "test"}
COMPILED = {"c", "cxx", "fortran"}
"""The languages that a compiler of an old record provides."""
Truth = bool | None
"""Whether a spec satisfies a query; None if the sources do not say."""


def matches(query: SpecQuery, spec: Configuration, dag_hash: str) -> bool:
    """Return whether a spec, as far as a page shows it, satisfies a query."""
    check_answerable(query)
    compilers = [compiler_of_pages(edge) for edge in query.dependencies]
    variants = [parse_variant(text) for text in spec.variants]
    if query.name not in (None, spec.package):
        return False
    if not dag_hash.startswith(query.hash or ""):
        return False
    if query.os not in (None, spec.os):
        return False
    if query.platform not in (None, spec.platform):
        return False
    if not target_matches(query.target, spec.target):
        return False
    if not version_matches(query.versions, spec.version):
        return False
    if not all(compiler_matches(compiler, spec.compiler) for compiler in compilers):
        return False
    return all(_has_variant(variants, constraint) for constraint in query.variants)


def _has_variant(variants: list[Variant], constraint: VariantConstraint) -> bool:
    return any(variant_matches(constraint, variant) for variant in variants)


@dataclass(frozen=True)
class Oracle:
    """Answers from what pages and indexes list, one by one: `said` is what each source
    lists.
    """

    said: list[Listing]

    @cached_property
    def in_order(self) -> list[Listing]:
        """The listings in the order in which they count: pages before indexes of a
        release.
        """

        def position(listing: Listing) -> tuple[int, bool, str]:
            is_of_index = listing.index is not None
            return (
                self.releases.index(listing.release),
                is_of_index,
                listing.index or "",
            )

        return sorted(self.said, key=position)

    @cached_property
    def releases(self) -> list[str]:
        """The releases, in the order of the database."""
        return sort_releases({listing.release for listing in self.said})

    @cached_property
    def shown(self) -> dict[str, dict[str, Listing]]:
        """The binaries of each release by hash, in the stacks of all of its sources."""
        shown: dict[str, dict[str, Listing]] = {name: {} for name in self.releases}
        for listing in self.in_order:
            if not listing.is_binary:
                continue
            dag_hash = listing.dag_hash
            of_release = shown[listing.release]
            if dag_hash not in of_release:
                # A hash has one configuration, whatever other sources list.
                of_release[dag_hash] = replace(
                    listing,
                    configuration=self.own[dag_hash],
                    said=listing.configuration,
                )
            first = of_release[dag_hash]
            stacks = tuple(sorted({*first.stacks, *listing.stacks}))
            of_release[dag_hash] = replace(first, stacks=stacks)
        return shown

    @cached_property
    def listings(self) -> list[Listing]:
        """The binaries of all releases."""
        listings: list[Listing] = []
        for of_release in self.shown.values():
            listings += of_release.values()
        return listings

    @cached_property
    def stacks(self) -> list[str]:
        """The stacks of all releases, but for root."""
        return sorted(_stacks(self.listings))

    @cached_property
    def own(self) -> dict[str, Configuration]:
        """The configuration of each binary: that of the first source which lists it."""
        own: dict[str, Configuration] = {}
        for listing in self.in_order:
            if listing.is_binary:
                own.setdefault(listing.dag_hash, listing.configuration)
        return own

    @cached_property
    def showing(self) -> dict[Configuration, list[str]]:
        """The releases that list each configuration, in order."""
        showing: dict[Configuration, list[str]] = {}
        for listing in self.listings:
            releases = showing.setdefault(listing.configuration, [])
            if listing.release not in releases:
                releases.append(listing.release)
        return showing

    @cached_property
    def packages(self) -> dict[str, set[str]]:
        """The releases that list a spec of each package, or have a page of it."""
        on_pages = [listing for listing in self.said if listing.index is None]
        packages: dict[str, set[str]] = {}
        for listing in (*self.listings, *on_pages):
            package = listing.configuration.package
            packages.setdefault(package, set()).add(listing.release)
        return packages

    @cached_property
    def recorded(self) -> dict[str, Listing]:
        """The first record of each spec in an index."""
        recorded: dict[str, Listing] = {}
        for listing in self.in_order:
            if listing.index is not None:
                recorded.setdefault(listing.dag_hash, listing)
        return recorded

    def of(self, dag_hash: str) -> dict[str, Any]:
        """Return releases, stacks and days of a hash."""
        listings = {}
        for release, of_release in self.shown.items():
            if dag_hash in of_release:
                listings[release] = of_release[dag_hash]
        first_seen, last_seen = days_of(listings)
        return {
            "releases": tuple(listings),
            "stacks": tuple(sorted(_stacks(listings.values()))),
            "first_seen": first_seen,
            "last_seen": last_seen,
        }

    def stacks_of(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the stacks in which some release lists a configuration."""
        listings = [
            listing
            for listing in self.listings
            if listing.configuration == configuration
        ]
        return tuple(sorted(_stacks(listings)))

    def order(self, dag_hash: str) -> tuple[int, str]:
        """Return the key that sorts specs of a configuration, current ones first."""
        newest_release = self.of(dag_hash)["releases"][0]
        return self.releases.index(newest_release), dag_hash

    def counting(
        self, release: str | None = None, stack: str | None = None
    ) -> dict[str, Configuration]:
        """Return the configuration of each binary of a release and a stack."""
        return {
            listing.dag_hash: listing.configuration
            for listing in self.listings
            if release in (None, listing.release) and stack in (None, *listing.stacks)
        }

    def answer(
        self,
        text: str,
        release: str | None = None,
        stack: str | None = None,
        host: str | None = None,
        os: str | None = None,
        platform: str | None = None,
    ) -> Answer:
        """Return the specs that satisfy a query, by configuration."""
        query = parse_query(text)
        answer: Answer = {}
        for dag_hash, configuration in self.counting(release, stack).items():
            if os not in (None, configuration.os):
                continue
            if platform not in (None, configuration.platform):
                continue
            build = Build(configuration.platform, configuration.target)
            if host is not None and not build_runs_on(build, host):
                continue
            # A record without a compiler has none, because it has no edges.
            record = self.recorded.get(dag_hash)
            has_none = record is not None and record.configuration.compiler == "none"
            if query.dependencies and has_none:
                continue
            if matches(query, configuration, dag_hash):
                answer.setdefault(configuration, set()).add(dag_hash)
        return answer


def _stacks(listings: Iterable[Listing]) -> set[str]:
    """Return the stacks of some listings, but for root."""
    stacks: set[str] = set()
    for listing in listings:
        stacks.update(listing.stacks)
    return stacks - {"root"}


def kind_of(release: str) -> str:
    """Return the kind of a release of these tests."""
    if release == "develop":
        return "branch"
    kind_of_letter = {"d": "snapshot", "v": "release", "m": "other"}
    return kind_of_letter[release[0]]


def day_of(release: str) -> str | None:
    """Return the day of a snapshot."""
    return release[-10:] if kind_of(release) == "snapshot" else None


def days_of(releases: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the first and the last day of the snapshots among some releases."""
    days = [day for day in map(day_of, releases) if day is not None]
    if not days:
        return None, None
    return min(days), max(days)


def is_current(releases: Iterable[str]) -> bool:
    """Return whether one of some releases has no day, such as a branch."""
    return any(day_of(release) is None for release in releases)


@dataclass
class Edge:
    """An edge of a record: to the spec with a hash, or to a compiler of old records."""

    hash: str
    types: set[str]
    virtuals: set[str]
    compiler: str = ""

    def is_of(self, types: set[str]) -> bool:
        """Return whether the edge is of one of these types; without types, of any."""
        return not self.types or not self.types.isdisjoint(types)


@dataclass
class Walk:
    """Which specs satisfy a query, by a walk over the records that were drawn.

    Attributes:
        own: the configuration of each spec by hash.
        binaries: the hashes of the specs with a binary.
        records: the first record of each spec.
        edges: the edges of each record.
        without_virtuals: the specs whose records are of a version without virtuals.
    """

    own: dict[str, Configuration]
    binaries: set[str]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, list[Edge]] = field(default_factory=dict)
    without_virtuals: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, drawn: Sources, conn: sqlite3.Connection) -> Self:
        """Return a walk over what was drawn; the first of several records of a spec
        counts.
        """
        # The configurations are those of the database, which other tests check.
        sql = "SELECT hash, configuration_id, release_count FROM specs"
        rows = conn.execute(sql).fetchall()
        ids = [configuration for _, configuration, _ in rows]
        found = configurations_by_id(read_lookups(conn), ids)
        own = {}
        binaries = set()
        for (dag_hash, _, release_count), spec in zip(rows, found, strict=True):
            own[dag_hash] = spec.configuration
            if release_count:
                binaries.add(dag_hash)
        walk = cls(own, binaries)
        for mirror in MIRRORS:
            version, records = drawn.mirrors.get(mirror, ("", []))
            for record in records:
                walk._add(record["spec"], version)
        return walk

    def _add(self, record: dict[str, Any], version: str) -> None:
        dag_hash = record["hash"]
        if dag_hash in self.records:
            return
        self.records[dag_hash] = record
        self.edges[dag_hash] = [_edge(edge) for edge in record["dependencies"]]
        if version == "6":
            self.without_virtuals.add(dag_hash)

    def satisfies(self, dag_hash: str, query: SpecQuery) -> Truth:
        """Return whether a spec satisfies a query."""
        # First what a page shows.
        on_pages = replace(
            query,
            namespace=None,
            flags=(),
            dependencies=(),
            variants=tuple(
                constraint for constraint in query.variants if not constraint.propagate
            ),
        )
        if query.name in VIRTUALS or not matches(
            on_pages, self.own[dag_hash], dag_hash
        ):
            return False
        # Then what only records have.
        parts = list(self._truths_of_record(dag_hash, query))
        parts += [self._satisfies_edge(dag_hash, edge) for edge in query.dependencies]
        if False in parts:
            return False
        return None if None in parts else True

    def _truths_of_record(self, dag_hash: str, query: SpecQuery) -> Iterator[Truth]:
        """Yield whether a record has the namespace, the flags and the variants of a
        query.
        """
        record = self.records.get(dag_hash)
        if query.namespace is not None:
            yield None if record is None else record["namespace"] == query.namespace
        if query.flags:
            if record is None:
                yield None
            else:
                yield flags_match(query.flags, record["parameters"])
        for variant in query.variants:
            if variant.propagate:
                needed = self._closure(dag_hash, ANY_TIME)
                hashes = {dag_hash, *needed}
                agrees = all(self._agrees(each, variant) for each in hashes)
                # Without a record, the dependencies are unknown.
                yield None if agrees and record is None else agrees
            elif variant.name == "patches" and record is not None:
                sums = tuple(record["parameters"].get("patches", ()))
                yield variant_matches(variant, Variant("patches", sums, "multi"))

    def _agrees(self, dag_hash: str, constraint: VariantConstraint) -> bool:
        """Return whether a spec has a variant with this value, or has no such one."""
        for text in self.own[dag_hash].variants:
            variant = parse_variant(text)
            is_same = variant.name == constraint.name
            if is_same and not variant_matches(constraint, variant):
                return False
        return True

    def _closure(self, dag_hash: str, types: set[str]) -> set[str]:
        """Return the specs reached over edges of these types; one without types is of
        any.
        """
        reached: set[str] = set()
        waiting = [dag_hash]
        while waiting:
            for edge in self.edges.get(waiting.pop(), ()):
                if edge.is_of(types) and edge.hash not in reached:
                    reached.add(edge.hash)
                    waiting.append(edge.hash)
        return reached

    def _satisfies_edge(self, dag_hash: str, wanted: Dependency) -> Truth:
        """Return whether a spec has an edge that satisfies one of a query, or its
        condition not.
        """
        condition: Truth = True
        if wanted.when is not None:
            condition = self.satisfies(dag_hash, wanted.when)
        if condition is False:
            return True
        has_edge = self._has_edge(dag_hash, wanted)
        # If the condition is unknown, only an edge that exists decides.
        if condition is None and not has_edge:
            return None
        return has_edge

    def _has_edge(self, dag_hash: str, wanted: Dependency) -> Truth:
        if dag_hash not in self.records:
            return self._shows_compiler(dag_hash, wanted) if wanted.direct else None
        edges = [*self.edges[dag_hash], *self._recorded_compiler(dag_hash)]
        if not wanted.direct:
            for below in self._closure(dag_hash, RUN_TIME):
                edges += [edge for edge in self.edges[below] if edge.is_of(RUN_TIME)]
        if any(self._meets(edge, wanted) for edge in edges):
            return True
        # Old records do not say which virtual package a dependency provides.
        virtuals = {*wanted.virtuals, wanted.node.name} & VIRTUALS - COMPILED
        if virtuals and dag_hash in self.without_virtuals:
            return None
        return False

    def _recorded_compiler(self, dag_hash: str) -> Iterator[Edge]:
        """Yield the compiler that a record from before Spack 1.0 names, as an edge."""
        record = self.records[dag_hash]
        if "compiler" in record or "compiler" in record["annotations"]:
            compiler = self.own[dag_hash].compiler
            yield Edge("", {"build"}, COMPILED, compiler)

    def _meets(self, edge: Edge, wanted: Dependency) -> bool:
        """Return whether an edge satisfies one of a query."""
        node = wanted.node
        if not edge.types.issuperset(wanted.deptypes):
            return False
        if not edge.virtuals.issuperset(wanted.virtuals):
            return False
        if edge.compiler:
            return _compiler_meets(edge, node)
        # Only the name of a virtual package and its dependencies are compared.
        if node.name in edge.virtuals:
            node = SpecQuery(dependencies=node.dependencies)
        return self.satisfies(edge.hash, node) is True

    def _shows_compiler(self, dag_hash: str, wanted: Dependency) -> Truth:
        """Return whether the page of a spec shows such a compiler."""
        try:
            constraint = compiler_of_pages(replace(wanted, when=None))
        except UnsupportedQuery:
            return None
        return compiler_matches(constraint, self.own[dag_hash].compiler)


def _edge(record: dict[str, Any]) -> Edge:
    """Return an edge of any version: its types are on it, or below `parameters`."""
    if "parameters" in record:
        parameters = record["parameters"]
        types = set(parameters["deptypes"])
        return Edge(record["hash"], types, set(parameters["virtuals"]))
    return Edge(record["hash"], set(record.get("type", ())), set())


def _compiler_meets(edge: Edge, node: SpecQuery) -> bool:
    """Return whether the compiler of an old record, a name and a version, satisfies a
    query.
    """
    if node.name in edge.virtuals:
        return not node.dependencies
    propagated = tuple(variant for variant in node.variants if variant.propagate)
    bare = SpecQuery(node.name, node.namespace, node.versions, propagated)
    if replace(node, text="") != bare:
        return False
    constraint = CompilerConstraint(node.name, node.versions)
    return compiler_matches(constraint, edge.compiler)


def left_out(notes: tuple[str, ...]) -> int:
    """Return how many specs may satisfy the query besides, as the notes say."""
    for note in notes:
        if "may satisfy this" in note:
            return int(note.split()[0])
    return 0
