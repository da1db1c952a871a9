"""Answers questions about dependencies naively: what tests compare answers with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from spack_cache_db.query.conditions import VIRTUALS, UnsupportedQuery
from spack_cache_db.query.records import compiler_of_pages
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    compiler_matches,
    flags_match,
    variant_matches,
)
from spack_cache_db.spack.normal_forms import Variant, parse_variant
from tests.oracle import Rows, matches
from tests.small_sources import MIRRORS, Sources

RUN = {"link", "run"}
COMPILED = {"c", "cxx", "fortran"}
FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
SPECS = """
SELECT hash, packages.name, versions.name, compilers.compiler, operating_systems.name,
  platforms.name, targets.name, variant_sets.text, specs.configuration, specs.release_count
FROM specs JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN platforms ON platforms.id = configurations.platform
JOIN targets ON targets.id = configurations.target
JOIN variant_sets ON variant_sets.id = configurations.variants
"""
RECORDS = """
SELECT specs.hash, nodes.namespace, nodes.package_hash, nodes.parameters, nodes.external
FROM records JOIN specs ON specs.id = records.spec JOIN nodes ON nodes.id = records.node
ORDER BY records.mirror
"""
LISTED = "SELECT release, hash FROM build_listings"
RELEASES = "SELECT name FROM releases ORDER BY position"
Truth = bool | None
"""Whether a spec satisfies a query; None if the sources do not say."""


def configurations(conn: sqlite3.Connection) -> dict[str, Configuration]:
    """Return the configuration of each spec of a database, binary or not."""
    return {
        row[0]: Configuration._make((*row[1:7], tuple(row[7].split())))
        for row in conn.execute(SPECS)
    }


@dataclass
class Walk:
    """Which specs satisfy a query, by a walk over the records that were drawn."""

    own: dict[str, Configuration]
    binaries: set[str]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    mute: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, drawn: Sources, conn: sqlite3.Connection) -> Walk:
        """Return a walk over what was drawn; the first of several records of a spec counts."""
        walk = cls(configurations(conn), {row[0] for row in conn.execute(SPECS) if row[-1]})
        for place in MIRRORS:
            version, records = drawn.mirrors.get(place, ("", []))
            for one in (each["spec"] for each in records):
                if one["hash"] not in walk.records and version == "6":
                    walk.mute.add(one["hash"])
                walk.records.setdefault(one["hash"], one)
                walk.edges.setdefault(one["hash"], [_edge(each) for each in one["dependencies"]])
        return walk

    def satisfies(self, dag_hash: str, query: SpecQuery) -> Truth:
        """Return whether a spec satisfies a query."""
        shown = tuple(each for each in query.variants if not each.propagate)
        plain = replace(query, namespace=None, flags=(), dependencies=(), variants=shown)
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
                agrees = all(self._agrees(each, variant) for each in {dag_hash, *needed})
                yield None if agrees and one is None else agrees
            elif variant.name == "patches" and one is not None:
                sums = tuple(one["parameters"].get("patches", ()))
                yield variant_matches(variant, Variant("patches", sums, "multi"))

    def _agrees(self, dag_hash: str, asked: VariantConstraint) -> bool:
        variants = map(parse_variant, self.own[dag_hash].variants)
        return all(each.name != asked.name or variant_matches(asked, each) for each in variants)

    def _closure(self, dag_hash: str, types: set[str]) -> set[str]:
        """Return the specs reached over edges of these types; one without types is of any."""
        found: set[str] = set()
        waiting = [dag_hash]
        while waiting:
            for each in self.edges.get(waiting.pop(), ()):
                if (not each["types"] or each["types"] & types) and each["hash"] not in found:
                    found.add(each["hash"])
                    waiting.append(each["hash"])
        return found

    def _edge(self, dag_hash: str, edge: Dependency) -> Truth:
        """Return whether a spec has an edge that satisfies one of a query, or its condition not."""
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
            found["types"].issuperset(edge.deptypes) and found["virtuals"].issuperset(edge.virtuals)
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


@dataclass
class Graph:
    """The specs of a database, their records and edges, by hash: answers of canned queries."""

    specs: dict[str, tuple[Any, ...]]
    records: dict[str, list[tuple[Any, ...]]]
    edges: dict[str, dict[str, set[str]]]
    listed: dict[str, set[str]]

    @classmethod
    def of(cls, conn: sqlite3.Connection) -> Graph:
        """Read all of it."""
        listed: dict[str, set[str]] = {name: set() for (name,) in conn.execute(RELEASES)}
        graph = cls({row[0]: row[1:] for row in conn.execute(SPECS)}, {}, {}, listed)
        for dag_hash, *said in conn.execute(RECORDS):
            graph.records.setdefault(dag_hash, []).append(tuple(said))
        for release, dag_hash in conn.execute(LISTED):
            listed[release].add(dag_hash)
        edges = "SELECT hash, dependency_hash, types FROM dependency_edges"
        for one, other, types in conn.execute(edges):
            graph.edges.setdefault(one, {}).setdefault(other, set()).update(types.split(","))
        return graph

    def _name(self, dag_hash: str) -> tuple[str, ...]:
        return (dag_hash, *self.specs[dag_hash][:2])

    def _kind(self, dag_hash: str) -> tuple[int, int]:
        """Return whether a spec is a binary, and whether it is an external."""
        is_external = any(said[-1] is not None for said in self.records.get(dag_hash, ()))
        return int(self.specs[dag_hash][-1] > 0), int(is_external)

    def run_time(self, dag_hash: str) -> set[str]:
        """Return the specs that a spec links to or runs, directly or not, and itself."""
        found, ahead = {dag_hash}, [dag_hash]
        while ahead:
            for other, how in self.edges.get(ahead.pop(), {}).items():
                if how & RUN and other not in found:
                    found.add(other)
                    ahead.append(other)
        return found

    def _row(self, shown: str, one: str, other: str) -> tuple[Any, ...]:
        how = self.edges.get(one, {}).get(other)
        types = None if how is None else ",".join(sorted(how))
        return (*self._name(shown), *self._kind(shown), types)

    def dependencies_of_hash(self, dag_hash: str) -> Rows:
        """Return the specs that a spec needs to run, or uses itself."""
        found = self.run_time(dag_hash) | self.edges.get(dag_hash, {}).keys()
        return [self._row(other, dag_hash, other) for other in found - {dag_hash}]

    def dependents_of_hash(self, dag_hash: str) -> Rows:
        """Return the specs that use a spec, or need it to run."""
        return [
            self._row(other, other, dag_hash)
            for other in {*self.specs} - {dag_hash}
            if dag_hash in self.run_time(other) or dag_hash in self.edges.get(other, {})
        ]

    def dependencies_without_binary(self, dag_hash: str, release: str) -> Rows:
        """Return the specs that a spec needs to run, itself included, and a release lacks."""
        is_binary = bool(self.specs[dag_hash][-1])
        having = [name for name in self.listed if not is_binary or dag_hash in self.listed[name]]
        chosen = release or having[0]
        return [
            (chosen, *self._name(other), *self._kind(other), self.specs[other][-1])
            for other in self.run_time(dag_hash)
            if other not in self.listed[chosen]
        ]

    def asked(self) -> Iterator[tuple[str, dict[str, str], Rows]]:
        """Yield each query with its parameters, and the rows of its answer."""
        for dag_hash in self.specs:
            queries: list[tuple[str, dict[str, str]]] = [
                (name, {"hash": dag_hash})
                for name in (
                    "dependencies_of_hash",
                    "dependents_of_hash",
                )
            ]
            queries += [
                ("dependencies_without_binary", {"hash": dag_hash, "release": release})
                for release in ("", *self.listed)
            ]
            for query, params in queries:
                given = (dag_hash, *[*params.values()][1:])
                yield query, params, getattr(self, query)(*given)
