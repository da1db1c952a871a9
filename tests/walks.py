"""A walk over the records of small sources: a second answer to a query, in plain Python."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from spack_cache_db.query.conditions import VIRTUALS, UnsupportedQuery, compiler_of_pages
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
from tests.matching import matches
from tests.small_sources import MIRRORS, Sources

OWN = """
SELECT hash, packages.name, versions.name, compilers.name, operating_systems.name, platforms.name,
  targets.name, variant_sets.text, specs.release_count > 0
FROM specs JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN platforms ON platforms.id = configurations.platform
JOIN targets ON targets.id = configurations.target
JOIN variant_sets ON variant_sets.id = configurations.variants
"""
SHOWN = """
SELECT hash, package, version, compiler, os, platform, target, variants
FROM build_listings WHERE release = ?
"""
Truth = bool | None
"""Whether a spec satisfies a query; None where the sources do not say."""


@dataclass
class Walk:
    """What a walk over the records finds; configurations are those of the file."""

    drawn: Sources
    own: dict[str, Configuration]
    binaries: set[str]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    mute: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        drawn: Sources,
        conn: sqlite3.Connection,
        release: str | None = None,
        stack: str | None = None,
    ) -> Walk:
        """Return a walk over what was drawn; what the mirror of a release and stack says counts."""
        rows = [*conn.execute(OWN)]
        own = {row[0]: Configuration._make((*row[1:7], tuple(row[7].split()))) for row in rows}
        walk = cls(drawn, own, {row[0] for row in rows if row[-1]})
        for place in MIRRORS:
            for each in drawn.mirrors.get(place, ("", []))[1]:
                one = each["spec"]
                walk.edges.setdefault(one["hash"], [_plain(each) for each in one["dependencies"]])
        for place in sorted(MIRRORS, key=lambda each: (each[0] != release, each[1] != stack)):
            version, records = drawn.mirrors.get(place, ("", []))
            for each in records:
                one = each["spec"]
                if one["hash"] not in walk.records and version == "6":
                    walk.mute.add(one["hash"])
                walk.records.setdefault(one["hash"], one)
        return walk

    def satisfies(
        self, dag_hash: str, query: SpecQuery, shown: Configuration | None = None
    ) -> Truth:
        """Return whether a spec satisfies a query, by its own configuration or the one shown."""
        plain = SpecQuery(
            query.name,
            None,
            query.versions,
            tuple(each for each in query.variants if not each.propagate),
            (),
            query.os,
            query.platform,
            query.target,
            query.hash,
        )
        if query.name in VIRTUALS or not matches(plain, shown or self.own[dag_hash], dag_hash):
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
        """Return what is reached over edges of these types; one without types is of any."""
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
        if edge.when is None:
            return self._has_edge(dag_hash, edge)
        met = self.satisfies(dag_hash, edge.when)
        if met is False:
            return True
        found = self._has_edge(dag_hash, edge)
        return None if met is None and not found else found

    def _has_edge(self, dag_hash: str, edge: Dependency) -> Truth:
        if dag_hash not in self.records:
            return self._shown(dag_hash, edge) if edge.direct else None
        found = [*self.edges[dag_hash], *self._recorded_compiler(dag_hash)]
        if not edge.direct:
            found += [
                each
                for below in self._closure(dag_hash, {"link", "run"})
                for each in self.edges[below]
                if not each["types"] or each["types"] & {"link", "run"}
            ]
        truth = any(self._is_as_asked(each, edge) for each in found)
        asked = {*edge.virtuals, edge.node.name} & VIRTUALS - {"c", "cxx", "fortran"}
        return None if not truth and asked and dag_hash in self.mute else truth

    def _recorded_compiler(self, dag_hash: str) -> Iterator[dict[str, Any]]:
        """Yield the compiler that a record from before Spack 1.0 names, as an edge."""
        one = self.records[dag_hash]
        if "compiler" in one or "compiler" in one["annotations"]:
            virtuals = {"c", "cxx", "fortran"}
            compiler = self.own[dag_hash].compiler
            yield {"compiler": compiler, "types": {"build"}, "virtuals": virtuals}

    def _is_as_asked(self, found: dict[str, Any], edge: Dependency) -> bool:
        """Return whether an edge satisfies one of a query."""
        asked = edge.node
        if not (
            found["types"].issuperset(edge.deptypes) and found["virtuals"].issuperset(edge.virtuals)
        ):
            return False
        if "compiler" in found:
            is_bare = replace(asked, text="") == SpecQuery(
                asked.name,
                asked.namespace,
                asked.versions,
                tuple(each for each in asked.variants if each.propagate),
            )
            constraint = CompilerConstraint(asked.name, asked.versions)
            if asked.name in found["virtuals"]:
                return not asked.dependencies
            return is_bare and compiler_matches(constraint, found["compiler"])
        if asked.name in found["virtuals"]:
            asked = SpecQuery(dependencies=asked.dependencies)
        return self.satisfies(found["hash"], asked) is True

    def _shown(self, dag_hash: str, edge: Dependency) -> Truth:
        """Return whether the page of a spec shows such a compiler."""
        try:
            constraint = compiler_of_pages(replace(edge, when=None))
        except UnsupportedQuery:
            return None
        return compiler_matches(constraint, self.own[dag_hash].compiler)


def shown_in(conn: sqlite3.Connection, release: str) -> dict[str, Configuration]:
    """Return what a release shows of each spec that it lists."""
    return {
        dag_hash: Configuration._make((*words, tuple(variants.split())))
        for dag_hash, *words, variants in conn.execute(SHOWN, [release])
    }


def _plain(one: dict[str, Any]) -> dict[str, Any]:
    how = one.get("parameters", {"deptypes": one.get("type", ()), "virtuals": ()})
    types, virtuals = {*how["deptypes"]}, {*how["virtuals"]}
    return {"hash": one["hash"], "types": types, "virtuals": virtuals}


def left_out(notes: tuple[str, ...]) -> int:
    """Return how many specs may satisfy the query besides, as the notes say."""
    counts = [int(note.split()[0]) for note in notes if "may satisfy this" in note]
    return counts[0] if counts else 0
