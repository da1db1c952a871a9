"""The title, source and choices that pages show, from the database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from tests.indexes import index, node, record
from tests.site.addresses import get
from tests.site.conftest import metadata, site

pytestmark = pytest.mark.slow

PAGES = (
    "/",
    "/package/hdf5",
    "/release/develop",
    "/stack/e4s",
    "/find?q=hdf5%401",
    "/find?q=hdf5%40%3A2",
    "/find?q=%22",
    "/package/nope",
    "/spack-cache",
    "/spack-cache/releases",
)


def own_mirror(folder: Path) -> Path:
    """Build the file of a mirror of one's own."""
    place = folder / "input" / "develop" / "e4s"
    place.mkdir(parents=True)
    (place / "index.json").write_bytes(index(record(node("hdf5")), record(node("zlib"))))
    (place / "mirror.json").write_text(json.dumps({"url": "https://cache.example.org/v1"}))
    build(folder / "input", folder / "spack-cache.db")
    return folder / "spack-cache.db"


@pytest.mark.asyncio
async def test_a_mirror_of_ones_own_is_called_by_its_address(tmp_path: Path) -> None:
    """Title, text and commands are those of the mirror; nothing speaks of Spack's public cache."""
    served = site(own_mirror(tmp_path))
    home = (await get(served, "/")).text

    assert "<title>Build cache of cache.example.org: " in home
    package = (await get(served, "/package/hdf5")).text
    assert 'data-copy="spack mirror add develop https://cache.example.org/v1' in package
    assert 'data-copy="spack install --cache-only hdf5' in package
    for path in PAGES:
        text = (await get(served, path)).text
        assert "Build cache of cache.example.org" in text, path
        for word in ("public", "cache.spack.io", "binaries.spack.io", "pages show", "Apache"):
            assert word not in text, (path, word)


@pytest.mark.asyncio
async def test_pages_are_the_public_cache(datasette: Any) -> None:
    """A file of pages is Spack's public build cache, with its source and license."""
    home = (await get(datasette, "/")).text
    tables = (await get(datasette, "/spack-cache")).text

    assert "<title>Spack build cache: " in home
    assert "Spack&#39;s public build cache" in home
    assert 'href="https://cache.spack.io/"' in home
    assert 'href="https://cache.spack.io/"' in tables
    assert "Apache-2.0" in tables


@pytest.mark.asyncio
async def test_metadata_comes_first(tmp_path: Path) -> None:
    """Who serves the file may say another source, and what is not said comes from the file."""
    described = {"title": "Software of <us>"} | metadata()
    ours = {"source": "Ours", "source_url": "https://ours.example.org/"}
    described["databases"]["spack-cache"] |= ours
    served = site(own_mirror(tmp_path), described)
    text = (await get(served, "/spack-cache")).text

    assert 'href="https://ours.example.org/"' in text
    assert "the mirror at" not in text
    for path in PAGES:
        text = (await get(served, path)).text
        assert "Software of &lt;us&gt;" in text, path
        assert "Build cache of cache.example.org" not in text, path
