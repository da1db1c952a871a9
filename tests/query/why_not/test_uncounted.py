"""query.why_not.uncounted: what only answers about one release have, and what no release lists."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.cover.records import CoveredSpec
from spack_cache_db.query.cover.steps import cover
from spack_cache_db.query.find import find
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.why_not.reasons import why_not
from spack_cache_db.site.pages.filters import Narrowing
from spack_cache_db.spack.parser import parse_query
from tests.conftest import Build
from tests.indexes import hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash

DEVELOP, RELEASE = "develop", "v1.0"


@pytest.fixture
def contradicted(built: Build) -> sqlite3.Connection:
    """A release shows one hash for another system, and one as another package."""
    return built(
        a=page("foo", DEVELOP, [spec(1, os="ubuntu22.04"), spec(3, os="rhel9")]),
        b=page("bar", DEVELOP, [spec(2)]),
        c=page("foo", RELEASE, [spec(1, os="rhel8", stacks=["ml"]), spec(4, os="rhel9")]),
        d=page("baz", RELEASE, [spec(2, stacks=["ml"])]),
    )


def said(conn: sqlite3.Connection, text: str, where: Narrowing) -> tuple[str, ...]:
    """Return the notes on a query of which nothing is found."""
    assert find(conn, text, release=where.release, stack=where.stack, host=where.host) == []
    lookups = read_lookups(conn)
    return why_not(conn, lookups, parse_query(text), where.scope(lookups)).notes


@pytest.mark.parametrize("text", ["foo os=rhel8", "baz", "os=rhel8", f"baz /{spec_hash(2)}"])
@pytest.mark.parametrize(
    "where",
    [
        Narrowing(),
        Narrowing(stack="ml"),
        Narrowing(host="zen3"),
        Narrowing(release=DEVELOP),
        Narrowing(DEVELOP, "ml", "zen3"),
    ],
)
def test_what_only_one_release_shows(
    contradicted: sqlite3.Connection, text: str, where: Narrowing
) -> None:
    """It is found in that release; elsewhere it is said which release has it."""
    (note,) = said(contradicted, text, where)
    (found,) = find(contradicted, text, release=RELEASE)

    assert note.startswith(f"{RELEASE} shows such a spec")
    assert (found.spec_count, found.releases[-1], found.stacks[-1]) == (1, RELEASE, "ml")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("foo os=rhel7", Narrowing()),
        ("foo os=rhel8", Narrowing(stack="e4s")),
        ("foo os=rhel8", Narrowing(host="m1")),
        # Found in develop, whatever v1.0 shows.
        ("foo os=ubuntu22.04", Narrowing(release=RELEASE)),
        # The configuration is that of another spec, which v1.0 shows rightly.
        (f"foo os=rhel9 /{spec_hash(1)}", Narrowing()),
    ],
)
def test_what_no_release_shows(
    contradicted: sqlite3.Connection, text: str, where: Narrowing
) -> None:
    """Nothing is said of a release that would not have it either."""
    assert said(contradicted, text, where) == ()


def test_what_is_listed_elsewhere_is_no_dependency_only(tmp_path: Path) -> None:
    """A spec that no release lists may look like one that is listed, in another stack."""
    for release, stack, one in (
        ("develop", "e4s", record({**node("known"), "name": "zlib"}, is_binary=False)),
        ("v1.0", "e4s", record({**node("listed"), "name": "zlib"})),
        ("v1.0", "ml", record(node("other"))),
    ):
        folder = tmp_path / "in" / release / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(one))
    build(tmp_path / "in", tmp_path / "x.db")

    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        assert said(conn, "zlib", Narrowing(stack="ml")) == ()
        (note,) = said(conn, f"zlib/{hash_of('known')}", Narrowing())
    assert note.startswith("no release lists such a spec")


def test_what_is_known_as_a_dependency_only(real_index: sqlite3.Connection) -> None:
    """What no release lists is no binary: that is said, in an environment as well."""
    note = "no release lists such a spec: it is known here as a dependency only"
    (dag_hash,) = real_index.execute(
        "SELECT hash FROM specs WHERE release_count = 0 ORDER BY hash LIMIT 1"
    ).fetchone()

    assert said(real_index, "glibc", Narrowing()) == (note,)
    assert said(real_index, "glibc", Narrowing(release=DEVELOP, stack="e4s")) == (note,)
    assert said(real_index, f"/{dag_hash}", Narrowing()) == (note,)
    assert said(real_index, "zlib os=nothing", Narrowing()) == ()
    (answer,) = cover(real_index, ["glibc"]).specs
    assert isinstance(answer, CoveredSpec)
    assert (answer.status, answer.reasons) == ("none", (note,))
