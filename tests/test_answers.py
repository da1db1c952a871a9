"""Every way to ask gives the same answer, whatever releases say of each other.

Random specs are asked of random pages, in which the same hash has other configurations in other
releases. The answers of `find`, of SQL, of the views and of the site are compared with what a loop
over the pages finds.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build.steps import build
from spack_cache_db.query.find import Found, find
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.specs import FoundSpec
from spack_cache_db.records import Configuration
from spack_cache_db.site.pages.filters import Filters
from spack_cache_db.site.pages.find import load_find
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.spec import load_spec
from tests.commands import run
from tests.contradictions import (
    QUERIES,
    RELEASES,
    STACKS,
    Answer,
    Listing,
    Pages,
    files,
    listings,
    opened,
)
from tests.pagetexts import spec_hash, write
from tests.paths import ROOT

FIND_SPEC = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))["databases"][
    "spack-cache"
]["queries"]["find_spec"]["sql"]


@settings(max_examples=50, deadline=None)
@given(
    listings(),
    st.lists(QUERIES, min_size=1, max_size=4),
    st.sampled_from([None, *RELEASES]),
    st.sampled_from([None, *STACKS]),
    st.sampled_from([None, "rhel8"]),
)
def test_every_way_to_ask_gives_the_same_answer(
    drawn: list[Listing],
    queries: list[str],
    release: str | None,
    stack: str | None,
    os: str | None,
) -> None:
    """`find`, SQL, the canned query, the views, the search and the pages agree with the pages."""
    pages = Pages(drawn)
    with opened(drawn) as conn:
        lookups = read_lookups(conn)
        release = release if lookups.release(release) else None
        stack = stack if lookups.stack(stack) else None
        views_and_counts_follow_the_rule(conn, pages)
        for text in queries:
            sql_and_the_search_find_what_find_finds(conn, pages, text)
            for where in ({}, {"release": release}, {"stack": stack, "release": release}):
                specs_are_those_of_the_place(conn, pages, text, **where)
        for name in lookups.words["package"].values():
            filters = Filters(release=release, stack=stack, os=os, common=True)
            the_page_of_a_package_follows_the_rule(conn, pages, name, filters)


def views_and_counts_follow_the_rule(conn: sqlite3.Connection, pages: Pages) -> None:
    """`builds` has each spec's own configuration, `build_listings` that of the release's page."""
    words = "hash, package, version, compiler, os, platform, target, variants"
    own = pages.own()
    assert set(conn.execute(f"SELECT {words} FROM builds")) == {
        (dag_hash, *printed(each)) for dag_hash, each in own.items()
    }
    assert set(conn.execute(f"SELECT release, {words} FROM build_listings")) == {
        (each.release, each.dag_hash, *printed(each.configuration)) for each in pages.listings
    }
    packages = {each.configuration.package for each in pages.listings}
    counts = [Counter(each.package for each in some) for some in (set(own.values()), own.values())]
    assert {
        (name, *rest)
        for name, *rest in conn.execute(
            "SELECT name, configuration_count, spec_count FROM packages"
        )
    } == {(name, *(count[name] for count in counts)) for name in packages}


def printed(each: Configuration) -> tuple[str, ...]:
    """Return a configuration as the views print it."""
    *words, variants = each
    return (*words, " ".join(variants))


def specs_are_those_of_the_place(
    conn: sqlite3.Connection,
    pages: Pages,
    text: str,
    release: str | None = None,
    stack: str | None = None,
) -> None:
    """Specs count as the release says; each row is of one spec alone, what is current first."""
    found = find(conn, text, release=release, stack=stack, with_hashes=True)

    assert answer_of(found) == pages.answer(text, release, stack), (text, release, stack)
    assert all(each.spec_count == len(each.specs or ()) for each in found)
    for each in found:
        specs = [*(each.specs or ())]
        assert [(spec.hash, told(spec)) for spec in specs] == [
            (spec.hash, pages.of(spec.hash)) for spec in specs
        ]
        if release is None:
            assert specs == sorted(specs, key=lambda spec: pages.order(spec.hash))


def told(spec: FoundSpec) -> dict[str, Any]:
    """Return where a spec is, in the form of `Pages.of`."""
    return {key: value for key, value in asdict(spec).items() if key != "hash"}


def answer_of(found: list[Found]) -> Answer:
    """Return what `find` found in the form of `Pages.answer`."""
    return {each.configuration: set(each.hashes or ()) for each in found}


def sql_and_the_search_find_what_find_finds(
    conn: sqlite3.Connection, pages: Pages, text: str
) -> None:
    """`spec_match` of hashes and of configurations, the canned query, all pages of a search."""
    expected = pages.answer(text)
    every = {dag_hash for some in expected.values() for dag_hash in some}

    by_hash = conn.execute("SELECT hash FROM builds WHERE spec_match(?, hash)", [text])
    canned = conn.execute(FIND_SPEC, {"spec": text, "page": ""})

    assert {row[0] for row in by_hash} == every, text
    # Where there is none, a row without a hash says so.
    assert Counter(row[0] for row in canned) == Counter(every or [None]), text
    assert searched(conn, text) == {key: len(some) for key, some in expected.items()}, text
    if "/" not in text:
        by_id = "SELECT sum(spec_count) FROM configurations WHERE spec_match(?, id)"
        assert (conn.execute(by_id, [text]).fetchone()[0] or 0) == len(every), text


def searched(conn: sqlite3.Connection, text: str) -> dict[Configuration, int]:
    """Return the configurations on all pages of a search, and how many specs count for each."""
    found: dict[Configuration, int] = {}
    lookups = read_lookups(conn)
    number, count = 1, 1
    while number <= count:
        page = load_find(conn, lookups, text, number)
        if page.hashes:
            specs = [load_spec(conn, lookups, dag_hash) for dag_hash in page.hashes]
            return Counter(spec.configuration for spec in specs if spec)
        if page.package is not None:
            listed = load_package(conn, lookups, page.package, Filters(common=True))
            assert listed is not None
            return {row.configuration: row.spec_count for row in listed.rows}
        assert page.answer is not None, page.error
        found |= {row.configuration: row.spec_count for row in page.answer.rows}
        number, count = number + 1, page.answer.page_count
    return found


def the_page_of_a_package_follows_the_rule(
    conn: sqlite3.Connection, pages: Pages, name: str, filters: Filters
) -> None:
    """Rows, counts, hashes, and what each filter promises, are those of the pages."""
    listed = load_package(conn, read_lookups(conn), name, filters)
    assert listed is not None
    text = f"{name} os={filters.os}" if filters.os else name
    place = {"release": filters.release, "stack": filters.stack}

    expected = pages.answer(text, **place)

    assert {row.configuration: row.spec_count for row in listed.rows} == {
        key: len(some) for key, some in expected.items()
    }
    for row in listed.rows:
        assert row.hashes
        assert set(row.hashes) <= expected[row.configuration]
    for choice in listed.choices:
        if choice.name in place and place[choice.name] is None:
            assert dict(choice.values) == {
                value: len(found)
                for value in (RELEASES if choice.name == "release" else STACKS)
                if (found := pages.answer(text, **(place | {choice.name: value})))
            }


def test_a_contradiction_on_the_command_line_is_no_traceback() -> None:
    """The hash that two releases show with two systems is found where each of them shows it."""
    usual = Configuration("foo", "1.0", "gcc@12.1.0", "ubuntu22.04", "linux", "zen2", ())
    drawn = [
        Listing("develop", spec_hash(1), usual, ("root",)),
        Listing("v1.0", spec_hash(1), usual._replace(os="rhel8"), ("e4s",)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "out.db")
        build([str(write(Path(folder, "pages"), **files(drawn)))], output)
        answers = {
            arguments: run("find", *arguments, output, "--json", "--hashes")
            for arguments in (
                ("foo",),
                ("foo os=rhel8",),
                ("foo", "--release", "v1.0"),
                ("foo", "--release", "v1.0", "--stack", "e4s"),
                ("foo os=ubuntu22.04", "--release", "v1.0"),
            )
        }
        installed = run("find", "foo", output, "--install")

    assert [(answer.exit_code, systems(answer.stdout)) for answer in answers.values()] == [
        (0, ["ubuntu22.04"]),
        (1, []),
        (0, ["rhel8"]),
        (0, ["rhel8"]),
        (1, []),
    ]
    assert "v1.0 shows such a spec" in answers["foo os=rhel8",].stderr
    assert installed.exit_code == 0, installed.output


def systems(text: str) -> list[str]:
    """Return the operating systems in what `find --json` prints."""
    return [each["os"] for each in json.loads(text or "[]")]
