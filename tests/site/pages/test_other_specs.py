"""site.pages.other_specs: what shares a configuration, and in what it differs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.dependencies.needs import read_needs, told_of
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.site.pages.other_specs import compared, read_others
from tests.conftest import Build
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash, write
from tests.site.addresses import get
from tests.site.conftest import site


def test_one_page_of_them_the_current_first(built: Build) -> None:
    """Not the spec itself; what a branch lists comes before what only a snapshot lists."""
    conn = built(
        a=page("foo", "develop", [spec(1), spec(9)]),
        b=page("foo", "develop-2025-01-05", [spec(2), spec(1)]),
    )

    found = read_others(conn, 1, spec_hash(1), 1)

    assert [*found.values()] == [(spec_hash(9), 1, None), (spec_hash(2), 1, "2025-01-05")]
    assert read_others(conn, 1, spec_hash(1), 2) == {}


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A file with three look-alikes: two of an index, one of a page."""
    like = node("foo", edge("lib", "link"))
    records = (
        record(like),
        record({**node("foo"), "hash": hash_of("second")}),
        record(node("lib")),
    )
    shown = spec(1, compiler="none", os="debian12", variants=["build_system=generic"])
    write(tmp_path / "input", page=page("foo", specs=[shown]))
    (tmp_path / "input" / "index.json").write_bytes(index(*records))
    build(tmp_path / "input", tmp_path / "spack-cache.db")
    return tmp_path / "spack-cache.db"


def test_what_pages_alone_tell_of_is_not_compared(mixed: Path) -> None:
    """Of two others one is in the index: only in what that one differs is known."""
    conn = sqlite3.connect(mixed)
    this, configuration = conn.execute(
        "SELECT id, configuration FROM specs WHERE hash = ?", [hash_of("foo")]
    ).fetchone()
    others = read_others(conn, configuration, hash_of("foo"), 1)
    graph = read_needs(conn, told_of(conn, [this, *others]), 100)
    found = {
        each.hash: each.differences
        for each in compared(conn, read_lookups(conn), graph, this, others)
    }

    assert found.keys() == {spec_hash(1), hash_of("second")}
    assert found[spec_hash(1)] is None
    told = found[hash_of("second")]
    assert told is not None
    assert [*map(str, told.changes)] == ["lib 1.0 only here"]

    page_only = next(key for key, row in others.items() if row[0] == spec_hash(1))
    back = compared(conn, read_lookups(conn), graph, page_only, {this: ("x", 1, None)})
    assert [each.differences for each in back] == [None]
    conn.close()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_page_says_what_is_not_compared(mixed: Path) -> None:
    """It tells in what the one differs, and why the other is not compared."""
    text = (await get(site(mixed), f"/spec/{hash_of('foo')}")).text

    assert '<span class="differs">lib 1.0 only here</span>' in text
    assert '<span class="differs">not compared</span>' in text
    assert "Not compared are those whose dependencies are not known" in text
    alone = (await get(site(mixed), f"/spec/{spec_hash(1)}")).text
    assert "in their dependencies, which are not known here" in alone
    assert 'class="differs"' not in alone
