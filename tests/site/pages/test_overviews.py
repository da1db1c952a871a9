"""The pages that give an overview: the first page, releases, stacks, gaps, versions
over time.
"""

import sqlite3
from collections import Counter
from datetime import date
from typing import Any
from urllib.parse import parse_qsl

import pytest

from spack_cache_db.query.answers.release_amounts import amounts_of_releases
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.query.stored.totals import newest_snapshot
from spack_cache_db.site.charts.records import Life, Row, Span
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.pages import overviews
from spack_cache_db.site.pages.overviews import (
    load_about,
    load_coverage,
    load_home,
    load_release,
)
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.package_processors import PROCESSORS
from spack_cache_db.spack.targets import family
from tests.conftest import Build
from tests.pagetexts import page, spec
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
    assert page["first_snapshot"] == "2025-04-13"
    assert newest_snapshot(lookups) == "2025-04-20"
    assert sum(count for _, count in page["pages"]) == len(page["pages"]) * 15
    assert page["mirrors"] == ()
    assert [str(point.day) for point in page["over_time"]] == [
        "2025-04-13",
        "2025-04-20",
    ]
    change = load_home(lookups)["change"]
    assert change.sides.new == "develop-2025-04-20"
    newest = lookups.release(change.sides.new)
    assert newest is not None
    numbers = amounts_of_releases(lookups, [newest.id])[newest.id]
    assert (change.added, change.removed) == numbers


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
    return load_coverage(lookups, record, list(fields.items()))


@pytest.mark.parametrize(
    ("by", "on_linux"),
    [("family", {"aarch64": 2}), ("target", {"aarch64": 1, "neoverse_v1": 1})],
)
def test_binaries_of_macos_fill_no_gap_of_other_machines(
    built: Build, by: str, on_linux: dict[str, int]
) -> None:
    """They have columns of their own: an Arm server does not run them."""
    linux = [spec(1, target="aarch64"), spec(2, target="neoverse_v1")]
    macos = [spec(3, target="aarch64", platform="darwin")]
    conn = built(a=page("aa", specs=linux), b=page("bb", specs=macos))
    found = gaps_of(read_lookups(conn), "develop", by=by, reference="darwin aarch64")

    counts = {("aa", column): count for column, count in on_linux.items()}
    assert found["binaries"] == {**counts, ("bb", "darwin aarch64"): 1}
    assert found["gaps"] == {("bb", column) for column in on_linux}


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
            wanted = set(held(reference, by)) or {
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
            for package, cells in found["lines"]:
                for cell in cells:
                    assert cell.count == here[package, cell.column]
                    assert cell.is_gap is ((package, cell.column) in missing)
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
    """The newest version first, by the days of snapshots alone; a gap begins another
    bar.
    """
    hashes = sorted({text for listed in LISTED.values() for text in listed})
    pages = {}
    for release, listed in LISTED.items():
        specs = []
        for text in listed:
            version, target = text.split()
            number = hashes.index(text)
            specs.append(spec(number, versions=[version], target=target))
        pages[release] = page("zlib", release, specs)
    package = load_package(read_lookups(built(**pages)), "zlib", Filters())

    assert package is not None
    table = package.versions
    assert [row.name for row in table.rows] == ["2.0", "1.10", "1.9", "1.8"]

    first, second, last = (date(2025, 1, day) for day in (5, 12, 26))
    assert table.span == Span(first, last)
    lives = {row.name: row.life for row in table.rows}
    assert lives == {
        "2.0": None,
        "1.10": Life(((second, last),), "since 12 Jan"),
        "1.9": Life(((first, second), (last, last)), "since 5 Jan"),
        "1.8": None,
    }


def test_a_version_that_left_the_snapshots_is_gone(built: Build) -> None:
    """Its bar is pale, and its words have the last day with it."""
    old = page("zlib", "s-2024-12-29", [spec(1, versions=["1.8"])])
    new = page("zlib", "s-2025-01-05", [spec(2, versions=["1.9"])])
    package = load_package(read_lookups(built(a=old, b=new)), "zlib", Filters())

    assert package is not None
    newer, older = package.versions.rows
    assert newer.life is not None and newer.life.words == "since 5 Jan"

    day = date(2024, 12, 29)
    assert older.life == Life(((day, day),), "until 29 Dec 2024", is_gone=True)


def test_binaries_stand_below_their_processors(built: Build) -> None:
    """The columns are always the same, and others follow; the machine of the reader
    comes first, and each cell leads to as many binaries.
    """
    specs = [
        spec(1, versions=["1.9"], target="x86_64_v3"),
        spec(2, versions=["1.9"], target="x86_64_v3", os="rhel8"),
        spec(3, versions=["1.8"], target="neoverse_v2"),
        spec(4, versions=["1.8"], target="power9le"),
    ]
    lookups = read_lookups(built(a=page("zlib", "develop", specs)))
    package = load_package(lookups, "zlib", Filters())
    assert package is not None

    names = [column.name for column in package.versions.columns]
    assert names == [processor.name for processor in PROCESSORS] + ["power9le"]
    counts = {row.name: shown(row, names) for row in package.versions.rows}
    assert counts == {
        "1.9": {"x86-64-v3": 2},
        "1.8": {"neoverse v2": 1, "power9le": 1},
    }
    for row in package.versions.rows:
        for cell in row.cells:
            assert cell.path is not None
            query = cell.path.partition("?")[2].partition("#")[0]
            filters = Filters.parse(parse_qsl(query))
            behind = load_package(lookups, "zlib", filters)
            assert behind is not None and behind.spec_count == cell.count

    mine = load_package(lookups, "zlib", Filters(host="neoverse_v2"))
    assert mine is not None
    first = mine.versions.columns[0]
    assert first.name == "neoverse v2"
    assert first.is_chosen is True


def shown(row: Row, names: list[str]) -> dict[str, int]:
    """The counts of a row that are not zero, by the names of their columns."""
    cells = zip(names, row.cells, strict=True)
    return {name: cell.count for name, cell in cells if cell.count}
