"""What a database counts, and the same by plain Python."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from typing import Any

from tests.pagetexts import spec_hash
from tests.second_source.inputs import Input, package_of, target_of


def listings_of(whole: Input) -> dict[tuple[str, int], set[str]]:
    """Return the stacks of each (release, number)."""
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for (release, stack), (listed, _) in whole.documents.items():
        for number in listed:
            found[release, number].add(stack)
    for (release, package), numbers in whole.pages.items():
        for number in numbers:
            if package_of(number) == package:
                found[release, number].add("p")
    return found


def seen(releases: set[str]) -> tuple[int, str | None, str | None]:
    """Return how many releases there are, and the dates of the first and the last snapshot."""
    dates = sorted(each[8:] for each in releases if each.startswith("develop-"))
    return (len(releases), dates[0], dates[-1]) if dates else (len(releases), None, None)


def counted(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return what a database counts, by name."""

    def rows(sql: str) -> set[tuple[Any, ...]]:
        found = connection.execute(sql).fetchall()
        assert len(found) == len(set(found))
        return set(found)

    of_configurations = (
        "JOIN configurations ON configurations.id = {0} "
        "JOIN packages ON packages.id = configurations.package "
        "JOIN targets ON targets.id = configurations.target"
    )
    specs = of_configurations.format("specs.configuration")
    return {
        "releases": rows("SELECT name, package_count, spec_count FROM releases"),
        "packages": rows(
            "SELECT name, spec_count, configuration_count, newest_version, release_count, "
            "first_seen, last_seen FROM packages"
        ),
        "configurations": rows(
            "SELECT packages.name, targets.name, c.spec_count, c.release_count, c.first_seen, "
            "c.last_seen FROM configurations AS c JOIN packages ON packages.id = c.package "
            "JOIN targets ON targets.id = c.target"
        ),
        "specs": rows(
            "SELECT hash, packages.name, targets.name, stack_sets.stacks, specs.release_count, "
            "specs.first_seen, specs.last_seen FROM specs "
            f"JOIN stack_sets ON stack_sets.id = specs.stacks {specs}"
        ),
        "stacks": rows("SELECT name, release_count, spec_count FROM stacks"),
        "listings": rows("SELECT release, hash, package, target, stacks FROM build_listings"),
        "in releases": rows(
            "SELECT packages.name, targets.name, releases.name, counts.spec_count "
            "FROM configuration_releases AS counts "
            "JOIN releases ON releases.id = counts.release "
            f"{of_configurations.format('counts.configuration')}"
        ),
        "packages in releases": rows(
            "SELECT packages.name, releases.name, counts.configuration_count, counts.spec_count, "
            "versions.name FROM release_packages AS counts "
            "JOIN releases ON releases.id = counts.release "
            "JOIN packages ON packages.id = counts.package "
            "JOIN versions ON versions.id = counts.newest_version"
        ),
        "in stacks": rows(
            "SELECT packages.name, targets.name, stacks.name, counts.spec_count "
            "FROM configuration_stacks AS counts JOIN stacks ON stacks.id = counts.stack "
            f"{of_configurations.format('counts.configuration')}"
        ),
        "facets": rows(
            "SELECT releases.name, facet, value, facet_counts.spec_count, "
            "facet_counts.package_count FROM facet_counts "
            "LEFT JOIN releases ON releases.id = release"
        ),
        "pages": rows(
            "SELECT releases.name, packages.name, pages.spec_count FROM pages "
            "JOIN releases ON releases.id = release JOIN packages ON packages.id = package"
        ),
        "problems": rows("SELECT page, code, message FROM problems"),
    }


def expected(whole: Input) -> dict[str, Any]:
    """Return the same, counted by plain Python."""
    listings = listings_of(whole)
    numbers = {number for _, number in listings}
    every = numbers.union(*(others for _, others in whole.documents.values()))
    releases_of: dict[int, set[str]] = defaultdict(set)
    stacks_of: dict[int, set[str]] = defaultdict(set)
    for (release, number), stacks in listings.items():
        releases_of[number].add(release)
        stacks_of[number] |= stacks
    packages_of: dict[str, set[str]] = defaultdict(set)
    for release, number in listings:
        packages_of[release].add(package_of(number))
    for release, package in whole.pages:
        packages_of[release].add(package)
    keys = {(package_of(number), target_of(number)) for number in every}

    def having(*key: str) -> set[int]:
        return {n for n in numbers if (package_of(n), target_of(n))[: len(key)] == key}

    return {
        "releases": {
            (release, len(packages_of[release]), sum(each == release for each, _ in listings))
            for release in {release for release, _ in (*whole.documents, *whole.pages)}
        },
        "packages": {
            (
                package,
                len(having(package)),
                len({target_of(number) for number in having(package)}),
                "1.0" if having(package) else None,
                *seen({each for each in packages_of if package in packages_of[each]}),
            )
            for package in {package_of(n) for n in every} | {name for _, name in whole.pages}
        },
        "configurations": {
            (*key, len(having(*key)), *seen(set().union(*(releases_of[n] for n in having(*key)))))
            for key in keys
        },
        "specs": {
            (
                spec_hash(n),
                package_of(n),
                target_of(n),
                as_json(stacks_of[n]),
                *seen(releases_of[n]),
            )
            for n in every
        },
        "stacks": {
            (
                stack,
                len({release for (release, _), stacks in listings.items() if stack in stacks}),
                sum(stack in stacks_of[number] for number in numbers),
            )
            for stack in set().union(*listings.values())
        },
        "listings": {
            (release, spec_hash(n), package_of(n), target_of(n), as_json(stacks))
            for (release, n), stacks in listings.items()
        },
        "in releases": {
            (*key, release, count)
            for (key, release), count in Counter(
                ((package_of(n), target_of(n)), release) for release, n in listings
            ).items()
        },
        "packages in releases": {
            (
                package,
                release,
                len(
                    {
                        target_of(n)
                        for at, n in listings
                        if (package_of(n), at) == (package, release)
                    }
                ),
                count,
                "1.0",
            )
            for (package, release), count in Counter(
                (package_of(n), release) for release, n in listings
            ).items()
        },
        "in stacks": {
            (*key, stack, count)
            for (key, stack), count in Counter(
                ((package_of(n), target_of(n)), stack) for n in numbers for stack in stacks_of[n]
            ).items()
        },
        "facets": facets(listings, stacks_of),
        "pages": {
            (release, package, sum(package_of(number) == package for number in listed))
            for (release, package), listed in whole.pages.items()
        },
        "problems": set(),
    }


def facets(
    listings: dict[tuple[str, int], set[str]], stacks_of: dict[int, set[str]]
) -> set[tuple[str | None, str, str, int, int]]:
    """Return the rows of `facet_counts`."""
    found: dict[tuple[str | None, str, str], set[int]] = defaultdict(set)
    same = {
        "versions": "1.0",
        "compilers": "gcc@13.2.0",
        "oss": "ubuntu24.04",
        "platforms": "linux",
    }
    for (release, number), stacks in listings.items():
        for where, names in ((release, stacks), (None, stacks_of[number])):
            for facet, value in same.items():
                found[where, facet, value].add(number)
            found[where, "targets", target_of(number)].add(number)
            for stack in names:
                found[where, "stacks", stack].add(number)
    return {
        (*key, len(numbers), len({*map(package_of, numbers)})) for key, numbers in found.items()
    }


def as_json(stacks: set[str]) -> str:
    """Return stacks as the database prints them."""
    return json.dumps(sorted(stacks), separators=(",", ":"))
