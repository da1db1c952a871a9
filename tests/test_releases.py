"""releases: the kind, the date and the order of releases."""

import random
from collections.abc import Iterable
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.releases import (
    is_public_mirror,
    release_date,
    release_kind,
    releases_before,
    sort_releases,
    thinned_out,
)

ORDERED = [
    "develop",
    "site",
    "v2025.06.0",
    "v1.0.0",
    "v0.23.1",
    "v0.23.0",
    "v0.22.1",
    "v0.18",
    "develop-2025-07-13",
    "develop-2025-04-20",
    "site-2025-02-01",
    "develop-2024-12-31",
    "develop-2025-13-01",
    "pr-123",
]


@pytest.mark.parametrize(
    ("name", "kind", "date"),
    [
        ("develop", "branch", None),
        ("main", "branch", None),
        ("develop-2025-04-20", "snapshot", "2025-04-20"),
        ("e4s-2024-02-29", "snapshot", "2024-02-29"),
        ("develop-2025-02-29", "other", None),
        ("develop-2025-4-2", "other", None),
        ("2025-04-20", "other", None),
        ("v0.18", "release", None),
        ("v2025.06.0", "release", None),
        ("v1", "release", None),
        ("v0.18-rc1", "other", None),
        ("v", "other", None),
        ("pr-1", "other", None),
        ("", "other", None),
    ],
)
def test_a_name_has_a_kind_and_a_date(name: str, kind: str, date: str | None) -> None:
    """Only a real day makes a snapshot; no date is invented."""
    assert (release_kind(name), release_date(name)) == (kind, date)


def test_the_order_is_branch_releases_snapshots() -> None:
    """Releases and snapshots from new to old, what is neither at the end."""
    for seed in range(20):
        shuffled = ORDERED[:]
        random.Random(seed).shuffle(shuffled)
        assert sort_releases(set(shuffled)) == ORDERED


def test_the_release_before_another() -> None:
    """Snapshots and releases follow each other; a release with snapshots follows the
    newest.
    """
    names = [*ORDERED, "v1.0.0-2025-01-01", "main", "main-2024-01-01"]

    assert releases_before(names) == {
        "develop": "develop-2025-07-13",
        "develop-2025-07-13": "develop-2025-04-20",
        "develop-2025-04-20": "develop-2024-12-31",
        "main": "main-2024-01-01",
        "site": "site-2025-02-01",
        "v2025.06.0": "v1.0.0",
        "v1.0.0": "v1.0.0-2025-01-01",
        "v0.23.1": "v0.23.0",
        "v0.23.0": "v0.22.1",
        "v0.22.1": "v0.18",
    }


DAYS = st.sets(st.dates(date(2024, 11, 1), date(2026, 3, 31)), max_size=150)


def kept_of(days: Iterable[date], newest: int) -> list[date]:
    """Return the days whose snapshots of a branch are not thinned, the newest first."""
    names = {f"x-{day}": day for day in days}
    others = {"x", "y-2025-01-01"}
    removed = thinned_out(names.keys() | others, newest)
    assert not others & removed
    return sorted(
        (day for name, day in names.items() if name not in removed), reverse=True
    )


@given(DAYS, st.integers(1, 12))
def test_older_snapshots_are_thinned(days: set[date], newest: int) -> None:
    """The newest stay; of older ones one a week, of still older ones one a month; then
    no more.
    """
    kept = kept_of(days, newest)

    assert kept[:newest] == sorted(days, reverse=True)[:newest]
    older = kept[newest:]
    months = older[newest:]
    assert len({day.isocalendar()[:2] for day in older}) == len(older)
    assert len({(day.year, day.month) for day in months}) == len(months)
    assert kept_of(kept, newest) == kept
    assert not days or min(days) in kept


@given(DAYS, st.integers(1, 12))
def test_thinning_every_night_leaves_no_gap(days: set[date], newest: int) -> None:
    """Thinned night after night, every day has a snapshot of the month and the week
    before it.
    """
    kept: list[date] = []
    for day in sorted(days):
        kept = kept_of({*kept, day}, newest)
    for day in days:
        assert any(timedelta() <= day - other <= timedelta(30 + 6) for other in kept)


@pytest.mark.parametrize(
    ("url", "is_public"),
    [
        ("https://binaries.spack.io", True),
        ("https://binaries.spack.io/develop/e4s", True),
        ("https://binaries.spack.io.example.org/develop", False),
        ("s3://mine", False),
    ],
)
def test_an_address_in_the_public_cache(url: str, is_public: bool) -> None:
    """It begins with that of the cache, whose name another host may begin with."""
    assert is_public_mirror(url) is is_public
