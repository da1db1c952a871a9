"""site.pages.snapshots: counts over time, the age of data, stacks that shrank."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.open.lookups import Release, read_lookups
from spack_cache_db.site.charts.records import Point
from spack_cache_db.site.pages.overviews import load_home, load_release, load_stack
from spack_cache_db.site.pages.snapshots import (
    MOST_POINTS,
    Age,
    age_of,
    branch_of,
    newest_of,
    points_of,
    shrunk_stacks,
    snapshots_of,
    thinned,
)
from tests.conftest import Build
from tests.pagetexts import page, spec

TODAY = date(2026, 1, 31)


def snapshot(number: int, branch: str = "develop") -> Release:
    """The snapshot of a branch on a day since 2026."""
    day = date(2026, 1, 1) + timedelta(days=number)
    return Release(
        id=number,
        name=f"{branch}-{day}",
        kind="snapshot",
        date=str(day),
        position=number,
        previous=None,
        package_count=1,
        spec_count=number,
    )


@pytest.mark.parametrize(
    ("day", "words", "is_old"),
    [
        ("2026-02-01", "today", False),
        ("2026-01-31", "today", False),
        ("2026-01-30", "1 day old", False),
        ("2026-01-01", "30 days old", False),
        ("2025-12-31", "1 month old", True),
        ("2025-07-13", "6 months old", True),
        ("2025-02-01", "1 year old", True),
        ("2023-01-01", "3 years old", True),
    ],
)
def test_data_says_its_age(day: str, words: str, is_old: bool) -> None:
    """A snapshot of more than 30 days is old."""
    assert age_of(day, TODAY) == Age(words, is_old)


@pytest.mark.parametrize("day", ["no day", None])
def test_an_unknown_day_has_no_age(day: str | None) -> None:
    """Another program may have written any text."""
    assert age_of(day, TODAY) is None


@given(st.integers(0, 400), st.integers(0, 399))
def test_a_chart_has_few_points(count: int, chosen: int) -> None:
    """The newest snapshot and the chosen one are among them, at even steps."""
    snapshots = [snapshot(number) for number in range(count)]
    chosen_one = snapshots[chosen] if chosen < count else None
    shown = [release.id for release in thinned(snapshots, chosen_one)]

    assert len(shown) <= MOST_POINTS + 1
    assert shown == sorted(shown)
    if snapshots:
        assert shown[-1] == count - 1
    if chosen_one is not None:
        assert chosen in shown
    if count <= MOST_POINTS:
        assert len(shown) == count


def test_one_point_is_chosen() -> None:
    """A snapshot without a count has none of what is counted."""
    snapshots = [snapshot(1), snapshot(2)]
    assert points_of(snapshots, {2: 7}, snapshots[1]) == [
        Point(date(2026, 1, 2), 0),
        Point(date(2026, 1, 3), 7, is_chosen=True),
    ]


def test_the_state_of_a_cache(built: Build) -> None:
    """The snapshots of the newest one's branch are a line, and each stack that has
    fewer binaries than before is named.
    """
    first_week = [spec(1, stacks=["e4s"]), spec(2, stacks=["ml"])]
    second_week = [spec(3, stacks=["ml"]), spec(4, stacks=["ml"])]
    conn = built(
        a=page("a", "develop-2026-01-04", first_week),
        b=page("a", "develop-2026-01-11", second_week),
        c=page("a", "other-2026-01-05", [spec(5, stacks=["e4s"])]),
        d=page("a", "develop", [spec(6, stacks=["e4s"])]),
    )
    lookups = read_lookups(conn)
    newest = newest_of(lookups)
    assert newest is not None and newest.name == "develop-2026-01-11"
    assert [release.name for release in snapshots_of(lookups, branch_of(newest))] == [
        "develop-2026-01-04",
        "develop-2026-01-11",
    ]
    (stack,) = shrunk_stacks(lookups, newest)
    assert (stack.name, stack.fewer) == ("e4s", 1)
    assert stack.path == ("/diff/develop-2026-01-04...develop-2026-01-11?stack=e4s")

    home = load_home(lookups)
    assert [point.count for point in home["over_time"]] == [2, 2]
    assert home["shrunk"] == [stack]
    branch = lookups.release("develop")
    assert branch is not None
    assert len(load_release(lookups, branch, [])["over_time"]) == 2
    other = lookups.release("other-2026-01-05")
    assert other is not None
    assert [p.is_chosen for p in load_release(lookups, other, [])["over_time"]] == [
        True
    ]
    e4s = lookups.stack("e4s")
    assert e4s is not None
    assert [point.count for point in load_stack(lookups, e4s, [])["over_time"]] == [
        1,
        0,
    ]


def test_a_database_without_snapshots_has_no_state(built: Build) -> None:
    """The first page then has neither a chart nor an age."""
    lookups = read_lookups(built(a=page("a", "develop", [spec(1)])))
    home = load_home(lookups)
    assert (home["newest"], home["age"]) == (None, None)


def test_a_release_is_set_up_without_installing_anything(built: Build) -> None:
    """Its commands add mirrors and trust keys."""
    lookups = read_lookups(built(a=page("hdf5", "develop", [spec(1)])))
    release = lookups.release("develop")

    assert release is not None

    setup = load_release(lookups, release, [])["setup"]
    assert [command.split()[:3] for command in setup.commands] == [
        ["spack", "mirror", "add"],
        ["yes", "|", "spack"],
    ]
