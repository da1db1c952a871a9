"""A mirror between two runs, and while it is read: what is new comes, what is not is not sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.indexes.fetch.mirrors import (
    LAYOUT_2,
    LAYOUT_3,
    below,
    files_in,
    index,
    layout_2,
    layout_3,
    litter,
    manifest,
    sha256,
)
from tests.sources.indexes.fetch.runs import bring
from tests.sources.indexes.fetch.server import Site, instead

pytestmark = pytest.mark.slow

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


def test_the_same_bytes_sent_again_are_no_change(site: Site, output: Path) -> None:
    """A server that knows no conditions sends all again, which counts as unchanged."""
    site.serve(below("m", layout_2(NEW, with_sum=False)))
    site.always[f"/m/{LAYOUT_2}"] = instead(NEW)
    bring(site, output)

    report = bring(site, output)

    assert (report.faults, report.changed) == ((), 0)


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
    assert (report.faults, report.changed, fetched) == ((), 1, layout(NEW))


def test_a_mirror_that_moves_to_layout_3(site: Site, output: Path) -> None:
    """The index of the old layout does not stay beside that of the new one."""
    site.serve(below("m", layout_2(OLD)))
    bring(site, output)
    site.serve(below("m", layout_3(NEW)))

    assert bring(site, output).faults == ()

    assert files_in(output / "r" / "s").keys() == {"mirror.json", *layout_3(NEW)}
    assert not (output / "r" / "s" / "build_cache").exists()


def test_a_file_that_somebody_changed_is_fetched_anew(site: Site, output: Path) -> None:
    """A condition is sent only for the bytes that were fetched."""
    site.serve(below("m", layout_2(NEW, with_sum=False)))
    bring(site, output)
    (output / "r" / "s" / LAYOUT_2).write_bytes(OLD)

    assert bring(site, output).changed == 1

    assert (output / "r" / "s" / LAYOUT_2).read_bytes() == NEW


def test_a_mirror_that_changes_between_manifest_and_blob(site: Site, output: Path) -> None:
    """The blob of the manifest that was read is gone: the manifest is read anew."""
    site.serve(below("m", layout_3(NEW)))
    site.answers[f"/m/{LAYOUT_3}"] = [instead(manifest(OLD))]

    assert bring(site, output).faults == ()

    assert files_in(output / "r" / "s").keys() == {"mirror.json", *layout_3(NEW)}
    assert litter(output) == []


def test_a_sum_that_changes_before_its_index(site: Site, output: Path) -> None:
    """The file of a sum may be older than its index: both are read anew."""
    site.serve(below("m", layout_2(NEW)))
    site.answers[f"/m/{LAYOUT_2}.hash"] = [instead(sha256(OLD).encode())]

    assert bring(site, output).faults == ()

    assert files_in(output / "r" / "s")[f"{LAYOUT_2}.hash"] == sha256(NEW).encode()


def test_no_old_sum_lies_beside_a_new_index(site: Site, output: Path) -> None:
    """When the sum is gone from the mirror, it goes here as well."""
    site.serve(below("m", layout_2(OLD)))
    bring(site, output)
    site.serve(below("m", layout_2(NEW, with_sum=False)))

    assert bring(site, output).faults == ()

    assert files_in(output / "r" / "s").keys() == {"mirror.json", LAYOUT_2}
