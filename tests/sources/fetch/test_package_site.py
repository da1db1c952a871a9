"""Package data over the web: archives, lists and the site, verified before they are
kept.
"""

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import verify
from spack_cache_db.query.stored.package_data import package_names
from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchOptions
from spack_cache_db.sources.fetch.report import FetchReport
from tests.commands import run
from tests.package_data import REPOLOGY, listed, published
from tests.pagetexts import page, spec, write
from tests.sources.fetch.mirrors import QUICK, changes, files_in, index
from tests.sources.fetch.server import Site, missing


def bring(site: Site, output: Path, path: str, *names: str) -> FetchReport:
    """Fetch package data from a path of the site, of the packages with these names if
    any.
    """
    options = FetchOptions(packages=f"{site.url}/{path}", package_names=names or None)
    return fetch([], output, options, QUICK)


def archive(**files: bytes) -> bytes:
    """Return a repository as an archive, with a file that is not package data."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in {"README.md": b"# The site", **files}.items():
            member = tarfile.TarInfo(f"site-main/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(data.getvalue(), mtime=0)


def as_json(value: Any) -> bytes:
    """Return JSON as a file."""
    return json.dumps(value).encode()


ZLIB = as_json(published("zlib", "1.3"))
HDF5 = as_json(published("hdf5", "1.14", "1.12"))
REPOSITORY = archive(
    **{"data/packages/zlib.json": ZLIB, "data/packages/hdf5.json": HDF5}
)
WITH_LICENSES = archive(
    **{"data/packages/zlib.json": ZLIB, "data/repology.json": REPOLOGY.read_bytes()}
)
LIST = as_json([listed("zlib", "1.3"), listed("hdf5", "1.14")])


def files_of(output: Path) -> list[str]:
    """Return what was brought, hidden files apart."""
    return sorted(files_in(output / "packages" / "127.0.0.1"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "data", "brought"),
    [
        ("a/main.tar.gz", REPOSITORY, "packages.tar.zst"),
        ("version.json", LIST, "packages.json"),
        ("b/main.tar.gz", WITH_LICENSES, "packages.tar.zst"),
        ("data/repology.json", REPOLOGY.read_bytes(), "packages.json"),
    ],
)
def test_what_is_brought_can_be_built(
    path: str, data: bytes, brought: str, site: Site, output: Path, tmp_path: Path
) -> None:
    """It has every package and nothing else; what has not changed is not sent again."""
    site.serve({path: data})
    reports = [bring(site, output, path) for _ in range(2)]

    assert (changes(reports), reports[1].size) == ([1, 0], 0)
    assert site.requests[-1].headers["if-none-match"]
    assert files_of(output) == [brought]

    entries = {REPOSITORY: 2, LIST: 2, WITH_LICENSES: 4, REPOLOGY.read_bytes(): 3}
    assert build([output], tmp_path / "x.db").package_entries == entries[data]
    assert not verify(tmp_path / "x.db", [output]).differences


def test_files_of_the_packages_that_a_database_has(
    site: Site, output: Path, tmp_path: Path
) -> None:
    """One the site does not have is nobody's fault; one that it drops goes."""
    site.serve({"data/packages/zlib.json": ZLIB, "data/packages/hdf5.json": HDF5})
    pages = {
        name: page(name, specs=[spec(at)])
        for at, name in enumerate(("zlib", "hdf5", "own"))
    }
    build([write(tmp_path / "pages", **pages)], tmp_path / "x.db")
    names = package_names(tmp_path / "x.db")

    assert names == ("hdf5", "own", "zlib")

    report = bring(site, output, "", *names)
    assert (report.faults, report.changed) == ((), 1)
    assert files_of(output) == ["data/packages/hdf5.json", "data/packages/zlib.json"]
    assert build([output], tmp_path / "y.db").package_entries == 2
    site.always["/data/packages/zlib.json"] = missing
    assert bring(site, output, "", *names).faults == ()
    assert files_of(output) == ["data/packages/hdf5.json"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "data", "expected"),
    [
        (
            "a.tar.gz",
            archive(),
            "has no package data, expected data/packages/<name>.json",
        ),
        ("a.tar.gz", REPOSITORY[:-40], "Compressed file ended"),
        ("a.zip", b"<html>", "not a zip"),
        ("a.json", b"<html>", "is not package data"),
        ("a.json", index("a"), "is not package data"),
        ("a.json", as_json([{"name": "a b"}]), "expected one that Spack can read"),
        ("a", b"", "name a database: --packages-of FILE"),
        ("a.json?query", LIST, "has a query"),
    ],
)
def test_what_is_no_package_data_is_refused(
    path: str, data: bytes, expected: str, site: Site, output: Path
) -> None:
    """By name and reason; what an earlier run brought stays."""
    name = path.partition("?")[0]
    site.serve({name: REPOSITORY if name.endswith("gz") else LIST})

    if name.endswith(("gz", "json")) and "?" not in path:
        assert bring(site, output, path).faults == ()

    before = list(output.rglob("packages.*"))
    site.serve({name: data})
    (fault,) = bring(site, output, path).faults

    assert expected in fault.message
    assert fault.path.endswith(f"/{name}")
    assert list(output.rglob("packages.*")) == before


def test_the_command_brings_them_beside_mirrors(site: Site, output: Path) -> None:
    """Or alone."""
    site.serve({"m/build_cache/index.json": index("zlib"), "version.json": LIST})
    packages = ["--packages", f"{site.url}/version.json", "-o", output]
    assert "2 mirrors, 2 changed" in run("fetch", f"{site.url}/m", *packages).output
    assert (output / "m" / "root" / "build_cache" / "index.json").exists()
    assert "1 mirror, 0 changed" in run("fetch", *packages).output
