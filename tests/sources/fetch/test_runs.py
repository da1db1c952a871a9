"""A whole run: many URLs, where it writes, what vanished, who else writes there."""

import json
import threading
from pathlib import Path

import pytest

from spack_cache_db.errors import OutputError
from spack_cache_db.output_folders import alone_in
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchLimits, FetchOptions
from spack_cache_db.sources.fetch.report import FetchReport
from spack_cache_db.sources.fetch.stack_folder import STATE_FILE, StackFolder, opened
from spack_cache_db.sources.files import ADDRESS_FILE
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    blob_path,
    faults,
    files_in,
    folders,
    index,
    layout_3,
    written,
)
from tests.sources.fetch.server import Handler, Site, missing, tag

ONE = index("zlib")
TWO = index("hdf5")


def serve_manifest(site: Site, **releases: dict[str, str]) -> None:
    """Serve a manifest of releases and stacks, whose mirrors lie at these paths."""
    manifest = {}
    for release, stacks in releases.items():
        manifest[release] = [
            {"label": stack, "url": f"s3://bucket/{path}"}
            for stack, path in stacks.items()
        ]
    site.files["/list.json"] = json.dumps(manifest).encode()


def bring_named(site: Site, output: Path) -> FetchReport:
    """Fetch what the manifest names."""
    options = FetchOptions(maps=(("s3://bucket", site.url),))
    return fetch([f"{site.url}/list.json"], output, options, QUICK)


@pytest.mark.slow
def test_two_mirrors_for_one_folder(site: Site, output: Path) -> None:
    """The second of them is refused with the name of the first."""
    site.serve(below("x/v1", layout_3(ONE)) | below("y/v1", layout_3(TWO)))

    urls = [f"{site.url}/x/v1", f"{site.url}/y/v1"]
    report = fetch(urls, output, limits=FetchLimits(jobs=1))

    assert faults(report, site) == [
        "/y/v1: goes to v1/root as /x/v1 does; fetch it with another --release"
    ]
    assert blob_path(ONE) in files_in(output / "v1" / "root")


@pytest.mark.slow
def test_a_stack_that_vanished(site: Site, output: Path) -> None:
    """A stack that its manifest names no longer stays; a broken manifest says nothing
    of it.
    """
    site.serve(below("a", layout_3(ONE)) | below("b", layout_3(TWO)))
    serve_manifest(site, develop={"root": "a"}, old={"root": "b"})
    fetch([f"{site.url}/b"], output, FetchOptions(release="mine"), QUICK)
    assert bring_named(site, output).faults == ()

    # A manifest that is broken, empty or missing.
    for text in (b"{}", b"{", b'{"develop": []}'):
        site.files["/list.json"] = text
        report = bring_named(site, output)
        assert len(report.faults) == 1
        assert report.vanished == ()
    site.always["/list.json"] = missing
    report = bring_named(site, output)
    assert len(report.faults) == 1
    assert report.vanished == ()

    # A whole one, without the stack.
    del site.always["/list.json"]
    serve_manifest(site, develop={"root": "a"})
    report = bring_named(site, output)
    assert report.faults == ()
    assert report.vanished == (output / "old" / "root",)
    assert folders(output) == ["develop/root", "mine/root", "old/root"]


@pytest.mark.slow
def test_so_many_at_once(site: Site, output: Path) -> None:
    """No more requests are under way than `jobs` says, and no fewer."""
    names = "abcdefgh"
    guard = threading.Lock()
    under_way = 0
    most_under_way = 0

    def counted(handler: Handler, data: bytes) -> None:
        nonlocal under_way, most_under_way
        with guard:
            under_way += 1
            most_under_way = max(most_under_way, under_way)
        threading.Event().wait(0.05)
        with guard:
            under_way -= 1
        handler.send(200, data, etag=tag(data))

    files: dict[str, bytes] = {}
    for name in names:
        files |= below(name, layout_3(ONE))
        site.always[f"/{name}/{blob_path(ONE)}"] = counted
    site.serve(files)

    urls = [f"{site.url}/{name}" for name in names]
    report = fetch(urls, output, limits=FetchLimits(jobs=3))

    assert report.faults == ()
    assert report.mirrors == 8
    assert most_under_way == 3


@pytest.mark.slow
def test_no_password_is_written_or_told(site: Site, output: Path) -> None:
    """A user and a password of a URL are sent, and stand nowhere else."""
    site.serve(below("a", layout_3(ONE)))
    url = site.url.replace("://", "://me:secret@")

    report = fetch([f"{url}/a", f"{url}/none", f"{url}/b c"], output, limits=QUICK)

    assert "secret" not in " ".join(faults(report, site))
    for data in files_in(output, hidden=True).values():
        assert b"secret" not in data
    for request in site.requests:
        assert request.headers["authorization"]


@pytest.mark.slow
def test_a_manifest_of_too_many_mirrors(site: Site, output: Path) -> None:
    """None of them is asked."""
    serve_manifest(site, v1={f"s{number}": f"s{number}" for number in range(20)})
    limits = FetchLimits(pause=0.01, max_mirrors=19)

    (fault,) = fetch([f"{site.url}/list.json"], output, limits=limits).faults

    assert fault.message == "names 20 mirrors, expected at most 19 (--max-mirrors)"
    assert len(site.requests) == 1


def test_a_folder_that_cannot_be_written(site: Site, output: Path) -> None:
    """A folder that the disk refuses is a fault of one mirror."""
    site.serve(below("a", layout_3(ONE)) | below("b", layout_3(ONE)))
    output.mkdir()
    (output / "a").write_bytes(b"a file")

    report = fetch([f"{site.url}/a", f"{site.url}/b"], output, limits=QUICK)

    assert faults(report, site) == [
        f"{output}/a/root: cannot be written: Not a directory"
    ]
    assert folders(output) == ["b/root"]


def test_an_output_that_cannot_be_used(output: Path) -> None:
    """A file is refused, and a folder that another run writes into, which is left
    alone.
    """
    running = pytest.raises(OutputError, match="another fetch is writing into it")
    with alone_in(output, "fetch"), running:
        fetch(["https://host/a"], output)
    written(output, {"file": b""})

    with pytest.raises(OutputError, match="expected a folder to write into"):
        fetch(["https://host/a"], output / "file")


CLAIMED = (
    # Outside the folder.
    "../../../mine",
    "../mine",
    "/etc/mine",
    "x/../../mine",
    "index.json/../../mine",
    "blobs/sha256/../../mine",
    # In it, or behind a link.
    "mine",
    "build_cache/mine",
    "linked/index.json",
    "build_cache/index.json",
    "v3/manifests/index/../index.manifest.json",
)
"""Names of files that a record claims to have fetched."""


def test_nothing_of_others_is_removed(site: Site, output: Path) -> None:
    """Whatever a folder's record claims: other names, other folders and links' targets
    stay.
    """
    site.serve(below("a", layout_3(ONE)))
    folder = output / "a" / "root"
    folder.mkdir(parents=True)
    elsewhere = output.parent / "elsewhere"
    for name in ("build_cache", "linked"):
        (folder / name).symlink_to(elsewhere)
    mine = [
        output.parent / "mine",
        output / "mine",
        output / "a" / "mine",
        folder / "mine",
        folder / ".film.mkv.part",
        folder / "v3" / ".index.json.part",
        elsewhere / "mine",
        elsewhere / "index.json",
    ]
    for path in mine:
        written(path.parent, {path.name: b"mine"})
    record = {"url": "https://host/a", "sha256": "0" * 64}
    state = {"files": dict.fromkeys(CLAIMED, record)}
    (folder / STATE_FILE).write_text(json.dumps(state))

    assert fetch([f"{site.url}/a"], output, limits=QUICK).faults == ()

    assert {path.read_bytes() for path in mine} == {b"mine"}
    assert files_in(folder).keys() >= {"mirror.json", *layout_3(ONE)}


URL = "https://host/a"
MIRROR = Mirror(URL, "v1", "root")


def test_what_is_known_may_be_lost(output: Path) -> None:
    """A broken file of what is known means that all is fetched anew."""
    for text in (b"", b"{", b"[]", b'{"files": 1}', b"\xff"):
        with opened(output, MIRROR) as folder:
            folder.write("index.json", b"data", URL)
        assert StackFolder(output, MIRROR).unchanged("index.json", URL)
        (output / "v1/root" / STATE_FILE).write_bytes(text)

        assert StackFolder(output, MIRROR).unchanged("index.json", URL) is None


def test_another_address(output: Path) -> None:
    """A folder of another mirror, or with a broken address, is left alone."""
    StackFolder(output, MIRROR).write("index.json", b"data", URL)

    with pytest.raises(
        FetchFault, match="has the index of https://host/a: name another with"
    ):
        StackFolder(output, MIRROR._replace(url="https://host/b"))
    (output / "v1/root" / ADDRESS_FILE).write_bytes(b"{}")
    with pytest.raises(FetchFault, match="broken address of a mirror"):
        StackFolder(output, MIRROR)
