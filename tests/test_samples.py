"""The five sample pages, counted from the page files by plain Python and from the database."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from typing import Any

import pytest

from spack_cache_db.spack.versions import version_key
from tests.samples import FIVE, LISTINGS, PAGES, SINGULAR, configuration, date, seen


def one(connection: sqlite3.Connection, sql: str, *values: object) -> Any:
    """Return the first column of the only row."""
    ((value,),) = connection.execute(sql, values).fetchall()
    return value


@pytest.mark.parametrize(
    ("table", "count"),
    [("pages", 5), ("listings", 425), ("specs", 413), ("configurations", 24), ("problems", 0)],
)
def test_the_samples_are_counted_right(table: str, count: int, samples: sqlite3.Connection) -> None:
    """The numbers that the five pages are known to hold."""
    assert one(samples, f"SELECT count(*) FROM {table}") == count


def test_the_known_numbers_are_those_of_plain_python(samples: sqlite3.Connection) -> None:
    """The same numbers, counted from the page files."""
    assert len(FIVE) == 425
    assert len({listing["hash"] for _, _, listing in FIVE}) == 413
    assert len({configuration(package, listing) for package, _, listing in FIVE}) == 24


def test_pages_know_their_release_package_and_size(samples: sqlite3.Connection) -> None:
    """One row per page, with its path, era and number of specs."""
    rows = samples.execute(
        "SELECT path, releases.name, packages.name, pages.spec_count, format FROM pages "
        "JOIN releases ON releases.id = release JOIN packages ON packages.id = package"
    )
    assert {row[0]: row[1:4] for row in rows} == {
        name: (page["categories"][1], page["title"], len(page["spec_details"]))
        for name, page in PAGES.items()
    }


@pytest.mark.parametrize(
    ("path", "era"), [("000", "A"), ("001", "A"), ("002", "A"), ("003", "A"), ("004", "B")]
)
def test_the_era_of_each_sample_is_known(path: str, era: str, samples: sqlite3.Connection) -> None:
    """Samples 000 to 003 are of today, 004 is of early 2025."""
    assert one(samples, "SELECT format FROM pages WHERE path GLOB ?", f"{path}*") == era


def test_a_page_of_2024_is_known_by_its_order(all_samples: sqlite3.Connection) -> None:
    """Keys in the order of insertion: era C."""
    assert one(all_samples, "SELECT format FROM pages WHERE path = 'v0.18/axl/specs.md'") == "C"


def test_facet_counts_of_each_release(all_samples: sqlite3.Connection) -> None:
    """Specs and packages by facet value, release by release."""
    specs: Counter[tuple[str, str, str]] = Counter()
    packages = defaultdict(set)
    for package, release, listing in LISTINGS:
        values = [(facet, listing[key]) for facet, key in SINGULAR.items()]
        for facet, value in [*values, *(("stacks", stack) for stack in listing["stacks"])]:
            specs[release, facet, value] += 1
            packages[release, facet, value].add(package)
    rows = all_samples.execute(
        "SELECT name, facet, value, facet_counts.spec_count, facet_counts.package_count "
        "FROM facet_counts JOIN releases ON releases.id = release"
    )
    assert {row[:3]: row[3:] for row in rows} == {
        key: (specs[key], len(packages[key])) for key in specs
    }


def test_facet_counts_of_all_releases(all_samples: sqlite3.Connection) -> None:
    """The rows without a release count each spec once, in the stacks of any of its releases."""
    specs, packages = defaultdict(set), defaultdict(set)
    for package, _, listing in LISTINGS:
        values = [(facet, listing[key]) for facet, key in SINGULAR.items()]
        for value in [*values, *(("stacks", stack) for stack in listing["stacks"])]:
            specs[value].add(listing["hash"])
            packages[value].add(package)
    rows = all_samples.execute(
        "SELECT facet, value, spec_count, package_count FROM facet_counts WHERE release IS NULL"
    )
    assert {row[:2]: row[2:] for row in rows} == {
        key: (len(specs[key]), len(packages[key])) for key in specs
    }


def test_facet_counts_of_a_page_agree_with_its_meta(samples: sqlite3.Connection) -> None:
    """`meta.num_specs_by_stack` of a release with one page is a facet of that release."""
    page = PAGES["004_86cb41a0e667e9fb.txt"]
    alone = [each for each in PAGES.values() if each["categories"] == page["categories"]]
    counted: Counter[str] = Counter()
    for each in alone:
        counted.update(each["meta"]["num_specs_by_stack"])
    rows = samples.execute(
        "SELECT value, facet_counts.spec_count FROM facet_counts "
        "JOIN releases ON releases.id = release WHERE facet = 'stacks' AND name = ?",
        [page["categories"][1]],
    )
    assert dict(rows.fetchall()) == dict(counted)


def test_releases_are_counted(all_samples: sqlite3.Connection) -> None:
    """Packages and specs of each release."""
    packages, specs = defaultdict(set), defaultdict(set)
    for package, release, listing in LISTINGS:
        packages[release].add(package)
        specs[release].add(listing["hash"])
    rows = all_samples.execute("SELECT name, date, package_count, spec_count FROM releases")
    assert {row[0]: row[1:] for row in rows} == {
        name: (date(name), len(packages[name]), len(specs[name])) for name in specs
    }


def test_packages_are_counted(all_samples: sqlite3.Connection) -> None:
    """Specs, configurations, releases, newest version and dates of each package."""
    hashes, configurations, releases, versions = (defaultdict(set) for _ in range(4))
    for package, release, listing in LISTINGS:
        hashes[package].add(listing["hash"])
        configurations[package].add(configuration(package, listing))
        releases[package].add(release)
        versions[package].add(listing["version"])
    rows = all_samples.execute(
        "SELECT name, spec_count, configuration_count, release_count, newest_version, "
        "first_seen, last_seen FROM packages"
    )
    assert {row[0]: row[1:] for row in rows} == {
        name: (
            len(hashes[name]),
            len(configurations[name]),
            len(releases[name]),
            max(versions[name], key=version_key),
            *seen(releases[name]),
        )
        for name in hashes
    }


def test_configurations_are_counted(all_samples: sqlite3.Connection) -> None:
    """Specs, releases and dates of each configuration."""
    hashes, releases = defaultdict(set), defaultdict(set)
    for package, release, listing in LISTINGS:
        key = configuration(package, listing)
        hashes[key].add(listing["hash"])
        releases[key].add(release)
    rows = all_samples.execute(
        "SELECT configurations.id, package, version, compiler, os, platform, target, variants, "
        "configurations.spec_count, configurations.release_count, configurations.first_seen, "
        "configurations.last_seen FROM configurations"
    ).fetchall()
    texts = {
        table: dict(all_samples.execute(f"SELECT id, {column} FROM {table}"))
        for table, column in (
            ("packages", "name"),
            ("versions", "name"),
            ("compilers", "name"),
            ("operating_systems", "name"),
            ("platforms", "name"),
            ("targets", "name"),
            ("variant_sets", "text"),
        )
    }
    found = {}
    for _, *ids, spec_count, release_count, first, last in rows:
        *names, variants = (
            table[number] for table, number in zip(texts.values(), ids, strict=True)
        )
        found[(*names, tuple(variants.split()))] = (spec_count, release_count, first, last)
    assert found == {
        key: (len(hashes[key]), len(releases[key]), *seen(releases[key])) for key in hashes
    }


def test_stacks_are_counted(all_samples: sqlite3.Connection) -> None:
    """Releases and specs of each stack; root is marked as no stack."""
    releases, hashes = defaultdict(set), defaultdict(set)
    for _, release, listing in LISTINGS:
        for stack in listing["stacks"]:
            releases[stack].add(release)
            hashes[stack].add(listing["hash"])
    rows = all_samples.execute("SELECT name, is_root, release_count, spec_count FROM stacks")
    assert {row[0]: row[1:] for row in rows} == {
        name: (name == "root", len(releases[name]), len(hashes[name])) for name in releases
    }


def test_version_positions_follow_spacks_order(all_samples: sqlite3.Connection) -> None:
    """1 is the oldest version of a package."""
    versions = defaultdict(set)
    for package, _, listing in LISTINGS:
        versions[package].add(listing["version"])
    rows = all_samples.execute(
        "SELECT packages.name, versions.name, position FROM versions "
        "JOIN packages ON packages.id = package"
    )
    assert set(rows.fetchall()) == {
        (package, version, position)
        for package, names in versions.items()
        for position, version in enumerate(sorted(names, key=version_key), start=1)
    }
