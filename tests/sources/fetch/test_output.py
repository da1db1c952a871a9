"""Where a run writes: what is refused, who else writes there, what a killed run leaves."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spack_cache_db.errors import OutputError
from spack_cache_db.sources import ADDRESS_FILE
from spack_cache_db.sources.fetch import fetch
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.stack_folder import (
    PART_FILE,
    STATE_FILE,
    StackFolder,
)
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    blob_path,
    faults,
    files_in,
    folders,
    index,
    layout_3,
    litter,
)
from tests.sources.fetch.server import Handler, Site, tag

ONE = index("zlib")


def test_a_folder_that_cannot_be_written(site: Site, output: Path) -> None:
    """What the disk refuses is a fault of one mirror."""
    site.serve(below("a", layout_3(ONE)) | below("b", layout_3(ONE)))
    output.mkdir()
    (output / "a").write_bytes(b"a file")

    report = fetch([f"{site.url}/a", f"{site.url}/b"], output, limits=QUICK)

    assert faults(report, site) == [f"{output}/a/root: cannot be written: Not a directory"]
    assert folders(output) == ["b/root"]


def test_an_output_that_is_a_file(tmp_path: Path) -> None:
    """Nothing is fetched without a folder to write into."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(OutputError, match="expected a folder to write into"):
        fetch(["https://host/a"], tmp_path / "file")


def test_two_runs_at_once(output: Path) -> None:
    """A second run into the same folder is refused, and leaves the first alone."""
    output.mkdir()
    descriptor = os.open(output, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(OutputError, match="another fetch is writing into it"):
            fetch(["https://host/a"], output)
    finally:
        os.close(descriptor)


STATE = {
    name: {"url": "https://host/a", "size": 1, "sha256": "0" * 64}
    for name in (
        *("../../../mine", "../mine", "/etc/mine", "x/../../mine", "index.json/../../mine"),
        *("mine", "build_cache/mine", "linked/index.json", "build_cache/index.json"),
        *("v3/manifests/index/../index.manifest.json", "blobs/sha256/../../mine"),
    )
}


def test_nothing_of_others_is_removed(site: Site, output: Path) -> None:
    """Whatever a folder's record claims: other names, other folders and links' targets stay."""
    site.serve(below("a", layout_3(ONE)))
    folder, elsewhere = output / "a" / "root", output.parent / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir(parents=True)
    (folder / "build_cache").symlink_to(elsewhere)
    (folder / "linked").symlink_to(elsewhere)
    kept = [
        *(output.parent / "mine", output / "mine", output / "a" / "mine", folder / "mine"),
        *(elsewhere / "index.json", elsewhere / "mine", folder / ".film.mkv.part"),
        folder / "v3" / ".index.json.part",
    ]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
    (folder / ".fetched.json").write_text(json.dumps({"files": STATE}))

    assert fetch([f"{site.url}/a"], output, limits=QUICK).faults == ()

    assert [path for path in kept if path.read_bytes() != b"mine"] == []
    assert files_in(folder).keys() >= {"mirror.json", *layout_3(ONE)}


@pytest.mark.slow
def test_a_run_that_is_killed(site: Site, output: Path) -> None:
    """It leaves the old index whole and a part beside it, which the next run replaces."""
    new = index("zlib", size=400_000)
    site.serve(below("a", layout_3(ONE)))
    assert fetch([f"{site.url}/a"], output, limits=QUICK).faults == ()
    before = files_in(output)
    site.serve(below("a", layout_3(new)))
    halfway, gone = threading.Event(), threading.Event()

    def half(handler: Handler, data: bytes) -> None:
        handler.send(200, data[:200_000], content_length=len(data), etag=tag(data))
        handler.wfile.flush()
        halfway.set()
        gone.wait(60)
        handler.cut_off()

    site.answers[f"/a/{blob_path(new)}"] = [half]
    code = (
        "import sys, pathlib; from spack_cache_db.sources.fetch import fetch; "
        "fetch([sys.argv[1]], pathlib.Path(sys.argv[2]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, f"{site.url}/a", str(output)])
    assert halfway.wait(60)
    part = output / "a" / "root" / PART_FILE
    while not part.is_file() or not part.stat().st_size:
        assert process.poll() is None
        threading.Event().wait(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    gone.set()

    assert files_in(output) == before
    assert litter(output) == [part.relative_to(output).as_posix()]

    assert fetch([f"{site.url}/a"], output, limits=QUICK).faults == ()

    assert files_in(output / "a" / "root").keys() == {"mirror.json", *layout_3(new)}
    assert litter(output) == []


URL = "https://host/a"
MIRROR = Mirror(URL, "v1", "root")


def opened(output: Path, wanted: Mirror = MIRROR) -> StackFolder:
    """Return the folder as a new run finds it."""
    return StackFolder(output, wanted)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"files": 1}', b"\xff"])
def test_what_is_known_may_be_lost(output: Path, text: bytes) -> None:
    """A broken file of what is known means that all is fetched anew."""
    opened(output).write("index.json", b"data", URL)
    (output / "v1/root" / STATE_FILE).write_bytes(text)

    assert opened(output).unchanged("index.json", URL) is None


def test_another_address(output: Path) -> None:
    """A folder of another mirror, or with a broken address, is left alone."""
    opened(output).write("index.json", b"data", URL)

    with pytest.raises(FetchFault, match="has the index of https://host/a: name another with"):
        opened(output, Mirror("https://host/b", "v1", "root"))
    (output / "v1/root" / ADDRESS_FILE).write_bytes(b"{}")
    with pytest.raises(FetchFault, match="broken address of a mirror"):
        opened(output)
