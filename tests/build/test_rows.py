"""build.rows: what is stored of each thing, and that nothing is taken for another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash


@pytest.mark.parametrize(
    "specs",
    [
        [spec(1, variants=["a b"]), spec(2, variants=["a", "b"])],
        [spec(1, variants=[]), spec(2, variants=[""])],
        [spec(1, stacks=["a", "b"]), spec(2, stacks=['a","b'])],
        [spec(1, versions=["01"]), spec(2, versions=["1"])],
        [spec(1, compiler="gcc"), spec(2, compiler="none")],
        [spec(1, tarball="x"), spec(2, tarball="y"), spec(3)],
        [
            spec(1, tarball="https://x"),
            spec(
                2,
                tarball="https://x/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
                f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(2)}.spack",
            ),
        ],
    ],
)
def test_what_reads_alike_stays_apart(specs: list[dict[str, Any]], built: Build) -> None:
    """Two things whose texts look the same are two rows."""
    rows = built(a=page(specs=specs)).execute(
        "SELECT hash, version, compiler, tarball, stacks, variants FROM build_listings"
    )
    found = {row[0]: row[1:4] for row in rows}
    assert found == {
        each["hash"]: (each["versions"][0], each["compiler"], each.get("tarball")) for each in specs
    }


@pytest.mark.parametrize(("printed", "stored"), [("-", None), ("", ""), ("1 kB", "1 kB")])
def test_a_size_that_is_not_known_is_null(printed: str, stored: str | None, built: Build) -> None:
    """Pages print a dash, and the view gives it back."""
    connection = built(a=page(specs=[spec(1, size=printed)]))
    assert connection.execute("SELECT size FROM listings").fetchall() == [(stored,)]
    assert connection.execute("SELECT size FROM build_listings").fetchall() == [(printed,)]


def test_root_is_kept_and_not_shown(built: Build) -> None:
    """It is the index of everything, and no stack."""
    connection = built(a=page(specs=[spec(1, stacks=["root", "e4s"]), spec(2, stacks=["root"])]))
    assert connection.execute("SELECT stacks, shown FROM stack_sets ORDER BY id").fetchall() == [
        ('["e4s","root"]', '["e4s"]'),
        ('["root"]', "[]"),
    ]


def test_a_page_without_specs_is_kept(built: Build) -> None:
    """The package has a page, and nothing else."""
    connection = built(a=page(specs=[]))
    assert connection.execute("SELECT spec_count FROM pages").fetchall() == [(0,)]
    assert connection.execute(
        "SELECT name, spec_count, release_count, newest_version FROM packages"
    ).fetchall() == [("zlib", 0, 1, None)]
    assert connection.execute("SELECT count(*) FROM problems").fetchone() == (0,)
