"""One file that a server sends compressed: decoded and bounded."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spack_cache_db.sources.indexes.fetch import FetchLimits
from tests.sources.indexes.fetch.downloads import (
    BLOB,
    DATA,
    INDEX,
    fetched,
    ranges,
    with_sum,
    without_sum,
)
from tests.sources.indexes.fetch.mirrors import blob_path, files_in
from tests.sources.indexes.fetch.runs import bring, says
from tests.sources.indexes.fetch.server import Handler, Site, encoded, instead

pytestmark = pytest.mark.slow


def test_content_encodings(site: Site, output: Path) -> None:
    """What is sent encoded lies decoded in the folder, and its tag is that of what was sent."""
    without_sum(site)
    site.always[INDEX] = encoded("gzip")

    report = bring(site, output)

    assert (report.faults, fetched(output)) == ((), DATA)
    assert report.size < 20_000


def test_an_encoded_blob(site: Site, output: Path) -> None:
    """Sums are those of what lies in the folder."""
    with_sum(site)
    site.always[BLOB] = encoded("gzip")

    assert bring(site, output).faults == ()

    assert fetched(output, blob_path(DATA)) == DATA


def test_an_encoded_file_begins_anew(site: Site, output: Path) -> None:
    """What is on disk is decoded, so no rest of what was sent fits to it."""
    body = gzip.compress(DATA, mtime=0)

    def cut_encoded(handler: Handler, data: bytes) -> None:
        length = len(body)
        handler.send(200, body[:100], etag='"z"', content_encoding="gzip", content_length=length)
        handler.cut_off()

    without_sum(site, cut_encoded, encoded("gzip"))

    assert bring(site, output).faults == ()

    assert fetched(output) == DATA
    assert ranges(site, INDEX) == [(None, None), (None, None)]


def test_a_bomb(site: Site, output: Path) -> None:
    """A small body that unfolds beyond the limit is refused, and not kept."""
    bomb = b" " * 64_000_000
    body = gzip.compress(bomb, 1)
    assert len(body) < 1_000_000
    without_sum(site)
    site.always[INDEX] = instead(body, content_encoding="gzip")

    report = bring(site, output, FetchLimits(max_size=1_000_000))

    assert says(report) == "has more than 1,000,000 bytes, expected less (--max-size)"
    assert files_in(output, hidden=True).keys() <= {"r/s/.fetched.json"}


def test_an_encoding_that_is_broken(site: Site, output: Path) -> None:
    """A body that is not in the encoding it says is asked for again, then refused."""
    without_sum(site)
    site.always[INDEX] = instead(DATA, content_encoding="gzip")

    assert says(bring(site, output)).startswith("sends broken gzip: ")
    assert len(site.paths(INDEX)) == 5
    assert files_in(output) == {}


@pytest.mark.parametrize("name", ["br", "zstd", "deflate", "gzip, gzip"])
def test_an_encoding_that_is_not_known(site: Site, output: Path, name: str) -> None:
    """An encoding that nobody asked for is refused by name."""
    without_sum(site)
    site.always[INDEX] = instead(DATA, content_encoding=name)

    assert (
        says(bring(site, output)) == f"sends the content encoding {name!r}, expected gzip or none"
    )
