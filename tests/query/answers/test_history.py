"""What each release has of a query's answer, against what pages and indexes say."""

import sqlite3
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.diff import diff
from spack_cache_db.query.answers.history import history
from spack_cache_db.query.rows import csv_text
from spack_cache_db.releases import release_date, releases_before
from tests.contradictions import (
    EXAMPLE,
    QUERIES,
    STACKS,
    Listing,
    database_of,
    listings,
)
from tests.oracle import Oracle
from tests.pagetexts import spec_hash

QUICK = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
HOSTS = ("zen3", "x86_64_v3", "aarch64")


@pytest.mark.slow
@QUICK
@given(drawn=listings(), text=QUERIES, data=st.data())
def test_history_is_what_find_answers_in_each_release(
    drawn: list[Listing], text: str, data: st.DataObject
) -> None:
    """Each row counts the specs that satisfy the query there, and compares their
    hashes.
    """
    sources = Oracle(drawn)
    stacks = sorted(
        {name for listing in drawn if listing.is_binary for name in listing.stacks}
        & set(STACKS)
    )
    options = {"host": st.sampled_from(HOSTS)}
    if stacks:
        options["stack"] = st.sampled_from(stacks)
    narrowing = data.draw(st.fixed_dictionaries({}, optional=options))
    with database_of(drawn) as conn:
        history_follows_the_rule(conn, sources, text, narrowing)


def test_histories_of_an_example() -> None:
    """The same of one file, in the fast loop."""
    sources = Oracle(EXAMPLE)
    with database_of(EXAMPLE) as conn:
        for text in (
            "*",
            "aa@1.10:",
            "k=a",
            f"/{spec_hash(3)}",
            "aa %gcc",
            "* target=aarch64",
        ):
            for narrowing in ({}, {"stack": "e4s"}, {"host": "zen3"}):
                history_follows_the_rule(conn, sources, text, narrowing)


def history_follows_the_rule(
    conn: sqlite3.Connection, sources: Oracle, text: str, narrowing: dict[str, str]
) -> None:
    """Compare a history with the sources."""
    # For each release: its binaries, and how many configurations they have.
    hashes: dict[str, set[str]] = {}
    configuration_counts = {}
    for release in sources.releases:
        answer = sources.answer(text, release=release, **narrowing)
        hashes[release] = set().union(*answer.values())
        configuration_counts[release] = len(answer)

    before = releases_before(sources.releases)
    expected: list[dict[str, Any]] = []
    for release in reversed(sources.releases):
        now = hashes[release]
        previous = hashes[before[release]] if release in before else set()
        expected.append(
            {
                "release": release,
                "date": release_date(release),
                "specs": len(now),
                "configurations": configuration_counts[release],
                "added": len(now - previous),
                "removed": len(previous - now),
            }
        )

    found = history(conn, text, **narrowing)

    assert found.rows.records == expected
    days = sorted(row["date"] for row in expected if row["specs"] and row["date"])
    if days:
        assert (found.first_seen, found.last_seen) == (days[0], days[-1])
    else:
        assert (found.first_seen, found.last_seen) == (None, None)


def test_history_of_a_sample(samples: sqlite3.Connection) -> None:
    """Snapshots come before their branch, which is compared with the newest of them."""
    found = history(samples, "py-ml-dtypes")

    assert found.releases == (
        ("develop-2025-04-20", "2025-04-20", 12, 5, 12, 0, None, None),
        ("develop", None, 129, 7, 117, 0, "develop-2025-04-20", 0.0),
    )
    assert (found.first_seen, found.last_seen) == ("2025-04-20", "2025-04-20")
    assert csv_text(found.rows).splitlines() == [
        "release,date,specs,configurations,added,removed",
        "develop-2025-04-20,2025-04-20,12,5,12,0",
        "develop,,129,7,117,0",
    ]


@pytest.mark.slow
@QUICK
@given(drawn=listings())
def test_views_say_what_the_difference_says(drawn: list[Listing]) -> None:
    """`release_changes` has each configuration that `diff` names, with its hashes
    counted.
    """
    views_follow_the_rule(drawn)


def test_views_of_an_example() -> None:
    """The same of one file, in the fast loop."""
    views_follow_the_rule(EXAMPLE)


def views_follow_the_rule(drawn: list[Listing]) -> None:
    """Compare views of changes with differences and with the sources."""
    sources = Oracle(drawn)
    before = releases_before(sources.releases)
    words = ", ".join(Configuration._fields)
    with database_of(drawn) as conn:
        rows = conn.execute(
            f"SELECT release, change, {words}, kept, added, removed FROM release_changes"
        ).fetchall()
        expected = set()
        for release, older in before.items():
            found = diff(conn, older, release)
            for change, changed in found.by_change.items():
                for each in changed:
                    key = (release, change, *printed(each.configuration))
                    expected.add((*key, *each.specs))
        previous = dict(conn.execute("SELECT release, previous FROM release_changes"))
        counted = conn.execute(
            f"SELECT release, {words}, spec_count FROM release_counts"
        ).fetchall()
    assert set(rows) == expected
    assert len(rows) == len(expected)
    assert previous.items() <= before.items()

    shown_counts: Counter[tuple[str, ...]] = Counter()
    for release, shown in sources.shown.items():
        for listing in shown.values():
            shown_counts[release, *printed(listing.configuration)] += 1
    assert {row[:-1]: row[-1] for row in counted} == shown_counts


def printed(configuration: Configuration) -> tuple[str, ...]:
    """Return a configuration as the views print it."""
    *words, variants = configuration
    return (*words, " ".join(variants))
