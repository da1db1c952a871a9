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
