"""One file over the web: resumed, decoded, verified, whole or not at all."""

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
    ranges,
    with_sum,
    without_sum,
)
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
from tests.sources.fetch.runs import bring, says
from tests.sources.fetch.server import (
    Answer,
    Handler,
    Site,
    cut,
    drop,
    encoded,
    instead,
    status,
    tag,
    whole,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "trouble", [drop, status(500), status(503), status(429, retry_after=0), cut(0)]
)
def test_a_trouble_that_passes(site: Site, output: Path, trouble: Answer) -> None:
    """A connection that drops, a server that is busy: asked again until it answers."""
    without_sum(site, trouble, trouble, trouble)

    assert bring(site, output).faults == ()

    assert fetched(output) == DATA
    assert len(site.paths(INDEX)) == 4


def test_what_is_cut_is_resumed(site: Site, output: Path) -> None:
    """The rest is asked for, on the condition that the file is still the same."""
    without_sum(site, cut(100_000), cut(100_000))

    report = bring(site, output)

    assert (report.faults, fetched(output)) == ((), DATA)
    assert ranges(site, INDEX) == [
        (None, None),
        ("bytes=100000-", tag(DATA)),
        ("bytes=200000-", tag(DATA)),
    ]
    assert report.size < len(DATA) + 1000


def test_what_a_killed_run_left_is_resumed(site: Site, output: Path) -> None:
    """A part that is on disk is the beginning of the next run's file."""
    without_sum(site, cut(100_000))
    report = bring(site, output, ONCE)
    assert says(report).endswith("; tried 1 time")
    assert files_in(output) == {}
    assert litter(output) == ["r/s/build_cache/.index.json.part"]

    assert bring(site, output).faults == ()

    assert fetched(output) == DATA
    assert ranges(site, INDEX)[1] == ("bytes=100000-", tag(DATA))


def test_a_file_that_changed_is_not_patched_together(site: Site, output: Path) -> None:
    """A part of another state than today's is thrown away."""
    without_sum(site, cut(100_000))
    bring(site, output, ONCE)
    new = index("hdf5", size=250_000)
    site.serve(below("m", layout_2(new, with_sum=False)))

    assert bring(site, output).faults == ()

    assert fetched(output) == new


def test_an_old_file_stays_while_its_successor_is_cut(site: Site, output: Path) -> None:
    """A file has its name only when it is whole."""
    without_sum(site)
    bring(site, output)
    site.serve(below("m", layout_2(index("hdf5", size=250_000), with_sum=False)))
    site.answers[INDEX] = [cut(100_000)]

    bring(site, output, ONCE)

    assert files_in(output / "r" / "s")[LAYOUT_2] == DATA


def test_a_server_that_ignores_ranges(site: Site, output: Path) -> None:
    """The whole file instead of its rest begins anew."""
    without_sum(site, cut(100_000), whole)

    assert bring(site, output).faults == ()

    assert fetched(output) == DATA


def test_weak_tags_are_not_trusted_with_a_rest(site: Site, output: Path) -> None:
    """Without a strong tag or a sum nothing says that a rest belongs to its beginning."""

    def cut_weakly(handler: Handler, data: bytes) -> None:
        handler.send(200, data[:1000], etag='W/"1"', content_length=len(data))
        handler.cut_off()

    without_sum(site, cut_weakly)

    assert bring(site, output).faults == ()

    assert ranges(site, INDEX) == [(None, None), (None, None)]
    assert fetched(output) == DATA


def test_a_sum_vouches_for_a_rest_without_tags(site: Site, output: Path) -> None:
    """A blob is resumed from any server, for its sum is known."""

    def cut_untagged(handler: Handler, data: bytes) -> None:
        handler.send(200, data[:1000], content_length=len(data))
        handler.cut_off()

    with_sum(site, cut_untagged)

    assert bring(site, output).faults == ()

    assert ranges(site, BLOB) == [(None, None), ("bytes=1000-", None)]
    assert fetched(output, blob_path(DATA)) == DATA


def test_a_rest_that_does_not_fit(site: Site, output: Path) -> None:
    """A resumed file with another sum is fetched anew from its beginning."""

    def other_rest(handler: Handler, data: bytes) -> None:
        rest = b"x" * (len(data) - 1000)
        handler.send(206, rest, content_range=f"bytes 1000-{len(data) - 1}/{len(data)}")

    with_sum(site, cut(1000), other_rest)

    assert bring(site, output).faults == ()

    assert [range_ for range_, _ in ranges(site, BLOB)] == [None, "bytes=1000-", None]
    assert fetched(output, blob_path(DATA)) == DATA


@pytest.mark.parametrize(
    "answer",
    [
        status(416),
        lambda handler, data: handler.send(206, data[5:], content_range="bytes 5-9/10"),
        lambda handler, data: handler.send(206, data[1000:]),
        lambda handler, data: handler.send(
            206, data[1000:], content_range="bytes 1000-2/3", content_encoding="gzip"
        ),
    ],
)
def test_a_range_that_was_not_asked_for(site: Site, output: Path, answer: Answer) -> None:
    """A rest that begins elsewhere, or in another encoding, is thrown away with its beginning."""
    with_sum(site, cut(1000), answer)

    assert bring(site, output).faults == ()

    assert fetched(output, blob_path(DATA)) == DATA


def test_a_rest_without_a_beginning(site: Site, output: Path) -> None:
    """A server that sends a part of what was asked for whole is refused."""
    without_sum(site)
    site.always[INDEX] = lambda handler, data: handler.send(206, data, content_range="bytes 0-9/10")

    assert says(bring(site, output)) == "answers 206, which was not asked for; tried 5 times"


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


def test_a_length_that_is_too_small(site: Site, output: Path) -> None:
    """A server that promises less than it sends gives what a sum refuses."""
    with_sum(site)
    site.always[BLOB] = instead(DATA, content_length=1000)

    assert says(bring(site, output)).startswith("has the checksum ")
    assert files_in(output) == {}


def test_a_length_that_is_too_small_without_a_sum(site: Site, output: Path) -> None:
    """Without a sum, an index that ends too early is known by its end."""
    without_sum(site)
    site.always[INDEX] = instead(DATA, content_length=1000)

    assert says(bring(site, output)).startswith("is no whole index: ")
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


def test_an_empty_file(site: Site, output: Path) -> None:
    """Nothing at all is no index."""
    without_sum(site)
    site.always[INDEX] = instead(b"")

    assert says(bring(site, output)).startswith("is no whole index: ")


def test_parts_of_other_files_are_removed(site: Site, output: Path) -> None:
    """What no run will resume goes once the mirror is here."""
    with_sum(site, cut(1000))
    bring(site, output, ONCE)
    assert len(litter(output)) == 1
    new = index("hdf5")
    site.serve(below("m", layout_3(new)))

    assert bring(site, output).faults == ()

    assert fetched(output, blob_path(new)) == new


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
