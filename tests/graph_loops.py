"""What a walk over the edges of a file answers to the canned queries about dependencies."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.loops import Answer

RUN = {"link", "run"}
FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
SPECS = """
SELECT specs.hash, specs.configuration, packages.name AS package, versions.name AS version,
  compilers.name AS compiler, targets.name AS target, variant_sets.text AS variants,
  specs.release_count AS releases
FROM specs JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN targets ON targets.id = configurations.target
JOIN variant_sets ON variant_sets.id = configurations.variants
"""
RECORDS = """
SELECT specs.hash, nodes.namespace, nodes.package_hash, nodes.parameters, nodes.external
FROM records JOIN specs ON specs.id = records.spec JOIN nodes ON nodes.id = records.node
ORDER BY records.mirror
"""
LISTED = """
SELECT releases.name, specs.hash FROM listings
JOIN releases ON releases.id = listings.release JOIN specs ON specs.id = listings.spec
ORDER BY releases.position
"""


@dataclass
class GraphLoop:
    """The specs of a file, what records say of them, and their edges, by hash."""

    specs: dict[str, dict[str, Any]]
    records: dict[str, list[tuple[Any, ...]]]
    edges: dict[str, dict[str, set[str]]]
    listed: dict[str, set[str]]

    @classmethod
    def of(cls, conn: sqlite3.Connection) -> GraphLoop:
        """Read all of it."""
        cursor = conn.execute(SPECS)
        names = [column[0] for column in cursor.description]
        loop = cls({row[0]: dict(zip(names, row, strict=True)) for row in cursor}, {}, {}, {})
        for dag_hash, *said in conn.execute(RECORDS):
            loop.records.setdefault(dag_hash, []).append(tuple(said))
        loop.listed = {name: set() for (name,) in conn.execute("SELECT name FROM releases")}
        for release, dag_hash in conn.execute(LISTED):
            loop.listed[release].add(dag_hash)
        for one, other, types in conn.execute(
            "SELECT hash, dependency_hash, types FROM dependency_edges"
        ):
            how = loop.edges.setdefault(one, {}).setdefault(other, set())
            how |= {*types.split(",")}
        return loop

    def words(self, dag_hash: str, *names: str) -> dict[str, Any]:
        """Return some of what a spec is, and its kind."""
        told = {name: self.specs[dag_hash][name] for name in ("hash", "package", "version", *names)}
        if self.specs[dag_hash]["releases"]:
            return told | {"kind": "binary"}
        is_external = any(said[-1] is not None for said in self.records.get(dag_hash, ()))
        return told | {"kind": "external" if is_external else "known as a dependency"}

    def run_time(self, dag_hash: str) -> set[str]:
        """Return what a spec links to or runs, directly or not, and itself."""
        found, ahead = {dag_hash}, [dag_hash]
        while ahead:
            for other, how in self.edges.get(ahead.pop(), {}).items():
                if how & RUN and other not in found:
                    found.add(other)
                    ahead.append(other)
        return found

    def _types(self, one: str, other: str) -> dict[str, str | None]:
        how = self.edges.get(one, {}).get(other)
        return {"types": None if how is None else ",".join(sorted(how))}

    def dependencies_of_hash(self, dag_hash: str) -> Answer:
        """Return what a spec needs to run, or uses itself."""
        found = self.run_time(dag_hash) | self.edges.get(dag_hash, {}).keys()
        return [self.words(other) | self._types(dag_hash, other) for other in found - {dag_hash}]

    def dependents_of_hash(self, dag_hash: str) -> Answer:
        """Return what uses a spec, or needs it to run."""
        return [
            self.words(other) | self._types(other, dag_hash)
            for other in self.specs
            if other != dag_hash
            and (dag_hash in self.run_time(other) or dag_hash in self.edges.get(other, {}))
        ]

    def dependencies_without_binary(self, dag_hash: str, release: str) -> Answer:
        """Return what a spec needs to run, itself included, and a release does not list."""
        is_binary = bool(self.specs[dag_hash]["releases"])
        having = [name for name in self.listed if not is_binary or dag_hash in self.listed[name]]
        chosen = release or having[0]
        return [
            self.words(other, "releases") | {"release": chosen}
            for other in self.run_time(dag_hash)
            if other not in self.listed[chosen]
        ]

    def differences_of_look_alikes(self, dag_hash: str) -> Answer:
        """Return what only some of the specs that look like this one need."""
        own = self.specs[dag_hash]["configuration"]
        alike = {
            one: (
                self.run_time(one),
                frozenset().union(*map(self.run_time, self.edges.get(one, ()))),
            )
            for one, each in self.specs.items()
            if each["configuration"] == own
            and (each["releases"] or one == dag_hash)
            and one in self.records
        }
        uses: tuple[dict[tuple[Any, ...], set[str]], ...] = ({}, {})
        for one, sets in alike.items():
            for held, reached in zip(uses, sets, strict=True):
                for other in reached:
                    held.setdefault(self._whole(other), set()).add(one)
        to_run, to_build = uses
        # What any of them needs to run is told by who does; the rest by who uses it to be built.
        rows = [("run", key, some) for key, some in to_run.items()]
        rows += [("build", key, some) for key, some in to_build.items() if key not in to_run]
        return [
            {
                **dict(
                    zip(("package", "version", "compiler", "target", "variants"), key, strict=False)
                ),
                "flags": flags_of(key[-2]),
                "package_hash": key[-3],
                "used_to": use,
                "specs": len(some),
                "look_alikes": len(alike),
                "hashes": " ".join(sorted(each[:7] for each in some)),
            }
            for use, key, some in rows
            if len(some) < len(alike)
        ]

    def _whole(self, dag_hash: str) -> tuple[Any, ...]:
        """Return all that is known of a spec but its dependencies."""
        each = self.specs[dag_hash]
        said = self.records.get(dag_hash, [(None,) * 4])[0]
        names = ("package", "version", "compiler", "target", "variants", "configuration")
        return (*(each[name] for name in names), *said)

    def asked(self) -> Iterator[tuple[str, dict[str, str], Answer]]:
        """Yield each query, parameters and the answer; none where records say nothing."""
        for dag_hash in self.specs:
            is_told = dag_hash in self.records
            for query in ("dependencies_of_hash", "dependents_of_hash"):
                yield query, {"hash": dag_hash}, getattr(self, query)(dag_hash) if is_told else []
            for release in ("", *self.listed):
                lacking = self.dependencies_without_binary(dag_hash, release) if is_told else []
                params = {"hash": dag_hash[:9], "release": release}
                yield "dependencies_without_binary", params, lacking
            different = self.differences_of_look_alikes(dag_hash) if is_told else []
            yield "differences_of_look_alikes", {"hash": dag_hash}, different


def flags_of(parameters: str | None) -> str | None:
    """Return the compiler flags of a node as Spack writes them."""
    told = json.loads(parameters or "{}")
    flags = [f'{name}="{" ".join(told[name])}"' for name in told if name in FLAGS and told[name]]
    return " ".join(flags) or None
