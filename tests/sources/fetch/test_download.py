"""One file over the web: decoded, verified, whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch import FetchLimits
from tests.sources.fetch.downloads import (
    BLOB,
    DATA,
    INDEX,
    ONCE,
    fetched,
    with_sum,
    without_sum,
)
from tests.sources.fetch.mirrors import (
    LAYOUT_2,
    below,
    files_in,
    index,
    layout_2,
)
from tests.sources.fetch.runs import bring, says
from tests.sources.fetch.server import (
    Answer,
    Handler,
    Site,
    cut,
    drop,
    instead,
    status,
    whole,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "trouble", [drop, status(500), status(503), status(429, retry_after=0), cut(0), cut(100_000)]
)
def test_a_trouble_that_passes(site: Site, output: Path, trouble: Answer) -> None:
    """A connection that drops, at once or halfway, or a busy server: asked again for all of it."""
    without_sum(site, trouble, trouble, trouble)

    assert bring(site, output).faults == ()

    assert fetched(output) == DATA
    assert len(site.paths(INDEX)) == 4
    assert not [each for each in site.asked if "range" in each.headers]


@pytest.mark.parametrize("number", [206, 416])
def test_a_status_that_was_not_asked_for(site: Site, output: Path, number: int) -> None:
    """A server that sends a part of what was asked for whole is refused."""
    without_sum(site)
    site.always[INDEX] = lambda handler, data: handler.send(number, data)

    assert says(bring(site, output)) == f"answers {number}, expected 200"
    assert files_in(output, hidden=True) == {}


def test_an_old_file_stays_while_its_successor_is_cut(site: Site, output: Path) -> None:
    """A file has its name only when it is whole."""
    without_sum(site)
    bring(site, output)
    site.serve(below("m", layout_2(index("hdf5", size=250_000), with_sum=False)))
    site.answers[INDEX] = [cut(100_000)]

    bring(site, output, ONCE)

    assert files_in(output / "r" / "s")[LAYOUT_2] == DATA


@pytest.mark.parametrize("length", [len(DATA) + 50, 10**15])
def test_a_length_that_is_too_large(site: Site, output: Path, length: int) -> None:
    """A server that promises more than it sends never gives a whole file."""
    with_sum(site)

    def lie(handler: Handler, data: bytes) -> None:
        handler.send(200, data, content_length=length)
        handler.cut_off()

    site.always[BLOB] = lie

    report = bring(site, output)

    assert len(report.faults) == 1
    assert files_in(output) == {}


def test_more_than_the_limit(site: Site, output: Path) -> None:
    """What says that it is too large is not read, what does not say so is read to the limit."""
    without_sum(site, whole, lambda handler, data: _endless(handler))

    for _ in range(2):
        report = bring(site, output, FetchLimits(max_size=10_000))

        assert says(report) == "has more than 10,000 bytes, expected less (--max-size)"
        assert files_in(output, hidden=True).keys() <= {"r/s/.fetched.json"}


def _endless(handler: Handler) -> None:
    """Send a body that has no end."""
    handler.send(200, b"", content_length=None, connection="close")
    for _ in range(1000):
        handler.wfile.write(b" " * 65536)


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
