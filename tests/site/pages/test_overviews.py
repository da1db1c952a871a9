"""The pages that give an overview: the first page, releases, stacks, gaps, versions
over time.
"""

import sqlite3
from collections import Counter
from typing import Any

import pytest

from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.query.stored.totals import newest_snapshot
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.pages import overviews
from spack_cache_db.site.pages.overviews import (
    load_about,
    load_coverage,
    load_home,
    load_release,
)
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.package_versions import Lane
from spack_cache_db.spack.targets import family
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash
from tests.site.cache import BUILDS


def test_what_is_no_binary_is_not_counted(real_index: sqlite3.Connection) -> None:
    """Externals of an index, and packages that only they have, are in no total and no
    list.
    """
    page = load_about(read_lookups(real_index))

    assert (page["totals"].packages, page["totals"].specs) == (226, 883)
    assert sum(bar.count for bar in page["families"]) == 883


def test_of_pages(lookups: Lookups) -> None:
    """Totals, dates and sources are those of the file's own tables."""
    page = load_about(lookups)

    assert page["totals"][:2] == (6, 23) and page["totals"].releases == 4
    assert (page["first_snapshot"], newest_snapshot(lookups)) == (
        "2025-04-13",
        "2025-04-20",
    )
    assert sum(count for _, count in page["pages"]) == len(page["pages"]) * 15
    assert page["mirrors"] == ()
    assert [str(point.day) for point in page["over_time"]] == [
        "2025-04-13",
        "2025-04-20",
    ]
    assert load_home(lookups)["change"].sides.new == "develop-2025-04-20"


def test_releases_know_their_neighbours(lookups: Lookups) -> None:
    """A snapshot leads to the one before and after; the branch comes after its
    newest.
    """
    neighbours = {
        "develop-2025-04-13": (None, "develop-2025-04-20"),
        "develop-2025-04-20": ("develop-2025-04-13", "develop"),
        "develop": ("develop-2025-04-20", None),
    }
    for release in lookups.releases.values():
        page = load_release(lookups, release, [])
        assert (page["before"], page["after"]) == neighbours.get(
            release.name, (None, None)
        )


def held(release: str, by: str) -> Counter[tuple[str, str]]:
    """Return how many specs of each package a release has for each column."""
    found: Counter[tuple[str, str]] = Counter()
    for each in BUILDS:
        columns = {
            "family": (family(each.target),),
            "target": (each.target,),
            "stack": each.stacks,
        }
        for column in columns[by] if release in each.releases else ():
            found[each.package, column] += len(each.in_page())
    return found


def gaps_of(lookups: Lookups, release: str, **fields: str) -> dict[str, Any]:
    """Return the page of a release."""
    record = lookups.release(release)
    assert record is not None
    return load_coverage(lookups, record, [*fields.items()])


@pytest.mark.parametrize("by", overviews.COLUMN_KINDS)
def test_gaps_are_where_only_the_reference_has_a_binary(
    lookups: Lookups, by: str
) -> None:
    """The reference is a column of the release, or another release."""
    releases = [each.name for each in lookups.releases.values()]
    for release in releases:
        here = held(release, by)
        columns = {column for _, column in here}
        for reference in (*columns, *(each for each in releases if each != release)):
            wanted = {*held(reference, by)} or {
                (package, column)
                for package, chosen in here
                for column in columns
                if chosen == reference
            }
            found = gaps_of(lookups, release, by=by, reference=reference)
            missing = found["gaps"]
            assert missing == wanted - here.keys(), (release, reference)
            assert found["binaries"] == here
            assert found["rows"] == sorted({package for package, _ in missing})
            assert found["gap_counts"] == Counter(column for _, column in missing)
            assert columns <= dict(found["columns"]).keys()


def test_unknown_reference_is_told(lookups: Lookups) -> None:
    """The page then compares with the column that has most packages, and says so."""
    found = gaps_of(lookups, "develop", by="family", reference="nope")
    assert found["reference"] == "x86_64" and "nope" in found["fault"]


def test_packages_with_gaps_have_pages(
    lookups: Lookups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pages together have each package once, by name; a number too large is the
    last page.
    """
    whole = gaps_of(lookups, "develop")["rows"]
    monkeypatch.setattr(overviews, "COVERAGE_ROWS", 2)
    page_count = gaps_of(lookups, "develop")["window"].page_count
    pages = [
        gaps_of(lookups, "develop", page=str(number + 1))
        for number in range(page_count)
    ]
    assert page_count > 1 and [row for page in pages for row in page["rows"]] == whole
    assert gaps_of(lookups, "develop", page="99")["rows"] == pages[-1]["rows"]


LISTED = {
    "s-2025-01-05": ("1.9 zen3",),
    "s-2025-01-12": ("1.9 zen3", "1.10 zen3"),
    "s-2025-01-19": ("1.10 zen3", "1.10 aarch64"),
    "s-2025-01-26": ("1.10 zen3", "1.9 aarch64"),
    "v1.0": ("1.8 zen3",),
    "develop": ("1.10 aarch64", "2.0 zen4"),
}
"""The versions and targets that each release has, the oldest first."""


def test_versions_are_shown_since_when_they_are_there(built: Build) -> None:
    """By family of targets, the newest version first; a gap begins another bar."""
    hashes = sorted({text for listed in LISTED.values() for text in listed})
    pages = {
        release: page(
            "zlib",
            release,
            [
                spec(
                    hash=spec_hash(hashes.index(text)),
                    versions=[version],
                    target=target,
                )
                for text in listed
                for version, target in [text.split()]
            ],
        )
        for release, listed in LISTED.items()
    }
    package = load_package(read_lookups(built(**pages)), "zlib", Filters())
    assert package is not None
    assert [version for version, _ in package.timeline] == ["2.0", "1.10", "1.9", "1.8"]
    assert dict(package.timeline) == {
        "2.0": [Lane("x86_64", [[5, 5]], "develop", None, 1)],
        "1.10": [
            Lane("x86_64", [[1, 3]], "2025-01-12", None, 3),
            Lane("aarch64", [[2, 2], [5, 5]], "2025-01-19", None, 2),
        ],
        "1.9": [
            Lane("x86_64", [[0, 1]], "2025-01-05", "2025-01-12", 2),
            Lane("aarch64", [[3, 3]], "2025-01-26", None, 1),
        ],
        "1.8": [Lane("x86_64", [[4, 4]], "v1.0", "v1.0", 1)],
    }
