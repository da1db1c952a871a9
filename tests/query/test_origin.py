"""query.origin: whose build cache a file holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.open import connected
from spack_cache_db.query.origin import Origin, read_origin
from tests.indexes import index, node, record
from tests.pagetexts import page, write

PUBLIC = "Spack's public build cache"
BINARIES = "https://binaries.spack.io/develop"


@pytest.mark.parametrize(
    ("urls", "has_pages", "expected"),
    [
        ((), True, Origin("Spack build cache", PUBLIC, "https://cache.spack.io/", True)),
        (
            (BINARIES, f"{BINARIES}/e4s"),
            False,
            Origin("Spack build cache", PUBLIC, "https://cache.spack.io/", True),
        ),
        (
            ("https://cache.example.org/v1",),
            False,
            Origin(
                "Build cache of cache.example.org",
                "the mirror at cache.example.org",
                "https://cache.example.org/v1",
                False,
            ),
        ),
        (
            ("https://a.org/e4s", "https://a.org/hep", None),
            False,
            Origin("Build cache of a.org", "the mirror at a.org and a mirror", None, False),
        ),
        (
            ("oci://ghcr.io/me/cache", "file:///srv/mirror"),
            False,
            Origin(
                "Build caches of file:///srv/mirror and ghcr.io",
                "mirrors at file:///srv/mirror and ghcr.io",
                None,
                False,
            ),
        ),
        (
            tuple(f"s3://{name}" for name in "abcde"),
            False,
            Origin(
                "Build caches of a, b, c and 2 more", "mirrors at a, b, c and 2 more", None, False
            ),
        ),
        ((None,), False, Origin("Build cache", "a mirror", None, False)),
        (
            ("https://a.org",),
            True,
            Origin("Build cache of a.org", f"{PUBLIC} and the mirror at a.org", None, False),
        ),
    ],
)
def test_whose_it_is(
    urls: tuple[str | None, ...], has_pages: bool, expected: Origin, tmp_path: Path
) -> None:
    """Pages, and mirrors in the public cache, are Spack's; others are called by their hosts."""
    for number, url in enumerate(urls):
        folder = tmp_path / "input" / "develop" / f"stack{number}"
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(record(node(f"n{number}"))))
        if url:
            (folder / "mirror.json").write_text(json.dumps({"url": url}))
    if has_pages:
        write(tmp_path / "input", page=page())
    build(tmp_path / "input", tmp_path / "x.db")

    with connected(tmp_path / "x.db") as conn:
        assert read_origin(conn) == expected
