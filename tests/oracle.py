"""Answers every question naively, from what the sources list: what tests compare answers with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import product
from typing import Any

from spack_cache_db.query.records import check_answerable, compiler_of_pages
from spack_cache_db.records import Configuration
from spack_cache_db.releases import releases_before, sort_releases
from spack_cache_db.spack.constraints import (
    SpecQuery,
    compiler_matches,
    variant_matches,
    version_matches,
)
from spack_cache_db.spack.normal_forms import parse_variant
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.targets import family, runs_on, target_matches
from tests.contradictions import Listing

Answer = dict[Configuration, set[str]]
"""Hashes by their configuration."""
Rows = list[tuple[Any, ...]]
"""Rows of a canned query."""
MOST = ("package", "version", "compiler", "os", "target", "variants")


def matches(query: SpecQuery, spec: Configuration, dag_hash: str) -> bool:
    """Return whether a spec, as far as a page shows it, satisfies a query.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
        ValueError: a text of the page is not a variant or compiler.
    """
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
    """Answers from what pages and indexes list, one by one: `said` is what each source lists."""

    said: list[Listing]

    @cached_property
    def in_order(self) -> list[Listing]:
        """The listings in the order in which they count: pages before indexes of a release."""
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
                own = replace(each, configuration=self.own[each.dag_hash], said=each.configuration)
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
        return sorted({stack for each in self.listings for stack in each.stacks} - {"root"})

    @cached_property
    def own(self) -> dict[str, Configuration]:
        """The configuration of each binary: that of the first source which lists it."""
        binaries = [each for each in self.in_order if each.is_binary]
        return {each.dag_hash: each.configuration for each in reversed(binaries)}

    @cached_property
    def showing(self) -> dict[Configuration, list[str]]:
        """The releases that list each configuration, in order."""
        pairs = {each.configuration: None for each in self.listings}
        return {
            configuration: [
                name
                for name, some in self.shown.items()
                if any(each.configuration == configuration for each in some.values())
            ]
            for configuration in pairs
        }

    @cached_property
    def packages(self) -> dict[str, set[str]]:
        """The releases that list a spec of each package, or have a page of it."""
        pages = [each for each in self.said if each.index is None]
        return {
            name: {each.release for each in some}
            for name, some in grouped(
                [*pages, *self.listings], lambda each: each.configuration.package
            )
        }

    @cached_property
    def recorded(self) -> dict[str, Listing]:
        """The first record of each spec in an index."""
        indexed = [each for each in self.in_order if each.index is not None]
        return {each.dag_hash: each for each in reversed(indexed)}

    def of(self, dag_hash: str) -> dict[str, Any]:
        """Return releases, stacks and days of a hash."""
        mine = {name: some[dag_hash] for name, some in self.shown.items() if dag_hash in some}
        first, last = days_of(mine)
        stacks = {stack for each in mine.values() for stack in each.stacks} - {"root"}
        seen = {"first_seen": first, "last_seen": last}
        return {"releases": tuple(mine), "stacks": tuple(sorted(stacks)), **seen}

    def stacks_of(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the stacks in which some release lists a configuration."""
        shown = (each for each in self.listings if each.configuration == configuration)
        return tuple(sorted({stack for each in shown for stack in each.stacks} - {"root"}))

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

    def largest(self) -> str | None:
        """Return the package with the most specs."""
        counts = Counter(each.package for each in self.own.values())
        return min(counts, key=lambda each: (-counts[each], each), default=None)

    # One method for each canned query.

    def most_hashes(self, package: str) -> Rows:
        """Return the configurations of a package that several specs have."""
        return [
            (*words(each, *MOST), count)
            for each, count in Counter(self.own.values()).items()
            if count > 1 and package in ("", each.package)
        ]

    def variant_values_of_package(self, package: str) -> Rows:
        """Return the values of each variant of a package."""
        name = package or self.largest()
        values = [
            (variant.name, value, each)
            for each in self.own.values()
            if each.package == name
            for variant in map(parse_variant, each.variants)
            for value in variant.values
        ]
        return [
            (name, variant, value, len(some), len({configuration for *_, configuration in some}))
            for (variant, value), some in grouped(values, lambda each: each[:2])
        ]

    def sides(self, old: str, new: str) -> tuple[list[Listing], list[Listing]]:
        """Return the listings of two releases; none if one is unknown or nothing is before."""
        before = releases_before(self.releases)
        order = sorted(
            self.releases, key=lambda each: (each not in before, kind_of(each) != "snapshot")
        )
        new = new or order[0]
        old = old or before.get(new, "")
        if not {old, new} <= {*self.releases}:
            return [], []
        return [*self.shown[old].values()], [*self.shown[new].values()]

    def compilers_of_release(self, release: str) -> Rows:
        """Return the compilers of a release, with their packages and specs."""
        return self._numbers(release, lambda each: (each.compiler,))

    def targets_of_release(self, release: str) -> Rows:
        """Return the targets of a release, with their packages and specs."""
        return self._numbers(release, lambda each: (family(each.target), each.target))

    def _numbers(self, release: str, key: Callable[[Configuration], tuple[str, ...]]) -> Rows:
        chosen = release or self.releases[0]
        shown = [each.configuration for each in self.shown[chosen].values()]
        return [
            (chosen, *names, len({each.package for each in some}), len(some))
            for names, some in grouped(shown, key)
        ]

    def changes_by_release(self) -> Rows:
        """Return how many specs each release adds to the one before, and removes."""
        return [
            (
                *(name, older, len(self.shown[name])),
                len(self.shown[name].keys() - self.shown[older].keys()),
                len(self.shown[older].keys() - self.shown[name].keys()),
            )
            for name, older in releases_before(self.releases).items()
            if self.shown[name]
        ]

    def families_lost(self, release: str) -> Rows:
        """Return the packages that a release lacks for a family that some release has."""
        shown = [each.configuration for each in self.shown[release or self.releases[0]].values()]
        own = {(each.package, family(each.target)) for each in shown}
        every = grouped(self.own.items(), lambda each: (each[1].package, family(each[1].target)))
        return [
            (*key, len(some), max(filter(None, days), default=None))
            for key, some in every
            if key not in own
            for days in ([days_of(self.of(dag)["releases"])[1] for dag, _ in some],)
        ]

    def new_versions(self, old: str, new: str) -> Rows:
        """Return the versions that the old release lacks."""
        was, now = self.sides(old, new)
        known = {(each.configuration.package, each.configuration.version) for each in was}
        every = grouped(now, lambda each: (each.configuration.package, each.configuration.version))
        return [(*key, *counts(some)) for key, some in every if key not in known]

    def stacks_by_growth(self, old: str, new: str) -> Rows:
        """Return the stacks of two releases, with their specs counted."""
        was, now = (
            Counter(name for each in side for name in each.stacks) for side in self.sides(old, new)
        )
        names = {*was, *now} - {"root"}
        return [(name, was[name], now[name], now[name] - was[name]) for name in names]

    def most_replaced(self, package: str) -> Rows:
        """Return the configurations of which a release replaced hashes."""
        replaced: dict[Configuration, list[int]] = {}
        for name, older in releases_before(self.releases).items():
            for each in self.showing:
                now, was = (
                    {dag for dag, one in self.shown[side].items() if one.configuration == each}
                    for side in (name, older)
                )
                if now - was and was - now:
                    replaced.setdefault(each, []).append(len(was - now))
        return [
            (*words(each, *MOST), len(removed), sum(removed))
            for each, removed in replaced.items()
            if package in ("", each.package)
        ]

    def longest_kept(self, package: str) -> Rows:
        """Return the hashes of snapshots, and for how many days they were kept."""
        found = []
        for dag_hash, each in self.own.items():
            first, last = days_of(self.of(dag_hash)["releases"])
            if first and last and package in ("", each.package):
                days = (date.fromisoformat(last) - date.fromisoformat(first)).days
                name = words(each, "package", "version", "target")
                found.append((dag_hash, *name, first, last, days))
        return found

    def only_in_snapshots(self, package: str) -> Rows:
        """Return the hashes that no branch and no release lists."""
        return [
            (dag_hash, *words(each, "package", "version", "target"), len(releases), last)
            for dag_hash, each in self.own.items()
            for releases in (self.of(dag_hash)["releases"],)
            for last in (days_of(releases)[1],)
            if package in ("", each.package) and {*map(kind_of, releases)} == {"snapshot"}
        ]

    def asked(self) -> Iterator[tuple[str, dict[str, str], Rows]]:
        """Yield each query with its parameters, and the rows of its answer."""
        packages = ["", *sorted({each.configuration.package for each in self.listings})]
        releases = ["", *self.releases]
        pairs: list[tuple[str, ...]] = [
            *product(releases, [""]),
            *zip(releases, releases[::-1], strict=True),
        ]
        pairs += [pair[::-1] for pair in pairs]
        queries: dict[str, tuple[str, list[tuple[str, ...]]]] = {
            "new_versions stacks_by_growth": ("old new", pairs),
            "most_hashes variant_values_of_package most_replaced longest_kept only_in_snapshots": (
                "package",
                [(each,) for each in packages],
            ),
            "compilers_of_release targets_of_release families_lost": (
                "release",
                [(each,) for each in releases],
            ),
            "changes_by_release": ("", [()]),
        }
        for names, (params, chosen) in queries.items():
            for query, given in product(names.split(), chosen):
                rows = getattr(self, query)(*given)
                yield query, dict(zip(params.split(), given, strict=True)), rows


def words(each: Configuration, *names: str) -> tuple[str, ...]:
    """Return parts of a configuration as the views print them."""
    parts = each._asdict() | {"variants": " ".join(each.variants)}
    return tuple(parts[name] for name in names)


def counts(listings: list[Listing]) -> tuple[int, int]:
    """Return how many configurations and specs some listings of one release have."""
    return len({each.configuration for each in listings}), len(listings)


def grouped(rows: Iterable[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    """Return rows by their key."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [*found.items()]


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
