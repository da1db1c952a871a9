"""`find`, SQL, the site and `cover` give the answer of a naive loop over contradictory
sources.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.find import Found, find
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.presence import FoundSpec
from spack_cache_db.site.filters import EVERYWHERE, Filters, Narrowing
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import Elsewhere
from spack_cache_db.site.pages.spec import load_spec
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.targets import runs_on
from tests.contradictions import (
    EXAMPLE,
    QUERIES,
    STACKS,
    Listing,
    database_of,
    listings,
)
from tests.oracle import Answer, Oracle, days_of
from tests.pagetexts import spec_hash

Names = tuple[str | None, str | None, str | None, str | None]
"""A release, a stack, a host and a system."""


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    listings(),
    st.lists(QUERIES, min_size=2, max_size=8),
    st.integers(0, 11),
    st.sampled_from([None, *STACKS]),
    st.sampled_from([None, "zen3", "m1"]),
    st.sampled_from([None, "rhel8"]),
)
def test_every_way_to_ask_gives_the_same_answer(
    drawn: list[Listing],
    queries: list[str],
    number: int,
    stack: str | None,
    host: str | None,
    os: str | None,
) -> None:
    """`find`, SQL, the canned query, the search, `cover` and the pages agree with the
    sources.
    """
    expected = Oracle(drawn)
    release = [*expected.releases, None][number % (len(expected.releases) + 1)]
    with database_of(drawn) as conn:
        every_way_gives_the_same(conn, expected, queries, (release, stack, host, os))


@pytest.fixture(scope="module")
def example() -> Iterator[sqlite3.Connection]:
    """A database of the example."""
    with database_of(EXAMPLE) as conn:
        yield conn


@pytest.mark.parametrize(
    ("queries", "names"),
    [
        (
            ["aa", "aa@1.10:", "k=a", f"/{spec_hash(3)}"],
            ("develop", "e4s", "zen3", "rhel8"),
        ),
        (["*", "aa %gcc", "bb target=:zen3"], ("v1.10", "ml", None, None)),
        (["~x", "aa@=1.10", f"/{spec_hash(2)[:26]}"], ("v1.9", None, "m1", None)),
        (["aa os=ubuntu22.04", "k:=a,b"], ("mine", "ml", "zen3", None)),
        (["bb %clang@15", "* %gcc@13"], ("develop-2025-01-05", None, None, "rhel8")),
    ],
)
def test_every_way_to_ask_gives_the_same_answer_of_an_example(
    example: sqlite3.Connection, queries: list[str], names: Names
) -> None:
    """The same of one file, in the fast loop."""
    every_way_gives_the_same(example, Oracle(EXAMPLE), queries, names)


def every_way_gives_the_same(
    conn: sqlite3.Connection, expected: Oracle, queries: list[str], names: Names
) -> None:
    """Ask each query in each way, everywhere and where these names lead."""
    lookups = read_lookups(conn)
    release, stack, host, os = names
    stack = stack if lookups.stack(stack) else None
    places: tuple[dict[str, str | None], ...] = (
        {},
        {"release": release},
        {"release": release, "stack": stack},
        {"release": release, "stack": stack, "host": host},
    )
    for text in queries:
        sql_finds_what_find_finds(conn, expected, text)
        for place in places:
            specs_are_those_of_the_place(conn, expected, text, place)
            the_search_finds_what_find_finds(conn, expected, text, Narrowing(**place))
            an_environment_has_what_find_finds(conn, expected, text, place)
        here = {"release": release, "os": os, "platform": "linux"}
        specs_are_those_of_the_place(conn, expected, text, here)
    for name in lookups.words["package"].values():
        filters = Filters(release=release, stack=stack, host=host, os=os)
        the_page_of_a_package_follows_the_rule(conn, expected, name, filters)


def specs_are_those_of_the_place(
    conn: sqlite3.Connection, expected: Oracle, text: str, place: dict[str, str | None]
) -> None:
    """Specs count as the release says; each row is of one spec alone, what is current
    first.
    """
    found = find(conn, text, **place, with_hashes=True)  # type: ignore[arg-type]

    assert answer_of(found) == expected.answer(text, **place), (text, place)
    assert [each.spec_count for each in found] == [
        len(each.specs or ()) for each in found
    ]
    days = [(each.first_seen, each.last_seen) for each in found]
    assert days == [days_of(each.releases) for each in found]
    for answer in found:
        specs = list(answer.specs or ())
        assert [(spec.hash, told(spec)) for spec in specs] == [
            (spec.hash, expected.of(spec.hash)) for spec in specs
        ]
        assert specs == sorted(specs, key=lambda spec: expected.order(spec.hash))
        where = {name for spec in specs for name in spec.releases}
        assert set(answer.releases) == (
            where if is_of_specs(expected, text) else set(answer.releases)
        )
    if not is_of_specs(expected, text):
        places = {
            answer.configuration: (answer.releases, answer.stacks) for answer in found
        }
        assert places == {
            configuration: (
                tuple(expected.showing[configuration]),
                expected.stacks_of(configuration),
            )
            for configuration in expected.answer(text, **place)
        }


def is_of_specs(expected: Oracle, text: str) -> bool:
    """Whether the specs of one configuration may differ in the answer."""
    return "/" in text or ("%" in text and bool(expected.recorded))


def told(spec: FoundSpec) -> dict[str, Any]:
    """Return where a spec is, in the form of `Oracle.of`."""
    return {
        name: getattr(spec, name)
        for name in ("releases", "stacks", "first_seen", "last_seen")
    }


def answer_of(found: list[Found]) -> Answer:
    """Return what `find` found in the form of `Oracle.answer`."""
    return {answer.configuration: set(answer.hashes or ()) for answer in found}


def sql_finds_what_find_finds(
    conn: sqlite3.Connection, expected: Oracle, text: str
) -> None:
    """`spec_match` of hashes and of configurations."""
    every = {dag_hash for some in expected.answer(text).values() for dag_hash in some}
    by_hash = conn.execute("SELECT hash FROM builds WHERE spec_match(?, hash)", [text])
    assert {row[0] for row in by_hash} == every, text
    if not is_of_specs(expected, text):
        by_id = "SELECT sum(spec_count) FROM configurations WHERE spec_match(?, id)"
        assert (conn.execute(by_id, [text]).fetchone()[0] or 0) == len(every), text


def the_search_finds_what_find_finds(
    conn: sqlite3.Connection,
    expected: Oracle,
    text: str,
    narrowing: Narrowing = EVERYWHERE,
) -> None:
    """All its pages together have the configurations, with as many specs, and hashes of
    these; or the packages of a spec without one, with as many specs.

    A target in the text replaces the machine, unless it runs on that.
    """
    target = parse_query(text).target
    host = narrowing.host
    if target is not None and host is not None and not runs_on(target, host):
        narrowing = replace(narrowing, host=None)
    answer = expected.answer(text, **dict(narrowing.pairs))
    lookups = read_lookups(conn)
    found: dict[Configuration, int] = {}
    packages: Counter[str] = Counter()
    number = 1
    count = 1
    while number <= count:
        page = Search(lookups, narrowing, str(number)).result(text)
        if isinstance(page, Elsewhere):
            _, kind, name = f"{page.path}/".split("/")[:3]
            if kind == "package":
                filters = Filters.parse(page.pairs)
                the_page_of_a_package_follows_the_rule(
                    conn, expected, unquote(name), filters
                )
            # A spec's page shows the spec, whatever its release shows; other pages are
            # of words.
            found_hashes = {each for some in answer.values() for each in some}
            assert kind == "package" or all(
                name and each.startswith(name) for each in found_hashes
            )
            return
        if page.packages is not None and page.spec:
            for package in page.packages.rows:
                packages[package.name] += package.spec_count
            number += 1
            count = page.packages.window.page_count
            continue
        if page.answer is None:
            # A text that names no package of the database is read as words.
            assert not answer, (text, narrowing, page)
            return
        for row in page.answer.rows:
            found[row.configuration] = row.spec_count
            assert row.hash in answer[row.configuration], (text, narrowing)
        number += 1
        count = page.answer.window.page_count
    if packages:
        of_packages: Counter[str] = Counter()
        for configuration, hashes in answer.items():
            of_packages[configuration.package] += len(hashes)
        assert packages == of_packages, (text, narrowing)
        return
    assert found == {key: len(some) for key, some in answer.items()}, (text, narrowing)


def an_environment_has_what_find_finds(
    conn: sqlite3.Connection, expected: Oracle, text: str, place: dict[str, str | None]
) -> None:
    """A spec that names a package has a binary where `find` has one, and as many.

    Whether Spack's solver reuses it is another question.
    """
    if parse_query(text).name is None:
        return
    answer = expected.answer(text, **place)
    (covered,) = cover(conn, [text], **place).specs
    count = sum(map(len, answer.values()))
    assert covered.configurations == len(answer), (
        text,
        place,
    )
    assert covered.spec_count == count, (
        text,
        place,
    )
    assert (covered.hash is not None) == bool(answer)
    if covered.configuration is not None and answer:
        assert covered.hash in answer[covered.configuration]


def the_page_of_a_package_follows_the_rule(
    conn: sqlite3.Connection, expected: Oracle, name: str, filters: Filters
) -> None:
    """Rows, counts, hashes, and what each filter promises, are those of the sources."""
    listed = load_package(read_lookups(conn), name, filters)
    assert listed is not None
    place = {key: getattr(filters, key) for key in ("release", "stack", "host", "os")}

    answer = expected.answer(name, **place)

    assert {row.configuration: row.spec_count for row in listed.rows} == {
        key: len(some) for key, some in answer.items()
    }
    for row in listed.rows:
        assert row.hash in answer[row.configuration]
    for choice in listed.choices:
        if choice.name in ("release", "stack") and place[choice.name] is None:
            values = expected.releases if choice.name == "release" else STACKS
            configuration_counts = {}
            for value in values:
                found = expected.answer(name, **(place | {choice.name: value}))
                if found:
                    configuration_counts[value] = len(found)
            assert dict(choice.values) == configuration_counts


def test_the_page_of_a_spec_of_an_example(example: sqlite3.Connection) -> None:
    """It has the spec's configuration, and the sources that contradict it."""
    each_page_of_a_spec_follows_the_rule(example, Oracle(EXAMPLE))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(listings())
def test_the_page_of_a_spec_tells_each_contradiction(drawn: list[Listing]) -> None:
    """The same of any sources."""
    with database_of(drawn) as conn:
        each_page_of_a_spec_follows_the_rule(conn, Oracle(drawn))


def each_page_of_a_spec_follows_the_rule(
    conn: sqlite3.Connection, expected: Oracle
) -> None:
    """Compare the page of each spec with the sources."""
    for dag_hash, own in expected.own.items():
        page = load_spec(read_lookups(conn), dag_hash)
        assert page is not None
        shown = {
            name: some[dag_hash]
            for name, some in expected.shown.items()
            if dag_hash in some
        }
        assert page.configuration == own
        assert page.other_count == len(expected.answer("*")[own]) - 1
        found_listings = [
            (listing.release, listing.size, listing.tarball)
            for listing in page.listings
        ]
        assert found_listings == [
            (release, listing.size, listing.tarball)
            for release, listing in shown.items()
        ]
        contradicting = {path for path, _ in page.otherwise}
        assert contradicting == contradicting_sources(expected, dag_hash, own)


def contradicting_sources(
    expected: Oracle, dag_hash: str, own: Configuration
) -> set[str]:
    """Return the paths of sources that have another configuration of a spec, or an
    index that has it as another package than the first index has.
    """
    listings = [listing for listing in expected.said if listing.dag_hash == dag_hash]

    # The recipe's hash is that of the package, and is held against the first index.
    in_indexes = [listing for listing in listings if listing.index is not None]
    in_indexes.sort(key=lambda listing: listing.index or "")
    in_indexes.sort(key=lambda listing: expected.releases.index(listing.release))

    paths = set()
    for listing in listings:
        if listing.configuration != own and listing.index is None:
            paths.add(f"{listing.release}-{listing.configuration.package}.md")
    for listing in in_indexes:
        first_package = in_indexes[0].configuration.package
        is_of_another_package = listing.configuration.package != first_package
        if listing.configuration != own or is_of_another_package:
            paths.add(f"{listing.release}/{listing.index}/index.json")
    return paths
