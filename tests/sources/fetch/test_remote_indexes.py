"""A mirror's index over HTTP, of either layout, with its views, and while it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_cache_db.sources.indexes import read_address
from tests.sources.fetch.mirrors import (
    LAYOUT_2,
    LAYOUT_3,
    below,
    blob_path,
    clear_signed,
    files_in,
    index,
    layout_2,
    layout_3,
    litter,
    manifest,
    sha256,
)
from tests.sources.fetch.runs import bring, faults
from tests.sources.fetch.server import Site, instead, status

pytestmark = pytest.mark.slow

OLD, NEW = index("zlib"), index("zlib", "hdf5")


@pytest.mark.parametrize("signed", [False, True])
def test_layout_3(site: Site, output: Path, signed: bool) -> None:
    """Manifest, clear-signed or not, and blob lie as on the mirror, beside the mirror's address."""
    files = layout_3(NEW, signed=signed)
    site.serve(below("m", files))

    report = bring(site, output)

    fetched = files_in(output / "r" / "s")
    assert (report.faults, report.mirrors, report.changed) == ((), 1, 1)
    assert read_address(fetched.pop("mirror.json")).url == f"{site.url}/m"
    assert fetched == files


@pytest.mark.parametrize("with_sum", [False, True])
def test_layout_2(site: Site, output: Path, with_sum: bool) -> None:
    """Where layout 3 is missing, the index of layout 2 comes, checked against its sum if any."""
    files = layout_2(NEW, with_sum)
    site.serve(below("m", files))

    report = bring(site, output)

    fetched = files_in(output / "r" / "s")
    assert read_address(fetched.pop("mirror.json")).url == f"{site.url}/m"
    files.pop(f"{LAYOUT_2}.hash", None)
    assert (report.faults, fetched) == ((), files)


def test_views_of_earlier_runs_stay(site: Site, output: Path) -> None:
    """A view that is not asked for again stays as it is, as other mirrors do; its index too."""
    site.serve(below("m", layout_3(NEW) | layout_3(OLD, view="e4s") | layout_3(OLD, view="hep")))
    bring(site, output, views=("e4s", "hep"))
    newer = layout_3(index("zlib", "hdf5", "gmake")) | layout_3(NEW, view="hep")
    site.serve(below("m", newer))

    assert bring(site, output, views=("hep",)).faults == ()

    fetched = files_in(output / "r" / "s")
    assert fetched.keys() == {"mirror.json", *newer, *layout_3(OLD, view="e4s")}


def test_no_index_and_no_view(site: Site, output: Path) -> None:
    """A URL that is no mirror is refused in one line, and leaves nothing."""
    report = bring(site, output)

    assert faults(report, site) == [
        f"/m: has neither {LAYOUT_3} nor {LAYOUT_2}, expected a mirror with an index: "
        "`spack buildcache update-index` makes one, --view names a view, "
        "and `spack-cache-db build FOLDER` reads a mirror without an index in a folder"
    ]
    assert files_in(output, hidden=True) == {}


def test_a_wrong_checksum(site: Site, output: Path) -> None:
    """A blob that never is what its manifest says is refused; the old index stays whole."""
    site.serve(below("m", layout_3(OLD)))
    bring(site, output)
    before = files_in(output)
    site.serve(below("m", {LAYOUT_3: manifest(NEW), blob_path(NEW): OLD}))

    report = bring(site, output)

    assert faults(report, site) == [
        f"/m/{blob_path(NEW)}: has the checksum {sha256(OLD)}, expected {sha256(NEW)} "
        "as the mirror says"
    ]
    assert (report.changed, files_in(output), litter(output)) == (0, before, [])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>hello</html>", "broken manifest: "),
        (b'{"version": 4, "data": []}', "is of layout 4, expected 3"),
        (b'{"version": 3, "data": []}', "names no index, expected one of media type application/"),
        (manifest(NEW, "../../../../etc/passwd"), "names a checksum that is not a sha256"),
        (clear_signed(b"nothing"), "broken manifest: "),
    ],
)
def test_a_broken_manifest(site: Site, output: Path, body: bytes, says: str) -> None:
    """A manifest that is none is refused by what is wrong with it, and nothing is written."""
    site.serve(below("m", {LAYOUT_3: body}))

    (fault,) = faults(bring(site, output), site)

    assert fault.startswith(f"/m/{LAYOUT_3}: {says}")
    assert files_in(output, hidden=True) == {}


def test_an_unasked_304(site: Site, output: Path) -> None:
    """A server that says unchanged of what was never fetched is refused."""
    site.serve(below("m", layout_3(NEW)))
    site.always[f"/m/{LAYOUT_3}"] = status(304)

    assert faults(bring(site, output), site) == [f"/m/{LAYOUT_3}: answers 304, expected 200"]


OLD, NEW = index("zlib"), index("zlib", "hdf5")


def test_what_has_not_changed_is_not_sent_again(site: Site, output: Path) -> None:
    """A second run asks for a manifest by condition, for no blob, and writes nothing."""
    site.serve(below("m", layout_3(NEW)))
    bring(site, output)
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    site.asked.clear()

    report = bring(site, output)

    assert (report.faults, report.mirrors, report.changed) == ((), 1, 0)
    assert [each.headers.get("if-none-match", "") != "" for each in site.asked] == [False, True]
    assert site.paths()[1:] == [f"/m/{LAYOUT_3}"]
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*")} == before


@pytest.mark.parametrize("with_sum", [False, True])
def test_what_has_not_changed_in_layout_2(site: Site, output: Path, with_sum: bool) -> None:
    """An index is asked for by condition, or not at all if its sum is the same."""
    site.serve(below("m", layout_2(NEW, with_sum)))
    bring(site, output)
    site.asked.clear()

    report = bring(site, output)

    asked = [each for each in site.asked if each.path == f"/m/{LAYOUT_2}"]
    assert (report.faults, report.changed) == ((), 0)
    assert [bool(each.headers["if-none-match"]) for each in asked] == ([] if with_sum else [True])


@pytest.mark.parametrize("layout", [layout_2, layout_3])
def test_a_new_index_replaces_the_old(site: Site, output: Path, layout: object) -> None:
    """What the mirror has no longer goes, so that the folder is the mirror of today."""
    assert callable(layout)
    site.serve(below("m", layout(OLD)))
    bring(site, output)
    site.serve(below("m", layout(NEW)))

    report = bring(site, output)

    fetched = files_in(output / "r" / "s")
    del fetched["mirror.json"]
    files = {name: data for name, data in layout(NEW).items() if not name.endswith(".hash")}
    assert (report.faults, report.changed, fetched) == ((), 1, files)


def test_a_mirror_that_changes_between_manifest_and_blob(site: Site, output: Path) -> None:
    """The blob of the manifest that was read is gone: the manifest is read anew."""
    site.serve(below("m", layout_3(NEW)))
    site.answers[f"/m/{LAYOUT_3}"] = [instead(manifest(OLD))]

    assert bring(site, output).faults == ()

    assert files_in(output / "r" / "s").keys() == {"mirror.json", *layout_3(NEW)}
    assert litter(output) == []
