"""Where a run writes: what is refused, and who else writes there."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from spack_cache_db.errors import OutputError
from spack_cache_db.sources import ADDRESS_FILE
from spack_cache_db.sources.fetch import fetch
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.stack_folder import STATE_FILE, StackFolder, opened
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    faults,
    files_in,
    folders,
    index,
    layout_3,
    written,
)
from tests.sources.fetch.server import Site

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


OTHERS = (
    *("../../../mine", "../mine", "/etc/mine", "x/../../mine", "index.json/../../mine"),
    *("mine", "build_cache/mine", "linked/index.json", "build_cache/index.json"),
    *("v3/manifests/index/../index.manifest.json", "blobs/sha256/../../mine"),
)


def test_nothing_of_others_is_removed(site: Site, output: Path) -> None:
    """Whatever a folder's record claims: other names, other folders and links' targets stay."""
    site.serve(below("a", layout_3(ONE)))
    folder, elsewhere = output / "a" / "root", output.parent / "elsewhere"
    folder.mkdir(parents=True)
    for name in ("build_cache", "linked"):
        (folder / name).symlink_to(elsewhere)
    own = (output.parent, output, output / "a", folder, elsewhere)
    mine = [*(path / "mine" for path in own), elsewhere / "index.json"]
    mine += [folder / ".film.mkv.part", folder / "v3" / ".index.json.part"]
    for path in mine:
        written(path.parent, {path.name: b"mine"})
    record = {"url": "https://host/a", "sha256": "0" * 64}
    (folder / STATE_FILE).write_text(json.dumps({"files": dict.fromkeys(OTHERS, record)}))

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

    with pytest.raises(FetchFault, match="has the index of https://host/a: name another with"):
        StackFolder(output, MIRROR._replace(url="https://host/b"))
    (output / "v1/root" / ADDRESS_FILE).write_bytes(b"{}")
    with pytest.raises(FetchFault, match="broken address of a mirror"):
        StackFolder(output, MIRROR)
