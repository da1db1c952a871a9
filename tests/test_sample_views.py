"""The views over the sample pages, row by row, as plain Python makes them from the page files."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict

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
