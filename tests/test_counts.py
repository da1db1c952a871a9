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
from spack_cache_db.site.pages.lists import ListFilters, load_packages
from spack_cache_db.site.pages.overviews import (
    load_about,
    load_home,
    load_release,
    load_stack,
)
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
    places = {dag_hash: expected.of(dag_hash) for dag_hash in expected.own}
    assert {
        *conn.execute(
            f"SELECT hash, {WORDS}, stacks, release_count, first_seen, is_current "
            "FROM builds"
        )
    } == {
        (
            key,
            *printed(each),
            as_json(where["stacks"]),
            len(where["releases"]),
            where["first_seen"],
            is_current(where["releases"]),
        )
        for (key, each), where in zip(
            expected.own.items(), places.values(), strict=True
        )
    }
    shown = [each for some in expected.shown.values() for each in some.values()]
    rows = conn.execute(
        f"SELECT release, hash, {WORDS}, stacks, size, tarball FROM build_listings"
    )
    assert sorted(rows, key=str) == sorted(
        (
            (
                *(each.release, each.dag_hash, *printed(each.configuration)),
                *(as_json(each.stacks), each.size, each.tarball),
            )
            for each in shown
        ),
        key=str,
    )
    listed = {
        (each.release, each.dag_hash, stack)
        for each in shown
        for stack in each.stacks
        if stack != "root"
    }
    assert sorted(conn.execute("SELECT * FROM listing_stacks")) == sorted(listed)
    stacks = {(dag_hash, stack) for _, dag_hash, stack in listed}
    assert sorted(conn.execute("SELECT * FROM spec_stacks")) == sorted(stacks)
    assert sorted(
        conn.execute("SELECT hash, name, value FROM spec_variants")
    ) == sorted(
        (dag_hash, *pair)
        for dag_hash, each in expected.own.items()
        for pair in {pair for text in each.variants for pair in values_of(text)}
    )


def values_of(text: str) -> list[tuple[str, str]]:
    """Return the name and each value of a variant."""
    if text[0] in "+~":
        return [(text[1:], "true" if text[0] == "+" else "false")]
    name, value = text.split("=", 1)
    return [(name, each) for each in value.split(",")]


def the_tables_follow_the_rule(conn: sqlite3.Connection, expected: Oracle) -> None:
    """Counts and days of configurations, packages, releases and stacks."""
    specs = Counter(expected.own.values())
    assert {*conn.execute(CONFIGURATIONS)} == {
        (
            *(*printed(each), specs[each], len(releases), *days_of(releases)),
            is_current(releases),
        )
        for each, releases in expected.showing.items()
    }
    assert {*conn.execute(PACKAGES)} == {
        (
            *(name, sum(each.package == name for each in specs)),
            sum(each.package == name for each in expected.own.values()),
            *(
                newest_version(each.version for each in specs if each.package == name),
                len(having),
            ),
            *days_of(having),
            is_current(having),
        )
        for name, having in expected.packages.items()
    }
    assert {
        *conn.execute("SELECT name, date, spec_count, package_count FROM releases")
    } == {
        (
            *(name, day_of(name), len(shown)),
            sum(name in having for having in expected.packages.values()),
        )
        for name, shown in expected.shown.items()
    }
    previous = (
        "SELECT releases.name, before.name, releases.added_count, releases.removed_count"
        " FROM releases LEFT JOIN releases AS before ON before.id = releases.previous_release_id"
    )
    for name, before, added, removed in conn.execute(previous):
        if before is None:
            assert (added, removed) == (None, None)
        else:
            now = {*expected.shown[name]}
            then = {*expected.shown[before]}
            assert (added, removed) == (len(now - then), len(then - now))
    held = {
        stack: Counter(expected.counting(stack=stack).values())
        for stack in expected.stacks
    }
    assert {*conn.execute(IN_STACKS)} == {
        (*printed(each), stack, held[stack][each])
        for each in expected.showing
        for stack in expected.stacks_of(each)
    }
    assert {*conn.execute(STACK_COUNTS)} == {
        (
            stack,
            sum(
                any(stack in each.stacks for each in shown.values())
                for shown in expected.shown.values()
            ),
            len(found),
        )
        for stack in expected.stacks
        if (found := expected.counting(stack=stack))
    }


def facets_follow_the_rule(conn: sqlite3.Connection, expected: Oracle) -> None:
    """Specs and packages by value: of each release as it shows them, and of all
    together.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    packages: dict[tuple[Any, ...], set[str]] = {}
    for release in (None, *expected.releases):
        for each in expected.counting(release).values():
            for value in zip(FACET_NAMES, each[1:6], strict=True):
                counts[release, *value] += 1
                packages.setdefault((release, *value), set()).add(each.package)
        for stack in (*expected.stacks, "root"):
            for each in expected.counting(release, stack).values():
                counts[release, "stack", stack] += 1
                packages.setdefault((release, "stack", stack), set()).add(each.package)
    assert {*conn.execute(FACETS)} == {
        (*key, count, len(packages[key])) for key, count in counts.items()
    }


def lists_follow_the_rule(lookups: Lookups, expected: Oracle) -> None:
    """`/packages`, in each release and stack and for a machine; and all that there
    is.
    """
    packages = len({each.package for each in expected.own.values()})
    totals = (packages, len(expected.own), len({*expected.own.values()}))
    assert (
        load_home(lookups)["totals"][:3] == load_about(lookups)["totals"][:3] == totals
    )
    assert load_packages(lookups, ListFilters()).total == packages
    for release in (None, *expected.releases):
        for stack in (None, *(each.name for each in lookups.stacks.values())):
            for host in (None, "zen3"):
                asked = ListFilters(
                    release=release or "", stack=stack or "", host=host or ""
                )
                counts: dict[str, list[int]] = {}
                versions: dict[str, list[str]] = {}
                for each, hashes in expected.answer("*", release, stack, host).items():
                    count = counts.setdefault(each.package, [0, 0])
                    count[0] += 1
                    count[1] += len(hashes)
                    versions.setdefault(each.package, []).append(each.version)
                rows = load_packages(lookups, asked).in_order()
                assert {
                    row["name"]: [row["configurations"], row["specs"]] for row in rows
                } == counts
                if asked != ListFilters():
                    assert {row["name"]: row["version"] for row in rows} == {
                        name: newest_version(some) for name, some in versions.items()
                    }


def groups_follow_the_rule(lookups: Lookups, expected: Oracle) -> None:
    """`/release/<name>` and `/stack/<name>`: their packages, and the releases of a
    stack.
    """
    for release in lookups.releases.values():
        page = load_release(lookups, release, [])
        shown = expected.counting(release.name).values()
        assert dict(page["packages"]) == Counter(each.package for each in shown)
    for stack in lookups.stacks.values():
        group = load_stack(lookups, stack, [])
        held = expected.counting(stack=stack.name).values()
        assert dict(group["packages"]) == Counter(each.package for each in held)
        assert dict(group["releases"]) == {
            name: count
            for name in expected.releases
            if (count := len(expected.counting(name, stack.name)))
        }


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
