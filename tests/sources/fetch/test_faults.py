"""The index of one mirror over HTTP: what comes of it, and every fault of its
server.
"""

import asyncio
import gzip
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch.options import FetchLimits
from spack_cache_db.sources.fetch.web import SilenceFault, Web
from spack_cache_db.sources.indexes.addresses import read_address
from tests.sources.fetch.mirrors import (
    LAYOUT_2,
    LAYOUT_3,
    QUICK,
    below,
    blob_path,
    bring,
    changes,
    faults,
    files_in,
    index,
    layout_2,
    layout_3,
    litter,
    manifest,
    sha256,
)
from tests.sources.fetch.server import Answer, Handler, Site, cut, drop, instead, status

pytestmark = pytest.mark.slow

OLD = index("zlib")
NEW = index("zlib", "hdf5", size=300_000)
INDEX = f"/m/{LAYOUT_2}"
MANIFEST = f"/m/{LAYOUT_3}"
BLOB = f"/m/{blob_path(NEW)}"
ONCE = FetchLimits(retries=0, pause=0.01)
SMALL = FetchLimits(max_size=100_000)
LAYOUTS: dict[str, Callable[[bytes], dict[str, bytes]]] = {
    "3": layout_3,
    "3, signed": lambda data: layout_3(data, signed=True),
    "2": layout_2,
    "2, without a sum": lambda data: layout_2(data, with_sum=False),
}


def times(folder: Path) -> dict[Path, int]:
    """Return when each file was written."""
    return {
        path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_index_comes_once_and_its_successor_replaces_it(
    site: Site, output: Path, layout: str
) -> None:
    """An index lies as on the mirror, comes again only if it changed, and leaves
    nothing old.
    """
    for data in (OLD, NEW):
        files = LAYOUTS[layout](data)
        site.serve(below("m", files))
        assert changes([bring(site, output)]) == [1]
        site.requests.clear()
        before = times(output)

        assert changes([bring(site, output)]) == [0]

        fetched = files_in(output / "r" / "s")
        assert read_address(fetched.pop("mirror.json")).url == f"{site.url}/m"
        assert fetched == {
            name: data for name, data in files.items() if name[-5:] != ".hash"
        }
        assert times(output) == before
        # The sum of layout 2 or 3 is enough, and layout 3 is looked for first.
        last = [
            request
            for request in site.requests
            if request.path in (MANIFEST, INDEX, BLOB)
        ][-1]
        is_asked = layout == "2, without a sum"
        assert last.path == (INDEX if is_asked else MANIFEST)
        assert ("if-none-match" in last.headers) == is_asked


@pytest.mark.parametrize(
    "trouble", [drop, status(500), status(429, retry_after=0), cut(0), cut(100_000)]
)
def test_a_trouble_that_passes(site: Site, output: Path, trouble: Answer) -> None:
    """A connection that drops, at once or halfway, or a busy server: asked again for
    all of it.
    """
    site.serve(below("m", layout_2(NEW, with_sum=False)))
    site.answers[INDEX] = [trouble] * 3

    assert bring(site, output).faults == ()

    assert (files_in(output / "r" / "s")[LAYOUT_2], litter(output)) == (NEW, [])
    assert len(site.paths(INDEX)) == 4


def sends(number: int, length: int | None = None) -> Answer:
    """Send the file with a status, or with a length that is a lie."""

    def answer(handler: Handler, data: bytes) -> None:
        handler.send(number, data, content_length=length or len(data))
        handler.cut_off()

    return answer


def endless(handler: Handler, data: bytes) -> None:
    """Send a body that has no end."""
    handler.send(200, b"", content_length=None, connection="close")
    for _ in range(1000):
        handler.wfile.write(b" " * 65536)


def trickling_head(handler: Handler, data: bytes) -> None:
    """Send a byte of the head now and then."""
    trickle(handler, b"H")


def trickling_body(handler: Handler, data: bytes) -> None:
    """Send a thousand bytes of the body now and then."""
    handler.send(200, b"", content_length=10**6)
    trickle(handler, b"x" * 1000)


def trickle(handler: Handler, piece: bytes) -> None:
    """Send the same bytes again and again, slowly."""
    for _ in range(100):
        handler.wfile.write(piece)
        handler.wfile.flush()
        threading.Event().wait(0.03)


BOMB = instead(gzip.compress(bytes(64_000_000), 1), content_encoding="gzip")
TOO_LARGE = "has more than 100,000 bytes, expected less (--max-size)"
OTHER_SUM = f"has the checksum {sha256(OLD)}, expected {sha256(NEW)} as in the mirror"
TRAVERSAL = instead(manifest(NEW, "../../../../etc/passwd"))
IMPATIENT = FetchLimits(timeout=0.5, retries=0)
HASTY = FetchLimits(deadline=1)
FAULTS: dict[str, tuple[str, Answer, FetchLimits, str]] = {
    "a part": (INDEX, sends(206), QUICK, "answers 206, expected 200"),
    "never asked by condition": (BLOB, status(304), QUICK, "answers 304, expected 200"),
    "cut": (INDEX, cut(100_000), ONCE, "cannot be read: "),
    "shorter than it says": (BLOB, sends(200, len(NEW) + 50), ONCE, "cannot be read: "),
    "much shorter": (
        BLOB,
        sends(200, 10**15),
        ONCE,
        "has more than 1,073,741,824 bytes",
    ),
    "too large": (INDEX, instead(NEW), SMALL, TOO_LARGE),
    "endless": (INDEX, endless, SMALL, TOO_LARGE),
    "a bomb": (INDEX, BOMB, SMALL, TOO_LARGE),
    "slow head": (
        MANIFEST,
        trickling_head,
        IMPATIENT,
        "does not answer in time; tried 1 time",
    ),
    "slow body": (BLOB, trickling_body, HASTY, "takes more than 1 s (--deadline)"),
    "busy for long": (
        MANIFEST,
        status(429, retry_after=3600),
        QUICK,
        "answers 429, requests a pause of 3,600 s: try later",
    ),
    "other bytes": (BLOB, instead(OLD), QUICK, OTHER_SUM),
    "a page of HTML": (
        MANIFEST,
        instead(b"<html>hello</html>"),
        QUICK,
        "broken manifest: ",
    ),
    "no index": (
        MANIFEST,
        instead(b'{"version": 3, "data": []}'),
        QUICK,
        "names no index, expected one of media type application/",
    ),
    "a path for a sum": (MANIFEST, TRAVERSAL, QUICK, "broken manifest: "),
}
LOCATIONS = {
    "file://host/etc/passwd": "leads to file://, expected",
    "ftp://host/etc/passwd": "leads to ftp://, expected",
    "data:,x": "",
    "http://[": "",
    "http:///a": "",
    "http://127.0.0.1:99999/": "",
    "\x01": "",
}
FAULTS |= {
    f"leads to {location!r}": (MANIFEST, status(302, location=location), ONCE, message)
    for location, message in LOCATIONS.items()
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_and_the_old_index_stays(
    site: Site, output: Path, name: str
) -> None:
    """Whatever the server sends, the file that is wrong is named and nothing else
    changes.
    """
    path, answer, limits, message = FAULTS[name]
    layout = LAYOUTS["2, without a sum" if path == INDEX else "3"]
    site.serve(below("m", layout(OLD)))
    bring(site, output)
    before = files_in(output)
    site.serve(below("m", layout(NEW)))
    site.always[path] = answer

    report = bring(site, output, limits)

    (line,) = faults(report, site)
    assert line.startswith(f"{path}: {message}")
    assert line.isprintable()
    assert (report.changed, files_in(output), litter(output)) == (0, before, [])


def test_views_of_earlier_runs_stay(site: Site, output: Path) -> None:
    """A view that is not asked for again stays as it is, as other mirrors do; its index
    too.
    """
    site.serve(
        below(
            "m", layout_3(NEW) | layout_3(OLD, view="e4s") | layout_3(OLD, view="hep")
        )
    )
    bring(site, output, views=("e4s", "hep"))
    newer = layout_3(index("zlib", "hdf5", "gmake")) | layout_3(NEW, view="hep")
    site.serve(below("m", newer))

    assert bring(site, output, views=("hep",)).faults == ()

    fetched = files_in(output / "r" / "s")
    assert fetched.keys() == {"mirror.json", *newer, *layout_3(OLD, view="e4s")}


def test_no_index_and_no_view(site: Site, output: Path) -> None:
    """A URL that is no mirror is refused in one line with advice, and leaves
    nothing.
    """
    (line,) = faults(bring(site, output), site)

    neither = (
        f"/m: has neither {LAYOUT_3} nor {LAYOUT_2}, expected a mirror with an index: "
    )
    assert line.startswith(f"{neither}`spack buildcache update-index` makes one, ")
    assert files_in(output, hidden=True) == {}


def test_a_mirror_that_changes_between_manifest_and_blob(
    site: Site, output: Path
) -> None:
    """The blob of the manifest that was read is gone: the manifest is read anew."""
    site.serve(below("m", layout_3(NEW)))
    site.answers[MANIFEST] = [instead(manifest(OLD))]

    assert bring(site, output).faults == ()

    assert files_in(output / "r" / "s").keys() == {"mirror.json", *layout_3(NEW)}
    assert litter(output) == []


@pytest.mark.parametrize("after", ["100", "soon", "-5", None])
def test_pauses(site: Site, after: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause is twice as long as the one before, or as the server asks for; then it
    is enough.

    A header that names no time changes nothing.
    """
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(round(seconds))

    monkeypatch.setattr(asyncio, "sleep", pause)
    site.always["/a"] = status(503, retry_after=after)
    url = f"{site.url}/a" if after else "http://127.0.0.1:1/nobody/listens"

    async def read() -> bytes:
        async with Web(FetchLimits(pause=1)) as web:
            return await web.read(url)

    with pytest.raises(
        SilenceFault, match=r"(503|all connection attempts failed); tried 5 times$"
    ):
        asyncio.run(read())

    assert pauses == ([100] * 4 if after == "100" else [1, 2, 4, 8])
