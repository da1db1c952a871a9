"""Coverage of a release: every count and every gap, against a loop over the invented cache."""

from __future__ import annotations

from collections import Counter

import pytest

from spack_cache_db.query.connection import Lookups
from spack_cache_db.site.pages import gaps
from spack_cache_db.site.pages.gaps import CoverageFilters, CoveragePage, load_gaps
from spack_cache_db.spack.targets import family
from tests.site.cache import BUILDS


def held(release: str, by: str) -> Counter[tuple[str, str]]:
    """Return how many specs of each package a release has for each column."""
    found: Counter[tuple[str, str]] = Counter()
    for build in BUILDS:
        columns = {
            "family": (family(build.target),),
            "target": (build.target,),
            "stack": build.stacks,
        }
        for column in columns[by] if release in build.releases else ():
            found[build.package, column] += len(build.in_page())
    return found


def page(lookups: Lookups, release: str, asked: CoverageFilters) -> CoveragePage:
    """Return the page of a release."""
    found = load_gaps(lookups, release, asked)
    assert found is not None
    return found


@pytest.mark.parametrize("by", gaps.KINDS)
def test_gaps_are_where_only_the_reference_has_a_binary(lookups: Lookups, by: str) -> None:
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
            found = page(lookups, release, CoverageFilters(by, reference))
            missing = {
                (row.package, column.name)
                for row in found.rows
                for column, count in zip(found.columns, row.counts, strict=True)
                if count is None
            }
            counted = {
                (row.package, column.name): count
                for row in found.rows
                for column, count in zip(found.columns, row.counts, strict=True)
                if count
            }
            assert missing == wanted - here.keys(), (release, reference)
            assert counted == {
                key: count for key, count in here.items() if key[0] in {p for p, _ in missing}
            }
            assert {each.name: each.gaps for each in found.columns if each.gaps} == Counter(
                column for _, column in missing
            )


def test_unknown_reference_is_told(lookups: Lookups) -> None:
    """The page then compares with the column that has most packages, and says so."""
    found = page(lookups, "develop", CoverageFilters("family", "nope"))
    assert found.reference == "x86_64" and "nope" in str(found.fault)
    assert load_gaps(lookups, "nope", CoverageFilters()) is None


def test_packages_with_gaps_have_pages(lookups: Lookups, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages together have each package once, by name; a number too large is the last page."""
    whole = page(lookups, "develop", CoverageFilters())
    monkeypatch.setattr(gaps, "PAGE_ROWS", 2)
    first = page(lookups, "develop", CoverageFilters())
    rows = [
        row
        for number in range(1, first.page_count + 1)
        for row in page(lookups, "develop", CoverageFilters(page=str(number))).rows
    ]
    assert first.page_count > 1 and rows == [*whole.rows]
    assert page(lookups, "develop", CoverageFilters(page="99")).rows == (
        *rows[-2 + len(rows) % 2 :],
    )
