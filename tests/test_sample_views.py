"""The views over the sample pages, row by row, as plain Python makes them from the page files."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict

from spack_cache_db.spack.versions import version_key
from tests.conftest import Build
from tests.pagetexts import page, spec
from tests.samples import LISTINGS, SINGULAR, configuration, seen


def test_builds_is_one_row_per_spec(all_samples: sqlite3.Connection) -> None:
    """Text in every column, stacks without root, the union over releases."""
    stacks: dict[str, set[str]] = defaultdict(set)
    releases, rows = defaultdict(set), {}
    for package, release, listing in LISTINGS:
        stacks[listing["hash"]] |= {*listing["stacks"]} - {"root"}
        releases[listing["hash"]].add(release)
        *names, variants = configuration(package, listing)
        rows[listing["hash"]] = (*names, " ".join(variants))
    found = all_samples.execute(
        "SELECT hash, package, version, compiler, os, platform, target, variants, stacks, "
        "releases, first_seen, last_seen FROM builds"
    ).fetchall()
    assert len(found) == len(rows)
    assert {row[0]: (*row[1:8], json.loads(row[8]), *row[9:]) for row in found} == {
        key: (*row, sorted(stacks[key]), len(releases[key]), *seen(releases[key]))
        for key, row in rows.items()
    }


def test_build_listings_is_one_row_per_listing(all_samples: sqlite3.Connection) -> None:
    """Text in every column, root among the stacks, the tarball's URL given back."""
    found = all_samples.execute(
        "SELECT release, package, hash, version, compiler, os, platform, target, variants, "
        "stacks, size, tarball FROM build_listings"
    ).fetchall()
    expected = [
        (
            release,
            package,
            listing["hash"],
            *(listing[key] for key in SINGULAR.values()),
            " ".join(listing["variants"]),
            json.dumps(sorted(listing["stacks"]), separators=(",", ":")),
            listing["size"],
            listing.get("tarball"),
        )
        for package, release, listing in LISTINGS
    ]
    assert any(row[-1] for row in expected)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_spec_stacks_shows_every_stack_but_root(all_samples: sqlite3.Connection) -> None:
    """(release, hash, stack), one row each."""
    found = all_samples.execute("SELECT release, hash, stack FROM spec_stacks").fetchall()
    assert sorted(found) == sorted(
        (release, listing["hash"], stack)
        for _, release, listing in LISTINGS
        for stack in listing["stacks"]
        if stack != "root"
    )


def test_spec_variants_shows_every_value(all_samples: sqlite3.Connection) -> None:
    """(hash, name, value), one row for each value of a list."""

    def values(text: str) -> list[tuple[str, str]]:
        if text[0] in "+~":
            return [(text[1:], str(text[0] == "+"))]
        name, value = text.split("=", 1)
        return [(name, each) for each in value.split(",")]

    found = all_samples.execute("SELECT hash, name, value FROM spec_variants").fetchall()
    assert sorted(found) == sorted(
        {
            (listing["hash"], *pair)
            for _, _, listing in LISTINGS
            for text in listing["variants"]
            for pair in values(text)
        }
    )


def test_versions_sort_and_compilers_group(all_samples: sqlite3.Connection) -> None:
    """In every view in words, a version's position is Spack's, and a compiler has no version."""
    for view in ("builds", "build_listings", "host_builds", "release_counts", "release_changes"):
        rows = all_samples.execute(
            "SELECT DISTINCT package, version, version_position, compiler, compiler_name "
            f"FROM {view}"
        ).fetchall()
        for package, version, position, compiler, name in rows:
            older = {each[1] for each in rows if each[0] == package and each[2] < position}
            assert all(version_key(each) < version_key(version) for each in older)
            assert name == compiler.partition("@")[0]
        assert rows or view == "release_changes"


def test_a_size_is_a_number_or_null(built: Build) -> None:
    """What is no whole number of bytes is NULL in `size_bytes`, and as it was in `size`."""
    sizes = {"0": 0, "82": 82, "-": None, "": None, "1.5 MB": None, "9" * 30: None}
    specs = [spec(number, size=text) for number, text in enumerate(sizes)]
    connection = built(a=page("a", specs=specs))
    assert dict(connection.execute("SELECT size, size_bytes FROM build_listings")) == sizes
