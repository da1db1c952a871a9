"""fetch --sizes: the sizes of binaries come from their manifests, and `build` stores
them.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.indexes import hash_of, index, node, record
from tests.sources.fetch.mirrors import below, layout_2, layout_3, manifest
from tests.sources.fetch.registries import push, registry
from tests.sources.fetch.server import Site, serve, status

SIZES = {"aa": 5, "bb": 70}


def binary_manifest(
    name: str, size: int, kind: str = "install.v2.tar+gzip"
) -> dict[str, bytes]:
    """Return the manifest of a binary, as a mirror of layout 3 has it."""
    path = f"v3/manifests/spec/{name}/{name}-1.0-{hash_of(name)}.spec.manifest.json"
    return {path: manifest(b"x" * size, kind=kind)}


def mirror(**sizes: int) -> dict[str, bytes]:
    """Return a mirror of layout 3 with binaries of these sizes."""
    records = [record(node(name)) for name in sizes]
    files = layout_3(index(*records))
    for name, size in sizes.items():
        files |= binary_manifest(name, size)
    return below("m", files)


@pytest.fixture
def site() -> Iterator[Site]:
    """A server with a mirror of two binaries."""
    with serve(mirror(**SIZES)) as running:
        yield running


def stored(folder: Path, tmp_path: Path) -> dict[str, int | None]:
    """Build a folder, and return the size of each package's binary."""
    file = tmp_path / "x.db"
    result = run("build", folder, "-o", file)
    assert result.exit_code == 0, result.output
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute("SELECT package, size FROM build_listings").fetchall()
    sizes = {}
    for package, size in rows:
        sizes[package] = None if size == "-" else int(size)
    return sizes


def requested(site: Site) -> list[str]:
    """Return the packages whose manifests were asked for, and forget them.

    A run that finds news also looks for signatures.
    """
    names = [path.split("/")[-2] for path in site.paths(".spec.manifest.json")]
    site.requests.clear()
    return sorted(names)


def test_sizes_come_once(site: Site, tmp_path: Path) -> None:
    """Only new binaries are asked for; a run without the option keeps what is known."""
    output = tmp_path / "m"
    command = ("fetch", f"{site.url}/m", "-o", output, "--jobs", 1)

    # Without the option, no size is known.
    assert run(*command).exit_code == 0
    site.requests.clear()
    assert stored(output, tmp_path) == {"aa": None, "bb": None}

    # With it, all sizes are; a second run asks for none.
    assert ": 1 mirror, 1 changed, " in run(*command, "--sizes").stdout
    assert requested(site) == ["aa", "bb"]
    assert stored(output, tmp_path) == SIZES
    assert ": 1 mirror, 0 changed, " in run(*command, "--sizes").stdout
    assert requested(site) == []

    # A binary has gone, and another has come.
    site.serve(mirror(bb=70, cc=8))
    assert run(*command).exit_code == 0
    site.requests.clear()
    assert stored(output, tmp_path) == {"bb": 70, "cc": None}
    assert run(*command, "--sizes").exit_code == 0
    assert requested(site) == ["cc"]
    assert stored(output, tmp_path) == {"bb": 70, "cc": 8}
    sizes = json.loads((output / "m" / "root" / "sizes.json").read_text())
    assert sizes == {hash_of("bb"): 70, hash_of("cc"): 8}


def test_a_size_that_is_unknown(site: Site, tmp_path: Path) -> None:
    """A manifest that is missing or odd is a note, and is asked for again; others are
    stored.
    """
    command = ("fetch", f"{site.url}/m", "-o", tmp_path / "m", "--sizes")
    whole = mirror(**SIZES, cc=3, dd=4)
    # The manifest of bb names no binary, that of cc is a page, and dd has none.
    odd = whole | below("m", binary_manifest("bb", 1, "spec.v5+json"))
    for path in whole:
        if "/cc-" in path:
            odd[path] = b"<html>"
        if "/dd-" in path:
            del odd[path]
    site.serve(odd)

    result = run(*command)

    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"Note: {site.url}/m: the size of 3 binaries is unknown: "
    )
    assert result.stderr.count("\n") == 1
    expected = {"aa": 5, "bb": None, "cc": None, "dd": None}
    assert stored(tmp_path / "m", tmp_path) == expected

    # The next run asks for these three again.
    site.serve(whole)
    site.requests.clear()
    assert run(*command).stderr == ""
    assert requested(site) == ["bb", "cc", "dd"]


def test_what_was_asked_for_is_kept_when_the_mirror_falls_silent(
    site: Site, tmp_path: Path
) -> None:
    """The run fails, and the next one asks for the rest."""
    command = ("fetch", f"{site.url}/m", "-o", tmp_path / "m", "--sizes", "--jobs", 1)
    (path,) = (path for path in site.files if "/bb-" in path)
    site.always[path] = status(503)

    result = run(*command, "--retries", 0)

    assert result.exit_code == 1
    assert "answers 503" in result.stderr

    del site.always[path]
    site.requests.clear()
    assert run(*command).exit_code == 0
    # The size of aa is known, and its signature is looked for.
    assert requested(site) == ["aa", "bb"]
    assert stored(tmp_path / "m", tmp_path) == SIZES


def test_a_mirror_of_layout_2_has_no_sizes(site: Site, tmp_path: Path) -> None:
    """A note says so, and nothing is asked for."""
    site.serve(below("m", layout_2(index(record(node("aa"))))))
    result = run("fetch", f"{site.url}/m", "-o", tmp_path / "m", "--sizes")
    note = f"Note: {site.url}/m: a mirror of layout 2 does not record sizes\n"

    assert result.exit_code == 0
    assert result.stderr == note
    assert requested(site) == []


@pytest.mark.parametrize("text", ["[]", "{", '{"a": "5"}', '{"a": -1}', '{"a": 1e30}'])
def test_a_broken_file_of_sizes_is_a_fault(
    site: Site, tmp_path: Path, text: str
) -> None:
    """It names the file; `fetch --sizes` writes it again."""
    command = ("fetch", f"{site.url}/m", "-o", tmp_path / "m", "--sizes")
    run(*command)
    file = tmp_path / "m" / "m" / "root" / "sizes.json"
    file.write_text(text)
    result = run("build", tmp_path / "m", "-o", tmp_path / "x.db")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file.parent}: broken sizes.json: ")

    assert run(*command).exit_code == 0
    assert stored(tmp_path / "m", tmp_path) == SIZES


@pytest.mark.slow
def test_the_last_layer_of_an_image_is_the_tarball(tmp_path: Path) -> None:
    """In a registry, each binary is an image whose layers are its dependencies and
    itself.
    """
    # A tag cannot have the signs of this version. cc has no image.
    odd: Any = node("bb", version="git.a/b=1.0+x")
    records = [record(node("aa")), record(odd), record(node("cc"))]
    with registry(tmp_path / "registry") as host:
        url = f"oci://{host}/m"
        push(host, "m", [index(*records)])
        push(host, "m", [b"dependency", b"x" * 5], f"aa-1.0-{hash_of('aa')}.spack")
        push(host, "m", [b"x" * 7], f"bb-git.a_b_1.0_x-{hash_of('bb')}.spack")
        result = run("fetch", url, "-o", tmp_path / "m", "--plain-http", "--sizes")

    assert result.exit_code == 0, result.output
    note = f"{url}: the size of 1 binary is unknown: has no tag cc-1.0-"
    assert note in result.stderr
    assert stored(tmp_path / "m", tmp_path) == {"aa": 5, "bb": 7, "cc": None}
