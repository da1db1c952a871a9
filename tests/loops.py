"""What a loop over listings answers to the canned queries: the second answer of tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import product
from typing import Any

from spack_cache_db.records import Configuration
from spack_cache_db.releases import releases_before
from spack_cache_db.spack.normal_forms import parse_variant
from spack_cache_db.spack.targets import family, runs_on
from spack_cache_db.spack.versions import newest_version
from tests.brute_force import BruteForce
from tests.contradictions import Listing

Answer = list[dict[str, Any]]
WRONG = ("AA", "x86_64_v3 ")
"""What is no name here, or one of another kind."""


@dataclass
class Loop:
    """What a loop over listings answers to each query; nothing where something is wrong."""

    said: BruteForce
    """What the loop is over, as `find` is compared with it."""
    families: set[str]
    """Those that have a name in the file, where a spec may be known that is no binary."""

    @cached_property
    def listings(self) -> list[Listing]:
        """What each release lists."""
        return [each for some in self.said.shown.values() for each in some.values()]

    @property
    def own(self) -> dict[str, Configuration]:
        """What each binary is."""
        return self.said.own

    def package(self, name: str) -> str | None:
        """Return the package that is meant: the one with most specs where none is named."""
        known = {each.configuration.package for each in self.listings}
        if name:
            return name if name in known else None
        counts = Counter(each.package for each in self.own.values())
        return min(known, key=lambda each: (-counts[each], each), default=None)

    def of_package(self, package: str | None) -> dict[str, Configuration]:
        """Return the binaries of a package."""
        return {dag: each for dag, each in self.own.items() if each.package == package}

    def shown(self, package: str | None, release: str) -> list[Listing]:
        """Return what a release shows of a package."""
        return [
            each
            for each in self.listings
            if each.release == release and each.configuration.package == package
        ]

    def releases(self, package: str | None) -> list[str]:
        """Return those that show a package, in order."""
        return [name for name in self.said.releases if self.shown(package, name)]

    def specs_of_package(self, package: str, host: str) -> Answer:
        """Return the specs of a package that run on a host."""
        return [
            {
                "hash": dag_hash,
                **words(each, "version", "compiler", "os", "target", "variants"),
                "releases": len(self.said.of(dag_hash)["releases"]),
            }
            for dag_hash, each in self.of_package(self.package(package)).items()
            if not host or runs_on(each.target, host)
        ]

    def targets_of_package(self, package: str, release: str) -> Answer:
        """Return the versions and targets of a package that a release shows."""
        name = self.package(package)
        there = [each for each in self.releases(name) if release in ("", each)][:1]
        return [
            {
                "release": chosen,
                "package": name,
                "version": version,
                "target": target,
                "family": family(target),
                "configurations": len({each.configuration for each in some}),
                "specs": len(some),
            }
            for chosen in there
            for (version, target), some in grouped(
                self.shown(name, chosen),
                lambda each: (each.configuration.version, each.configuration.target),
            )
        ]

    def releases_of_version(self, package: str, version: str) -> Answer:
        """Return the releases that show a version of a package."""
        name = self.package(package)
        shown = [each for each in self.listings if each.configuration.package == name]
        known = {each.configuration.version for each in shown}
        chosen = version or newest_version(known)
        return [
            {
                "package": name,
                "version": chosen,
                "release": release,
                "kind": kind_of(release),
                "date": day_of(release),
                "configurations": len({each.configuration for each in some}),
                "specs": len(some),
            }
            for release, some in grouped(
                [each for each in shown if each.configuration.version == chosen],
                lambda each: each.release,
            )
        ]

    def releases_of_hash(self, hash: str) -> Answer:
        """Return the releases that list the hashes that begin so."""
        if not hash:
            count = Counter(each.dag_hash for each in self.listings)
            hash = min(count, key=lambda each: (-count[each], each))
        return [
            {
                "hash": each.dag_hash,
                "package": each.configuration.package,
                "release": each.release,
                "kind": kind_of(each.release),
                "date": day_of(each.release),
                "stacks": json.dumps(sorted({*each.stacks} - {"root"}), separators=(",", ":")),
            }
            for each in self.listings
            if len(hash) >= 7 and each.dag_hash.startswith(hash)
        ]

    def most_hashes(self, package: str) -> Answer:
        """Return the configurations of a package with how many specs are theirs."""
        return [
            {
                **words(each, "package", "version", "compiler", "os", "target", "variants"),
                "spec_count": count,
            }
            for each, count in Counter(self.own.values()).items()
            if count > 1 and package in ("", each.package)
        ]

    def packages_of_stack(self, stack: str) -> Answer:
        """Return the packages of a stack, over all releases."""
        held = {
            name: self.said.counting(stack=name)
            for each in self.listings
            for name in each.stacks
            if name != "root"
        }
        chosen = stack or min(held, key=lambda name: (-len(held[name]), name), default="")
        return [
            {
                "stack": chosen,
                "package": package,
                "specs": len(some),
                "newest_version": newest_version(each.version for each in some),
            }
            for package, some in grouped(held.get(chosen, {}).values(), lambda each: each.package)
        ]

    def newest_versions(self, package: str) -> Answer:
        """Return the packages that have such a part in their name."""
        found = []
        for name in {each.package for each in self.own.values()}:
            days = [day for release in self.releases(name) if (day := day_of(release))]
            found.append(
                {
                    "package": name,
                    "newest_version": newest_version(
                        each.version for each in self.of_package(name).values()
                    ),
                    "spec_count": len(self.of_package(name)),
                    "release_count": len(self.releases(name)),
                    "last_seen": max(days, default=None),
                }
            )
        return [row for row in found if package in str(row["package"])]

    def variant_values_of_package(self, package: str) -> Answer:
        """Return the values of each variant of a package."""
        name = self.package(package)
        values = [
            (variant.name, value, each)
            for each in self.of_package(name).values()
            for variant in map(parse_variant, each.variants)
            for value in variant.values
        ]
        return [
            {
                "package": name,
                "variant": variant,
                "value": value,
                "specs": len(some),
                "configurations": len({configuration for *_, configuration in some}),
            }
            for (variant, value), some in grouped(values, lambda each: each[:2])
        ]

    def missing_for_family(self, has: str, lacks: str) -> Answer:
        """Return the packages that one family has and another lacks."""
        wanted, other = has or "x86_64", lacks or "aarch64"
        if not {wanted, other} <= self.families:
            return []
        known = {
            name: {each.package for each in self.own.values() if family(each.target) == name}
            for name in (wanted, other)
        }
        return [
            {
                "package": package,
                "specs": len(some),
                "newest_version": newest_version(each.version for each in some),
            }
            for package, some in grouped(
                [each for each in self.own.values() if family(each.target) == wanted],
                lambda each: each.package,
            )
            if package not in known[other]
        ]

    def sides(self, old: str, new: str) -> tuple[list[Listing], list[Listing]] | None:
        """Return what two releases show; None where there is no such release, or none before."""
        snapshots = [each for each in self.said.releases if kind_of(each) == "snapshot"]
        new = new or [*snapshots, *self.said.releases][0]
        old = old or releases_before(self.said.releases).get(new, "")
        if not {old, new} <= {*self.said.releases}:
            return None
        was, now = ([*self.said.shown[name].values()] for name in (old, new))
        return was, now

    def lost(
        self, old: str, new: str, key: Callable[[Configuration], Any]
    ) -> list[tuple[Any, Any]]:
        """Return what only the old release shows, with its configurations, one for each spec."""
        was, now = self.sides(old, new) or ([], [])
        there = {key(each.configuration) for each in now}
        every = grouped([each.configuration for each in was], key)
        return [(name, some) for name, some in every if name not in there]

    def packages_gone(self, old: str, new: str) -> Answer:
        """Return the packages that the new release lacks."""
        return [
            {
                "package": name,
                "specs": len(some),
                "newest_version": newest_version({each.version for each in some}),
            }
            for name, some in self.lost(old, new, lambda each: each.package)
        ]

    def families_lost(self, old: str, new: str) -> Answer:
        """Return the packages that lack a family in the new release."""
        return [
            {"package": package, "family": name, "specs": len(some)}
            for (package, name), some in self.lost(
                old, new, lambda each: (each.package, family(each.target))
            )
        ]

    def new_versions(self, old: str, new: str) -> Answer:
        """Return the versions that the old release lacks."""
        was, now = self.sides(old, new) or ([], [])
        known = {(each.configuration.package, each.configuration.version) for each in was}
        every = grouped(
            [each.configuration for each in now], lambda each: (each.package, each.version)
        )
        return [
            {
                "package": package,
                "version": version,
                "configurations": len({*some}),
                "specs": len(some),
            }
            for (package, version), some in every
            if (package, version) not in known
        ]

    def stacks_by_growth(self, old: str, new: str) -> Answer:
        """Return the stacks of two releases, with their specs counted."""
        sides = self.sides(old, new) or ([], [])
        was, now = (Counter(name for each in side for name in each.stacks) for side in sides)
        return [
            {
                "stack": name,
                "old_specs": was[name],
                "new_specs": now[name],
                "growth": now[name] - was[name],
            }
            for name in {*was, *now} - {"root"}
        ]

    def most_replaced(self, package: str) -> Answer:
        """Return the configurations of which a release replaced hashes."""
        releases, removed = Counter[Configuration](), Counter[Configuration]()
        for name, older in releases_before(self.said.releases).items():
            for each in self.said.showing:
                here, there = (
                    {dag for dag, one in self.said.shown[side].items() if one.configuration == each}
                    for side in (name, older)
                )
                if here - there and there - here:
                    releases[each] += 1
                    removed[each] += len(there - here)
        return [
            {
                **words(each, "package", "version", "compiler", "os", "target", "variants"),
                "releases": count,
                "removed": removed[each],
            }
            for each, count in releases.items()
            if package in ("", each.package)
        ]

    def longest_kept(self, package: str) -> Answer:
        """Return the hashes of snapshots, and for how many days they were kept."""
        found = []
        for dag_hash, each in self.own.items():
            first, last = (self.said.of(dag_hash)[name] for name in ("first_seen", "last_seen"))
            if first and package in ("", each.package):
                days = (date.fromisoformat(last) - date.fromisoformat(first)).days
                seen = {"first_seen": first, "last_seen": last, "days": days}
                found.append(
                    {"hash": dag_hash, **words(each, "package", "version", "target"), **seen}
                )
        return found

    def only_in_snapshots(self, package: str) -> Answer:
        """Return the hashes that no branch and no release lists."""
        places = {dag_hash: self.said.of(dag_hash) for dag_hash in self.own}
        return [
            {
                "hash": dag_hash,
                **words(each, "package", "version", "target"),
                "releases": len(places[dag_hash]["releases"]),
                "last_seen": places[dag_hash]["last_seen"],
            }
            for dag_hash, each in self.own.items()
            if package in ("", each.package)
            and not {"branch", "release"} & {*map(kind_of, places[dag_hash]["releases"])}
        ]

    def asked(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each query with right values of its parameters, and with wrong ones."""
        every = {
            "package": sorted({each.configuration.package for each in self.listings}),
            "version": sorted({each.configuration.version for each in self.listings}),
            "release": self.said.releases,
            "hash": sorted({end for dag in self.own for end in (dag, dag[:7], dag[:31])}),
            "stack": ["e4s", "ml", "root"],
            "host": ["zen3", "zen2", "aarch64", "power9le"],
        }
        every["has"] = every["lacks"] = ["x86_64", "aarch64"]
        values = {name: ("", *some, *WRONG) for name, some in every.items()}
        for query, first, *more in (
            ("specs_of_package", "package", "host"),
            ("targets_of_package", "package", "release"),
            ("releases_of_version", "package", "version"),
            ("missing_for_family", "has", "lacks"),
            ("releases_of_hash", "hash"),
            ("most_hashes", "package"),
            ("packages_of_stack", "stack"),
            ("newest_versions", "package"),
            ("variant_values_of_package", "package"),
            ("most_replaced", "package"),
            ("longest_kept", "package"),
            ("only_in_snapshots", "package"),
        ):
            for value in values[first]:
                for name in more:
                    yield from ((query, {first: value, name: other}) for other in values[name])
                if not more:
                    yield query, {first: value}
        releases = values["release"]
        for query in ("packages_gone", "families_lost", "new_versions", "stacks_by_growth"):
            for old, new in (*product(releases, [""]), *zip(releases, releases[::-1], strict=True)):
                yield query, {"old": old, "new": new}
                yield query, {"old": new, "new": old}


def words(each: Configuration, *names: str) -> dict[str, str]:
    """Return parts of a configuration as the views print them."""
    return {
        name: " ".join(each.variants) if name == "variants" else getattr(each, name)
        for name in names
    }


def grouped(rows: Iterable[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    """Return rows by their key."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [*found.items()]


def kind_of(release: str) -> str:
    """Return what a release of these tests is."""
    kinds = {"d": "snapshot", "v": "release", "m": "other"}
    return kinds[release[0]] if release != "develop" else "branch"


def day_of(release: str) -> str | None:
    """Return the day of a snapshot."""
    return release[-10:] if kind_of(release) == "snapshot" else None
