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
from spack_cache_db.spack.targets import runs_on, target_matches
from tests.contradictions import Listing
from tests.small_sources import MIRRORS, Sources

Answer = dict[Configuration, set[str]]
"""Hashes by their configuration."""
RUN = {"link", "run"}
COMPILED = {"c", "cxx", "fortran"}
Truth = bool | None
"""Whether a spec satisfies a query; None if the sources do not say."""


def matches(query: SpecQuery, spec: Configuration, dag_hash: str) -> bool:
    """Return whether a spec, as far as a page shows it, satisfies a query."""
    check_answerable(query)
    compilers = map(compiler_of_pages, query.dependencies)
    return (
        query.name in (None, spec.package)
        and dag_hash.startswith(query.hash or "")
        and query.os in (None, spec.os)
        and query.platform in (None, spec.platform)
        and target_matches(query.target, spec.target)
        and version_matches(query.versions, spec.version)
        and all(compiler_matches(compiler, spec.compiler) for compiler in compilers)
        and all(
            any(variant_matches(asked, parse_variant(text)) for text in spec.variants)
            for asked in query.variants
        )
    )


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
        return sorted(
            self.said,
            key=lambda each: (
                self.releases.index(each.release),
                each.index is not None,
                each.index,
            ),
        )

    @cached_property
    def releases(self) -> list[str]:
        """The releases, in the order of the database."""
        return sort_releases({each.release for each in self.said})

    @cached_property
    def shown(self) -> dict[str, dict[str, Listing]]:
        """The binaries of each release by hash, in the stacks of all of its sources."""
        found: dict[str, dict[str, Listing]] = {name: {} for name in self.releases}
        for each in self.in_order:
            if each.is_binary:
                own = replace(
                    each, configuration=self.own[each.dag_hash], said=each.configuration
                )
                first = found[each.release].setdefault(each.dag_hash, own)
                stacks = tuple(sorted({*first.stacks, *each.stacks}))
                found[each.release][each.dag_hash] = replace(first, stacks=stacks)
        return found

    @cached_property
    def listings(self) -> list[Listing]:
        """The binaries of all releases."""
        return [each for some in self.shown.values() for each in some.values()]

    @cached_property
    def stacks(self) -> list[str]:
        """The stacks of all releases, but for root."""
        return sorted(
            {stack for each in self.listings for stack in each.stacks} - {"root"}
        )

    @cached_property
    def own(self) -> dict[str, Configuration]:
        """The configuration of each binary: that of the first source which lists it."""
        binaries = [each for each in self.in_order if each.is_binary]
        return {each.dag_hash: each.configuration for each in reversed(binaries)}

    @cached_property
    def showing(self) -> dict[Configuration, list[str]]:
        """The releases that list each configuration, in order."""
        found: dict[Configuration, list[str]] = {
            each.configuration: [] for each in self.listings
        }
        for name, listings in self.shown.items():
            for configuration in dict.fromkeys(
                each.configuration for each in listings.values()
            ):
                found[configuration].append(name)
        return found

    @cached_property
    def packages(self) -> dict[str, set[str]]:
        """The releases that list a spec of each package, or have a page of it."""
        found: dict[str, set[str]] = {}
        for each in (
            *self.listings,
            *(each for each in self.said if each.index is None),
        ):
            found.setdefault(each.configuration.package, set()).add(each.release)
        return found

    @cached_property
    def recorded(self) -> dict[str, Listing]:
        """The first record of each spec in an index."""
        indexed = [each for each in self.in_order if each.index is not None]
        return {each.dag_hash: each for each in reversed(indexed)}

    def of(self, dag_hash: str) -> dict[str, Any]:
        """Return releases, stacks and days of a hash."""
        mine = {
            name: some[dag_hash]
            for name, some in self.shown.items()
            if dag_hash in some
        }
        first, last = days_of(mine)
        stacks = {stack for each in mine.values() for stack in each.stacks} - {"root"}
        seen = {"first_seen": first, "last_seen": last}
        return {"releases": tuple(mine), "stacks": tuple(sorted(stacks)), **seen}

    def stacks_of(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the stacks in which some release lists a configuration."""
        shown = (each for each in self.listings if each.configuration == configuration)
        return tuple(
            sorted({stack for each in shown for stack in each.stacks} - {"root"})
        )

    def order(self, dag_hash: str) -> tuple[int, str]:
        """Return the key that sorts specs of a configuration, current ones first."""
        return self.releases.index(self.of(dag_hash)["releases"][0]), dag_hash

    def counting(
        self, release: str | None = None, stack: str | None = None
    ) -> dict[str, Configuration]:
        """Return the configuration of each binary of a release and a stack."""
        return {
            each.dag_hash: each.configuration
            for each in self.listings
            if release in (None, each.release) and stack in (None, *each.stacks)
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
        found: Answer = {}
        for dag_hash, each in self.counting(release, stack).items():
            is_there = os in (None, each.os) and platform in (None, each.platform)
            is_there = is_there and (host is None or runs_on(each.target, host))
            record = self.recorded.get(dag_hash) if query.dependencies else None
            # A record without a compiler has none, because it has no edges.
            has_any = record is None or record.configuration.compiler != "none"
            if is_there and has_any and matches(query, each, dag_hash):
                found.setdefault(each, set()).add(dag_hash)
        return found


def kind_of(release: str) -> str:
    """Return the kind of a release of these tests."""
    kinds = {"d": "snapshot", "v": "release", "m": "other"}
    return kinds[release[0]] if release != "develop" else "branch"


def day_of(release: str) -> str | None:
    """Return the day of a snapshot."""
    return release[-10:] if kind_of(release) == "snapshot" else None


def days_of(releases: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the first and the last day of the snapshots among some releases."""
    days = sorted(day for name in releases if (day := day_of(name)))
    return (days[0], days[-1]) if days else (None, None)


@dataclass
class Walk:
    """Which specs satisfy a query, by a walk over the records that were drawn."""

    own: dict[str, Configuration]
    binaries: set[str]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    mute: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, drawn: Sources, conn: sqlite3.Connection) -> Self:
        """Return a walk over what was drawn; the first of several records of a spec
        counts.
        """
        rows = conn.execute(
            "SELECT hash, configuration, release_count FROM specs"
        ).fetchall()
        found = configurations_by_id(read_lookups(conn), [each for _, each, _ in rows])
        own = {row[0]: one.configuration for row, one in zip(rows, found, strict=True)}
        walk = cls(own, {row[0] for row in rows if row[2]})
        for place in MIRRORS:
            version, records = drawn.mirrors.get(place, ("", []))
            for one in (each["spec"] for each in records):
                if one["hash"] not in walk.records and version == "6":
                    walk.mute.add(one["hash"])
                walk.records.setdefault(one["hash"], one)
                walk.edges.setdefault(
                    one["hash"], [_edge(each) for each in one["dependencies"]]
                )
        return walk

    def satisfies(self, dag_hash: str, query: SpecQuery) -> Truth:
        """Return whether a spec satisfies a query."""
        shown = tuple(each for each in query.variants if not each.propagate)
        plain = replace(
            query, namespace=None, flags=(), dependencies=(), variants=shown
        )
        if query.name in VIRTUALS or not matches(plain, self.own[dag_hash], dag_hash):
            return False
        parts = [*self._facts(dag_hash, query)]
        parts += [self._edge(dag_hash, each) for each in query.dependencies]
        return False if False in parts else None if None in parts else True

    def _facts(self, dag_hash: str, query: SpecQuery) -> Iterator[Truth]:
        one = self.records.get(dag_hash)
        if query.namespace is not None:
            yield None if one is None else one["namespace"] == query.namespace
        if query.flags:
            yield None if one is None else flags_match(query.flags, one["parameters"])
        for variant in query.variants:
            if variant.propagate:
                needed = self._closure(dag_hash, {"build", "link", "run", "test"})
                agrees = all(
                    self._agrees(each, variant) for each in {dag_hash, *needed}
                )
                yield None if agrees and one is None else agrees
            elif variant.name == "patches" and one is not None:
                sums = tuple(one["parameters"].get("patches", ()))
                yield variant_matches(variant, Variant("patches", sums, "multi"))

    def _agrees(self, dag_hash: str, asked: VariantConstraint) -> bool:
        variants = map(parse_variant, self.own[dag_hash].variants)
        return all(
            each.name != asked.name or variant_matches(asked, each) for each in variants
        )

    def _closure(self, dag_hash: str, types: set[str]) -> set[str]:
        """Return the specs reached over edges of these types; one without types is of
        any.
        """
        found: set[str] = set()
        waiting = [dag_hash]
        while waiting:
            for each in self.edges.get(waiting.pop(), ()):
                if (not each["types"] or each["types"] & types) and each[
                    "hash"
                ] not in found:
                    found.add(each["hash"])
                    waiting.append(each["hash"])
        return found

    def _edge(self, dag_hash: str, edge: Dependency) -> Truth:
        """Return whether a spec has an edge that satisfies one of a query, or its
        condition not.
        """
        met = True if edge.when is None else self.satisfies(dag_hash, edge.when)
        found = True if met is False else self._has_edge(dag_hash, edge)
        return None if met is None and not found else found

    def _has_edge(self, dag_hash: str, edge: Dependency) -> Truth:
        if dag_hash not in self.records:
            return self._shows_compiler(dag_hash, edge) if edge.direct else None
        found = [*self.edges[dag_hash], *self._recorded_compiler(dag_hash)]
        if not edge.direct:
            found += [
                each
                for below in self._closure(dag_hash, RUN)
                for each in self.edges[below]
                if not each["types"] or each["types"] & RUN
            ]
        truth = any(self._is_as_asked(each, edge) for each in found)
        asked = {*edge.virtuals, edge.node.name} & VIRTUALS - COMPILED
        return None if not truth and asked and dag_hash in self.mute else truth

    def _recorded_compiler(self, dag_hash: str) -> Iterator[dict[str, Any]]:
        """Yield the compiler that a record from before Spack 1.0 names, as an edge."""
        one = self.records[dag_hash]
        if "compiler" in one or "compiler" in one["annotations"]:
            compiler = self.own[dag_hash].compiler
            yield {"compiler": compiler, "types": {"build"}, "virtuals": COMPILED}

    def _is_as_asked(self, found: dict[str, Any], edge: Dependency) -> bool:
        """Return whether an edge satisfies one of a query."""
        asked = edge.node
        if not (
            found["types"].issuperset(edge.deptypes)
            and found["virtuals"].issuperset(edge.virtuals)
        ):
            return False
        if "compiler" in found:
            propagated = tuple(each for each in asked.variants if each.propagate)
            bare = SpecQuery(asked.name, asked.namespace, asked.versions, propagated)
            if asked.name in found["virtuals"]:
                return not asked.dependencies
            constraint = CompilerConstraint(asked.name, asked.versions)
            is_bare = replace(asked, text="") == bare
            return is_bare and compiler_matches(constraint, found["compiler"])
        if asked.name in found["virtuals"]:
            asked = SpecQuery(dependencies=asked.dependencies)
        return self.satisfies(found["hash"], asked) is True

    def _shows_compiler(self, dag_hash: str, edge: Dependency) -> Truth:
        """Return whether the page of a spec shows such a compiler."""
        try:
            constraint = compiler_of_pages(replace(edge, when=None))
        except UnsupportedQuery:
            return None
        return compiler_matches(constraint, self.own[dag_hash].compiler)


def _edge(one: dict[str, Any]) -> dict[str, Any]:
    how = one.get("parameters", {"deptypes": one.get("type", ()), "virtuals": ()})
    return {
        "hash": one["hash"],
        "types": {*how["deptypes"]},
        "virtuals": {*how["virtuals"]},
    }


def left_out(notes: tuple[str, ...]) -> int:
    """Return how many specs may satisfy the query besides, as the notes say."""
    counts = [int(note.split()[0]) for note in notes if "may satisfy this" in note]
    return counts[0] if counts else 0
