"""A mirror whose index is sent as a test wants it, and what was fetched of it."""

from __future__ import annotations

from pathlib import Path

from spack_cache_db.sources.fetch import FetchLimits
from tests.sources.fetch.mirrors import (
    LAYOUT_2,
    below,
    blob_path,
    files_in,
    index,
    layout_2,
    layout_3,
    litter,
)
from tests.sources.fetch.server import Answer, Site

DATA = index("zlib", size=300_000)
INDEX = f"/m/{LAYOUT_2}"
BLOB = f"/m/{blob_path(DATA)}"
ONCE = FetchLimits(retries=0, pause=0.01)


def without_sum(site: Site, *answers: Answer) -> None:
    """Serve a mirror of layout 2 whose index has no sum, and is sent so."""
    site.serve(below("m", layout_2(DATA, with_sum=False)))
    site.answers[INDEX] = [*answers]


def with_sum(site: Site, *answers: Answer) -> None:
    """Serve a mirror of layout 3 whose index is sent so."""
    site.serve(below("m", layout_3(DATA)))
    site.answers[BLOB] = [*answers]


def fetched(output: Path, name: str = LAYOUT_2) -> bytes:
    """Return what was fetched; nothing else is there that should not be."""
    assert litter(output) == []
    return files_in(output / "r" / "s")[name]
