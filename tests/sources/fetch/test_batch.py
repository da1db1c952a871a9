"""A whole run: many URLs, what is told at the end, what vanished, who else writes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport, fetch
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    blob_path,
    faults,
    files_in,
    folders,
    index,
    layout_3,
)
from tests.sources.fetch.server import Handler, Site, missing, tag

pytestmark = pytest.mark.slow

ONE, TWO = index("zlib"), index("hdf5")


def named(site: Site, **releases: dict[str, str]) -> None:
    """Serve a manifest of releases and stacks, whose mirrors lie at these paths."""
    manifest = {
        release: [{"label": stack, "url": f"s3://bucket/{path}"} for stack, path in stacks.items()]
        for release, stacks in releases.items()
    }
    site.files["/list.json"] = json.dumps(manifest).encode()


def bring_named(site: Site, output: Path) -> FetchReport:
    """Fetch what the manifest names."""
    options = FetchOptions(maps=(("s3://bucket", site.url),))
    return fetch([f"{site.url}/list.json"], output, options, QUICK)


def test_two_mirrors_for_one_folder(site: Site, output: Path) -> None:
    """The second of them is refused with the name of the first."""
    site.serve(below("x/v1", layout_3(ONE)) | below("y/v1", layout_3(TWO)))

    report = fetch([f"{site.url}/{name}/v1" for name in "xy"], output, limits=FetchLimits(jobs=1))

    assert faults(report, site) == [
        "/y/v1: goes to v1/root as /x/v1 does; fetch it with another --release"
    ]
    assert blob_path(ONE) in files_in(output / "v1" / "root")


def test_a_stack_that_vanished(site: Site, output: Path) -> None:
    """A stack that its manifest names no longer stays; a broken manifest says nothing of it."""
    site.serve(below("a", layout_3(ONE)) | below("b", layout_3(TWO)))
    named(site, develop={"root": "a"}, old={"root": "b"})
    fetch([f"{site.url}/b"], output, FetchOptions(release="mine"), QUICK)
    assert bring_named(site, output).faults == ()
    for text in (b"{}", b"{", b'{"develop": []}', None):
        site.files["/list.json"] = text or b""
        site.always |= {} if text else {"/list.json": missing}
        report = bring_named(site, output)
        assert (len(report.faults), report.vanished) == (1, ())
    del site.always["/list.json"]
    named(site, develop={"root": "a"})

    report = bring_named(site, output)

    assert (report.faults, report.vanished) == ((), (output / "old" / "root",))
    assert folders(output) == ["develop/root", "mine/root", "old/root"]


def test_so_many_at_once(site: Site, output: Path) -> None:
    """No more requests are under way than `jobs` says, and no fewer."""
    names = "abcdefgh"
    guard, under_way, most = threading.Lock(), [0], [0]

    def counted(handler: Handler, data: bytes) -> None:
        with guard:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        threading.Event().wait(0.05)
        with guard:
            under_way[0] -= 1
        handler.send(200, data, etag=tag(data))

    for name in names:
        site.files |= {f"/{path}": data for path, data in below(name, layout_3(ONE)).items()}
        site.always[f"/{name}/{blob_path(ONE)}"] = counted

    report = fetch([f"{site.url}/{name}" for name in names], output, limits=FetchLimits(jobs=3))

    assert (report.faults, report.mirrors, most) == ((), 8, [3])


def test_no_password_is_written_or_told(site: Site, output: Path) -> None:
    """A user and a password of a URL are sent, and stand nowhere else."""
    site.serve(below("a", layout_3(ONE)))
    url = site.url.replace("://", "://me:secret@")

    report = fetch([f"{url}/a", f"{url}/none", f"{url}/b c"], output, limits=QUICK)

    assert "secret" not in " ".join(faults(report, site))
    assert all(b"secret" not in data for data in files_in(output, hidden=True).values())
    assert all(each.headers["authorization"] for each in site.asked)


def test_a_manifest_of_too_many_mirrors(site: Site, output: Path) -> None:
    """None of them is asked."""
    named(site, v1={f"s{number}": f"s{number}" for number in range(20)})
    limits = FetchLimits(pause=0.01, max_mirrors=19)

    (fault,) = fetch([f"{site.url}/list.json"], output, limits=limits).faults

    assert fault.message == "names 20 mirrors, expected at most 19 (--max-mirrors)"
    assert len(site.asked) == 1
