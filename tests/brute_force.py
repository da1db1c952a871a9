"""What a loop over random pages and indexes finds: the second answer to every question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.targets import runs_on
from tests.contradictions import RELEASES, Listing
from tests.matching import matches

Answer = dict[Configuration, set[str]]
"""Hashes by the configuration that they count for."""


def days_of(releases: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the first and the last day of the snapshots among some releases."""
    days = sorted(name[-10:] for name in releases if name.startswith("develop-"))
    return (days[0], days[-1]) if days else (None, None)


@dataclass(frozen=True)
class BruteForce:
    """Answers from what pages and indexes say, one by one."""

    said: list[Listing]

    @cached_property
    def in_order(self) -> list[Listing]:
        """What is said, in the order in which it counts: pages before indexes of a release."""
        return sorted(
            self.said,
            key=lambda each: (RELEASES.index(each.release), each.index is not None, each.index),
        )

    @cached_property
    def releases(self) -> list[str]:
        """The releases of which something is said, in the file's order."""
        return [name for name in RELEASES if name in {each.release for each in self.said}]

    @cached_property
    def shown(self) -> dict[str, dict[str, Listing]]:
        """What each release lists, by hash: with its own configuration, in the stacks of all."""
        found: dict[str, dict[str, Listing]] = {name: {} for name in self.releases}
        for each in self.in_order:
            if each.is_binary:
                here = found[each.release]
                own = replace(each, configuration=self.own[each.dag_hash], said=each.configuration)
                first = here.setdefault(each.dag_hash, own)
                stacks = tuple(sorted({*first.stacks, *each.stacks}))
                here[each.dag_hash] = replace(first, stacks=stacks)
        return found

    @cached_property
    def own(self) -> dict[str, Configuration]:
        """What each hash is: the first source that lists it says so."""
        found: dict[str, Configuration] = {}
        for each in self.in_order:
            if each.is_binary:
                found.setdefault(each.dag_hash, each.configuration)
        return found

    @cached_property
    def showing(self) -> dict[Configuration, list[str]]:
        """The releases that show each configuration, in the file's order."""
        found: dict[Configuration, list[str]] = {}
        for name in self.releases:
            for configuration in {each.configuration for each in self.shown[name].values()}:
                found.setdefault(configuration, []).append(name)
        return found

    @cached_property
    def packages(self) -> dict[str, set[str]]:
        """The releases that show a spec of each package, or have a page of it."""
        found: dict[str, set[str]] = {}
        pages = [each for each in self.said if each.index is None]
        for each in (*pages, *(one for some in self.shown.values() for one in some.values())):
            found.setdefault(each.configuration.package, set()).add(each.release)
        return found

    @cached_property
    def recorded(self) -> dict[str, Listing]:
        """The first record of each spec that indexes tell of."""
        found: dict[str, Listing] = {}
        for each in self.in_order:
            if each.index is not None:
                found.setdefault(each.dag_hash, each)
        return found

    def of(self, dag_hash: str) -> dict[str, Any]:
        """Return releases, stacks and days of a hash."""
        mine = {name: some[dag_hash] for name, some in self.shown.items() if dag_hash in some}
        first, last = days_of(mine)
        return {
            "releases": tuple(mine),
            "stacks": tuple(sorted({s for each in mine.values() for s in each.stacks} - {"root"})),
            "first_seen": first,
            "last_seen": last,
        }

    def stacks_of(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the stacks in which some release shows it."""
        every = (each for some in self.shown.values() for each in some.values())
        shown = (each for each in every if each.configuration == configuration)
        return tuple(sorted({stack for each in shown for stack in each.stacks} - {"root"}))

    def order(self, dag_hash: str) -> tuple[int, str]:
        """Return what puts the specs of a configuration in order: what is current comes first."""
        return RELEASES.index(self.of(dag_hash)["releases"][0]), dag_hash

    def counting(
        self, release: str | None = None, stack: str | None = None
    ) -> dict[str, Configuration]:
        """Return the configuration of each hash that counts in an answer."""
        found: dict[str, Configuration] = {}
        for name in self.releases if release is None else [release]:
            for dag_hash, each in self.shown[name].items():
                if stack in (None, *each.stacks):
                    found.setdefault(dag_hash, each.configuration)
        return found

    def answer(
        self,
        text: str,
        release: str | None = None,
        stack: str | None = None,
        host: str | None = None,
        os: str | None = None,
        platform: str | None = None,
    ) -> Answer:
        """Return the specs that satisfy a query, by the configuration that they count for."""
        query = parse_query(text)
        found: Answer = {}
        for dag_hash, each in self.counting(release, stack).items():
            is_here = os in (None, each.os) and platform in (None, each.platform)
            is_here = is_here and (host is None or runs_on(each.target, host))
            if is_here and self._satisfies(query, each, dag_hash):
                found.setdefault(each, set()).add(dag_hash)
        return found

    def _satisfies(self, query: SpecQuery, configuration: Configuration, dag_hash: str) -> bool:
        """Whether a spec satisfies a query; where there are records, compilers are asked of them.

        Then the compiler is the spec's own, and a record without one has none, for it has no edges.
        """
        if not self.recorded or not query.dependencies:
            return matches(query, configuration, dag_hash)
        asked = SpecQuery(dependencies=query.dependencies)
        record = self.recorded.get(dag_hash)
        is_by = matches(asked, self.own[dag_hash], dag_hash)
        return (
            matches(replace(query, dependencies=()), configuration, dag_hash)
            and is_by
            and (record is None or record.configuration.compiler != "none")
        )
