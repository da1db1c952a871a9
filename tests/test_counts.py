"""Every row of the views and every count, over sources that contradict each other."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from spack_cache_db.model import Configuration
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.schema.views import VIEW_COUNTS
from spack_cache_db.site.pages.list_page import ListFilters
from spack_cache_db.site.pages.overviews import (
    load_about,
    load_home,
    load_release,
    load_stack,
)
from spack_cache_db.site.pages.package_list import load_packages
from spack_cache_db.spack.versions import newest_version
from tests.contradictions import EXAMPLE, Listing, database_of, listings
from tests.oracle import Oracle, day_of, days_of, is_current

WORDS = "package, version, compiler, os, platform, target, variants"
_CONFIGURATIONS = """
SELECT packages.name, versions.name, compilers.compiler, operating_systems.name, platforms.name,
  targets.name, variant_sets.text, {}
FROM configurations
JOIN packages ON packages.id = configurations.package_id
JOIN versions ON versions.id = configurations.version_id
JOIN compilers ON compilers.id = configurations.compiler_id
JOIN operating_systems ON operating_systems.id = configurations.os_id
JOIN platforms ON platforms.id = configurations.platform_id
JOIN targets ON targets.id = configurations.target_id
JOIN variant_sets ON variant_sets.id = configurations.variant_set_id
{}
"""
CONFIGURATIONS = _CONFIGURATIONS.format(
    "configurations.spec_count, configurations.release_count, configurations.first_seen, "
    "configurations.last_seen, configurations.is_current",
    "WHERE configurations.release_count > 0 OR configurations.spec_count > 0",
)
IN_STACKS = _CONFIGURATIONS.format(
    "stacks.name, shown.spec_count",
    "JOIN configuration_stacks AS shown ON shown.configuration_id = configurations.id "
    "JOIN stacks ON stacks.id = shown.stack_id WHERE NOT stacks.is_root",
)
PACKAGES = """
SELECT name, configuration_count, spec_count, newest_version, release_count, first_seen, last_seen,
  is_current
FROM packages WHERE release_count > 0
"""
STACK_COUNTS = """
SELECT name, release_count, spec_count FROM stacks WHERE NOT is_root AND release_count > 0
"""
FACET_NAMES = ("version", "compiler", "os", "platform", "target")
FACETS = """
SELECT release, facet, value, spec_count, package_count FROM facet_counts
"""


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(listings())
def test_every_count_is_that_of_the_sources(drawn: list[Listing]) -> None:
    """In the views, the tables, the lists and the pages of releases and stacks."""
    every_count_follows_the_rule(drawn)


def test_every_count_of_an_example() -> None:
    """The same of one file, in the fast loop."""
    every_count_follows_the_rule(EXAMPLE)


def every_count_follows_the_rule(drawn: list[Listing]) -> None:
    """Compare every count with the sources."""
    expected = Oracle(drawn)
    with database_of(drawn) as conn:
        lookups = read_lookups(conn)
        the_views_follow_the_rule(conn, expected)
        the_tables_follow_the_rule(conn, expected)
        facets_follow_the_rule(conn, expected)
        lists_follow_the_rule(lookups, expected)
        groups_follow_the_rule(lookups, expected)


def printed(each: Configuration) -> tuple[str, ...]:
    """Return a configuration as the views print it."""
    *words, variants = each
    return (*words, " ".join(variants))


def as_json(names: Iterable[str]) -> str:
    """Return names as the views print them."""
    return json.dumps(sorted(names), separators=(",", ":"))


def the_views_follow_the_rule(conn: sqlite3.Connection, expected: Oracle) -> None:
    """`builds` has each spec's own configuration, `build_listings` that which its
    release shows.
    """
    builds = set()
    for dag_hash, configuration in expected.own.items():
        places = expected.of(dag_hash)
        stacks = as_json(places["stacks"])
        releases = places["releases"]
        words = printed(configuration)
        seen = (len(releases), places["first_seen"], is_current(releases))
        builds.add((dag_hash, *words, stacks, *seen))
    rows = conn.execute(
        f"SELECT hash, {WORDS}, stacks, release_count, first_seen, is_current "
        "FROM builds"
    )
    assert set(rows) == builds

    build_listings = []
    listing_stacks = set()
    for listing in every_listing(expected):
        words = printed(listing.configuration)
        stacks = as_json(listing.stacks)
        key = (listing.release, listing.dag_hash)
        build_listings.append((*key, *words, stacks, listing.size, listing.tarball))
        for stack in listing.stacks:
            if stack != "root":
                listing_stacks.add((*key, stack))
    rows = conn.execute(
        f"SELECT release, hash, {WORDS}, stacks, size, tarball FROM build_listings"
    )
    assert sorted(rows, key=str) == sorted(build_listings, key=str)
    rows = conn.execute("SELECT * FROM listing_stacks")
    assert sorted(rows) == sorted(listing_stacks)

    spec_stacks = {(dag_hash, stack) for _, dag_hash, stack in listing_stacks}
    rows = conn.execute("SELECT * FROM spec_stacks")
    assert sorted(rows) == sorted(spec_stacks)

    spec_variants = set()
    for dag_hash, configuration in expected.own.items():
        for text in configuration.variants:
            for name, value in values_of(text):
                spec_variants.add((dag_hash, name, value))
    rows = conn.execute("SELECT hash, name, value FROM spec_variants")
    assert sorted(rows) == sorted(spec_variants)


def every_listing(expected: Oracle) -> list[Listing]:
    """Return the listings of all releases, as each release shows them."""
    return [listing for shown in expected.shown.values() for listing in shown.values()]


def values_of(text: str) -> list[tuple[str, str]]:
    """Return the name and each value of a variant."""
    if text[0] in "+~":
        return [(text[1:], "true" if text[0] == "+" else "false")]
    name, value = text.split("=", 1)
    return [(name, each) for each in value.split(",")]


def the_tables_follow_the_rule(conn: sqlite3.Connection, expected: Oracle) -> None:
    """Counts and days of configurations, packages, releases and stacks."""
    spec_counts = Counter(expected.own.values())
    configurations = set()
    for configuration, releases in expected.showing.items():
        counts = (spec_counts[configuration], len(releases))
        seen = (*days_of(releases), is_current(releases))
        configurations.add((*printed(configuration), *counts, *seen))
    assert set(conn.execute(CONFIGURATIONS)) == configurations

    packages = set()
    for name, having in expected.packages.items():
        own = [each for each in spec_counts if each.package == name]
        spec_count = sum(spec_counts[configuration] for configuration in own)
        newest = newest_version(configuration.version for configuration in own)
        seen = (*days_of(having), is_current(having))
        packages.add((name, len(own), spec_count, newest, len(having), *seen))
    assert set(conn.execute(PACKAGES)) == packages

    expected_releases = set()
    for name, shown in expected.shown.items():
        package_count = sum(name in having for having in expected.packages.values())
        expected_releases.add((name, day_of(name), len(shown), package_count))
    rows = conn.execute("SELECT name, date, spec_count, package_count FROM releases")
    assert set(rows) == expected_releases

    releases_follow_the_one_before(conn, expected)
    stacks_follow_the_rule(conn, expected)


def releases_follow_the_one_before(conn: sqlite3.Connection, expected: Oracle) -> None:
    """Each release has the numbers of what was added and removed since the previous
    one.
    """
    previous = (
        "SELECT releases.name, before.name, releases.added_count, releases.removed_count"
        " FROM releases LEFT JOIN releases AS before ON before.id = releases.previous_release_id"
    )
    for name, before, added, removed in conn.execute(previous):
        if before is None:
            assert (added, removed) == (None, None)
        else:
            now = set(expected.shown[name])
            then = set(expected.shown[before])
            assert (added, removed) == (len(now - then), len(then - now))


def stacks_follow_the_rule(conn: sqlite3.Connection, expected: Oracle) -> None:
    """Each stack has the numbers of its releases and binaries, and each configuration
    the number of its binaries in each of its stacks.
    """
    configurations = set()
    stack_counts = set()
    for stack in expected.stacks:
        configuration_of = expected.counting(stack=stack)
        spec_counts = Counter(configuration_of.values())
        for configuration in expected.showing:
            if stack in expected.stacks_of(configuration):
                words = printed(configuration)
                configurations.add((*words, stack, spec_counts[configuration]))
        releases = {
            listing.release
            for listing in every_listing(expected)
            if stack in listing.stacks
        }
        if configuration_of:
            stack_counts.add((stack, len(releases), len(configuration_of)))
    assert set(conn.execute(IN_STACKS)) == configurations
    assert set(conn.execute(STACK_COUNTS)) == stack_counts


def facets_follow_the_rule(conn: sqlite3.Connection, expected: Oracle) -> None:
    """Specs and packages by value: of each release as it shows them, and of all
    together.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    packages: dict[tuple[Any, ...], set[str]] = {}
    for release in (None, *expected.releases):
        for configuration in expected.counting(release).values():
            for value in zip(FACET_NAMES, configuration[1:6], strict=True):
                counts[release, *value] += 1
                packages.setdefault((release, *value), set()).add(configuration.package)
        for stack in (*expected.stacks, "root"):
            for each in expected.counting(release, stack).values():
                counts[release, "stack", stack] += 1
                packages.setdefault((release, "stack", stack), set()).add(each.package)
    assert set(conn.execute(FACETS)) == {
        (*key, count, len(packages[key])) for key, count in counts.items()
    }


def lists_follow_the_rule(lookups: Lookups, expected: Oracle) -> None:
    """`/packages`, in each release and stack and for a machine; and all that there
    is.
    """
    # All that there is.
    packages = len({configuration.package for configuration in expected.own.values()})
    totals = (packages, len(expected.own), len(set(expected.own.values())))
    assert load_home(lookups)["totals"][:3] == totals
    assert load_about(lookups)["totals"][:3] == totals
    assert load_packages(lookups, ListFilters()).total == packages

    # Each list.
    for release in (None, *expected.releases):
        for stack in (None, *(each.name for each in lookups.stacks.values())):
            for host in (None, "zen3"):
                asked = ListFilters(
                    release=release or "", stack=stack or "", host=host or ""
                )
                answer = expected.answer("*", release, stack, host)
                configurations: Counter[str] = Counter()
                specs: Counter[str] = Counter()
                versions: dict[str, list[str]] = {}
                for configuration, hashes in answer.items():
                    package = configuration.package
                    configurations[package] += 1
                    specs[package] += len(hashes)
                    versions.setdefault(package, []).append(configuration.version)

                rows = load_packages(lookups, asked).in_order()

                found_counts = {row["name"]: row["configurations"] for row in rows}
                assert found_counts == configurations
                assert {row["name"]: row["specs"] for row in rows} == specs
                if asked != ListFilters():
                    newest = {}
                    for name, listed in versions.items():
                        newest[name] = newest_version(listed)
                    assert {row["name"]: row["version"] for row in rows} == newest


def groups_follow_the_rule(lookups: Lookups, expected: Oracle) -> None:
    """`/release/<name>` and `/stack/<name>`: their packages, and the releases of a
    stack.
    """
    for release in lookups.releases.values():
        page = load_release(lookups, release, [])
        shown = expected.counting(release.name).values()
        assert dict(page["packages"]) == Counter(
            configuration.package for configuration in shown
        )
    for stack in lookups.stacks.values():
        group = load_stack(lookups, stack, [])
        held = expected.counting(stack=stack.name).values()
        assert dict(group["packages"]) == Counter(each.package for each in held)
        spec_counts = {}
        for name in expected.releases:
            listed = expected.counting(name, stack.name)
            if listed:
                spec_counts[name] = len(listed)
        assert dict(group["releases"]) == spec_counts


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(listings())
def test_the_rows_of_large_views_are_counted_in_one_table(seen: list[Listing]) -> None:
    """The counts of the inspect file are those of the views, whatever the sources
    say.
    """
    with database_of(seen) as conn:
        for view, sql in VIEW_COUNTS.items():
            assert (
                conn.execute(sql).fetchall()
                == conn.execute(f"SELECT count(*) FROM {view}").fetchall()
            )


@pytest.mark.parametrize("source", ["all_samples", "real_index"])
def test_the_rows_of_large_views_of_real_sources(
    source: str, request: pytest.FixtureRequest
) -> None:
    """Binaries that only an index needs are no rows of a view, and are not counted."""
    conn = request.getfixturevalue(source)

    for view, sql in VIEW_COUNTS.items():
        (rows,) = conn.execute(f"SELECT count(*) FROM {view}").fetchone()
        assert tuple(conn.execute(sql).fetchone()) == (rows,)
        # Pages have no records.
        assert rows or (source, view) == ("all_samples", "records")
