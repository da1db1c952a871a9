"""The command `fetch`: options, what it prints, what it loads."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import run
from tests.indexes import MIRRORS
from tests.processes import on_a_terminal
from tests.sources.fetch.mirrors import (
    below,
    files_in,
    index,
    layout_2,
    layout_3,
    written,
)
from tests.sources.fetch.server import Site, serve

DATA = index("zlib")


@pytest.fixture
def site() -> Iterator[Site]:
    """A server with the mirrors `a` (layout 3) and `b` (layout 2)."""
    with serve(below("a", layout_3(DATA)) | below("b", layout_2(DATA))) as running:
        yield running


def test_mirrors(site: Site, tmp_path: Path) -> None:
    """Two mirrors come, and one line says so; the second time nothing has changed."""
    urls = [f"{site.url}/a", f"{site.url}/b"]

    first = run("fetch", *urls, "-o", tmp_path / "m")
    second = run("fetch", *urls, "-o", tmp_path / "m")

    assert (first.exit_code, first.stderr) == (0, ""), first.output
    start = f"{tmp_path}/m: 2 mirrors, "
    assert re.match(rf"{re.escape(start)}2 changed, \d+ bytes in ", first.stdout)
    assert re.match(rf"{re.escape(start)}0 changed, \d+ bytes in ", second.stdout)
    assert {name.split("/")[0] for name in files_in(tmp_path / "m")} == {"a", "b"}


def test_a_manifest(site: Site, tmp_path: Path) -> None:
    """Maps, one release of a manifest, and what vanished from it."""
    site.files["/list.json"] = (
        b'{"develop": [{"label": "root", "url": "s3://x/y/a"}],'
        b' "old": [{"label": "root", "url": "s3://x/y/b"}]}'
    )
    command = (
        "fetch",
        f"{site.url}/list.json",
        "-o",
        tmp_path,
        "--map",
        f"s3://x/y={site.url}",
    )
    assert run(*command).exit_code == 0
    site.files["/list.json"] = b'{"develop": [{"label": "root", "url": "s3://x/y/a"}]}'

    told = run(*command, "--release", "develop")

    advice = "its manifest no longer lists it; remove the folder if you do not need it"
    assert told.exit_code == 0
    assert told.stderr == f"Note: {tmp_path}/old/root: {advice}\n"


@pytest.mark.parametrize("keep_going", [(), ("--keep-going",)])
def test_faults(site: Site, tmp_path: Path, keep_going: tuple[str, ...]) -> None:
    """A fault is a line, sorted; with --keep-going, `fetch && build` goes on with good
    mirrors.
    """
    urls = [f"{site.url}/{name}" for name in ("none", "a", "missing")]

    result = run("fetch", *urls, "-o", tmp_path / "m", *keep_going)
    without = run("fetch", urls[0], "-o", tmp_path / "m", "--keep-going")

    missing, none, *last = result.stderr.splitlines()
    assert missing.startswith(f"{site.url}/missing: has neither v3/manifests/index/")
    assert none.startswith(f"{site.url}/none: has neither v3/manifests/index/")
    error = "Error: 2 mirrors failed; files of earlier runs are kept."
    assert (result.exit_code, last) == ((0, []) if keep_going else (1, [error]))
    assert result.stdout.startswith(
        f"{tmp_path}/m: 1 of 3 mirrors downloaded, 1 changed, "
    )
    assert (tmp_path / "m" / "a" / "root" / "mirror.json").is_file()
    assert without.exit_code == 1


def test_mirrors_without_an_index(tmp_path: Path) -> None:
    """Every mirror counts, and each failure has a line with what to do."""
    shutil.copytree(MIRRORS / "v3", tmp_path / "v3")
    written(tmp_path / "v2", layout_2(DATA))
    (tmp_path / "src" / "zlib").mkdir(parents=True)
    (tmp_path / "src" / "zlib" / "zlib-1.3.tar.gz").write_bytes(b"sources")
    path = tmp_path / "mirrors.yaml"
    path.write_text(
        "mirrors:\n  local: ./v3\n  old: {url: ./v2, binary: true}\n"
        "  sources: {binary: false, url: https://host/sources}\n  src: ./src\n"
        "  gone: file:///nonexistent/mirror\n  broken: {push: ./v2}\n"
    )

    result = run("fetch", "--mirrors", path, "-o", tmp_path / "m")

    assert result.exit_code == 1
    assert result.stdout.startswith(
        f"{tmp_path}/m: 2 of 5 mirrors downloaded, 2 changed, "
    )
    lines = {line.partition(": ")[0]: line for line in result.stderr.splitlines()}
    assert (
        "there is no such folder, expected a mirror"
        in lines["file:///nonexistent/mirror"]
    )
    advice = (
        "a folder without spec files has no binaries; `spack buildcache push` adds some"
    )
    assert lines[f"file://{tmp_path}/src"].endswith(advice)
    assert "the mirror broken has no url to fetch from" in lines[f"{path}:7"]
    assert lines["Note"] == "Note: sources: has no binaries (binary: false)"
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["https://host/a"], "Missing option '-o'"),
        (["-o", "x"], "nothing to download"),
        (
            ["https://host/a", "-o", "x", "--map", "nothing"],
            "'nothing' is not a pair of URLs, expected s3://",
        ),
        (["https://host/a", "-o", "x", "--max-size", "many"], "'many' is not a size"),
        (["https://host/a", "-o", "x", "--jobs", "0"], "0 is not in the range"),
        (["https://host/a", "-o", "x", "--deadline", "0"], "0.0 is not in the range"),
    ],
)
def test_options_that_mean_nothing(arguments: list[str], message: str) -> None:
    """A wrong option is refused before anything is asked for."""
    result = run("fetch", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.slow
def test_a_bar_on_a_terminal(site: Site, tmp_path: Path) -> None:
    """A terminal sees how far it is, up to the end."""
    arguments = ["fetch", f"{site.url}/a", f"{site.url}/b", "-o", tmp_path / "m"]
    seen = on_a_terminal([sys.executable, "-m", "spack_cache_db", *arguments], "stderr")
    assert b"Fetching" in seen
    assert b"100%" in seen
