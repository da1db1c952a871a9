"""Whatever stands where a file is expected: it is named, nobody waits, and all else is
read.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build, check
from tests.indexes import edge, hash_of, index, node, record, write_blob, write_layout3
from tests.pagetexts import page, spec
from tests.processes import completed

INDEX = index(record(node("a", edge("b", "link"))), record(node("b")))
SPEC = {"spec": {"_meta": {"version": 5}, "nodes": [node("c")]}}


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(b'{"spec":')
        stream.truncate(2**33)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "sparse": _sparse,
    "loop": lambda path: path.symlink_to(path.name),
}


def whole_input(folder: Path) -> dict[str, Path]:
    """Write one of each kind of source; return the files that are opened, by what they
    are.
    """
    # Pages, and archives of them.
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "a.md").write_bytes(page())
    (folder / "pages" / "b.md").write_bytes(page("other", specs=[spec(2)]))
    for name in ("x.tar", "x.tar.gz", "x.tar.zst", "x.zip"):
        (folder / "pages" / name).write_bytes(b"")

    # A mirror of layout 3, with an index and a binary.
    new = write_layout3(folder / "v3" / "new", {None: INDEX})
    blob = write_blob(new, b"a binary", "application/vnd.spack.install.v2.tar+gzip")
    manifests = new / "v3" / "manifests"
    binary = manifests / "spec" / "a" / f"a-1.0-{hash_of('a')}.spec.manifest.json"
    binary.parent.mkdir(parents=True)
    binary.write_text(json.dumps({"version": 3, "data": [blob]}))
    (new / "mirror.json").write_text('{"url": "https://host/new"}')
    (blob_path,) = (
        path
        for path in (new / "blobs").rglob("*")
        if path.is_file() and path.stat().st_size > 99
    )

    # Mirrors of layout 2, with an index and without, and an installation.
    old = folder / "v2" / "old" / "build_cache"
    old.mkdir(parents=True)
    (old / "index.json").write_bytes(INDEX)
    (old / "index.json.hash").write_text(hashlib.sha256(INDEX).hexdigest())
    bare = folder / "bare" / "bare" / "build_cache"
    bare.mkdir(parents=True)
    (bare / "c.spec.json").write_text(json.dumps(SPEC))
    tree = folder / "tree" / "opt" / ".spack-db"
    tree.mkdir(parents=True)
    (tree / "index.json").write_bytes(INDEX)

    pages = folder / "pages"
    return {
        "page": pages / "b.md",
        "x.tar": pages / "x.tar",
        "x.tar.gz": pages / "x.tar.gz",
        "x.tar.zst": pages / "x.tar.zst",
        "x.zip": pages / "x.zip",
        "index manifest": manifests / "index" / "index.manifest.json",
        "blob": blob_path,
        "binary's manifest": binary,
        "address": new / "mirror.json",
        "plain index": old / "index.json",
        "sum": old / "index.json.hash",
        "spec file": bare / "c.spec.json",
        "installed": tree / "index.json",
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_in_every_place(kind: str, tmp_path: Path) -> None:
    """The place is named in one line, and what lies elsewhere is built without it."""
    names = whole_input(tmp_path / "model")
    for name in names:
        shutil.rmtree(tmp_path / "in", ignore_errors=True)
        path = whole_input(tmp_path / "in")[name]
        for each in names:
            if each.startswith("x."):
                (tmp_path / "in" / "pages" / each).unlink()
        path.unlink(missing_ok=True)
        KINDS[kind](path)
        if kind == "folder" and name in (
            "page",
            "x.tar",
            "x.tar.gz",
            "x.tar.zst",
            "x.zip",
        ):
            continue  # A folder may have any name.

        faults, _ = check(tmp_path / "in")
        told = [str(fault) for fault in faults]

        assert told, (name, kind)
        assert all(each.isprintable() and len(each) < 700 for each in told)
        assert any(path.name in each or path.parent.name in each for each in told), told
        report = build(tmp_path / "in", tmp_path / "x.db", keep_going=True, force=True)
        assert report.pages >= 1
        assert (
            report.indexes
            >= (3 if name != "page" and not name.startswith("x.") else 4) - 1
        )


@pytest.mark.slow
def test_little_memory_ends_in_a_line(tmp_path: Path) -> None:
    """What needs more memory than there is is the fault of its file."""
    with (tmp_path / "index.json").open("wb") as index:
        index.write(b'{"database":')
        for _ in range(900):
            index.write(b" " * 10**6)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20,) * 2); "
        "from spack_cache_db.cli.main import main; sys.argv[0] = 'x'; main()"
    )

    done = completed(
        [sys.executable, "-c", code, "check", "--jobs", "1", str(tmp_path)]
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "index.json: not enough memory" in done.stdout + done.stderr
