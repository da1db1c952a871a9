"""`python -m fuzz.readers --seconds 600`: no bytes make a reader fail in a way that
nobody foresaw.

Pages, indexes, installed trees, spec files, mirrors, package data, archives,
environments and what `fetch` reads are changed at random, with the safety net off:
anything but a fault in words is a finding, and so is more than `SLOWEST` seconds.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
import zstandard

from spack_cache_db.assembly.builds import build, check
from spack_cache_db.assembly.verify import verify
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.errors import TRACEBACK, BuilderError
from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.registry import read_layers
from spack_cache_db.sources.fetch.release_manifests import read_release_manifest
from spack_cache_db.sources.fetch.stack_folder import stacks_of
from spack_cache_db.sources.indexes.addresses import read_address
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.manifests import read_manifest
from tests.indexes import (
    edge,
    hash_of,
    index,
    lock_of,
    node,
    old_node,
    record,
    signed,
    write_layout3,
)
from tests.package_data import described, listed, published
from tests.pagetexts import page

SLOWEST = 10.0

TOKENS = (
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"-",
        b"---\n",
    ),
    *(
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0000",
        "\u2028".encode(),
        b"\xef\xbb\xbf",
        b"null",
        b"1e999",
    ),
    *(
        b"NaN",
        b"-1",
        b"2147483647",
        b"9" * 20,
        b"1" * 5000,
        b"true",
        b'""',
        b"&a ",
        b"*a",
        b"!!int ",
    ),
    *(
        b"[" * 2000,
        b"GNU.sparse.map=1",
        b"GNU.sparse.size=-1",
        b"PK\x05\x06",
        b"PK\x01\x02",
    ),
)
"""What readers stumble over."""

ENVIRONMENT = """\
spack:
  include: [{path: packages.yaml, when: 'platform == "linux"'}]
  definitions:
  - compilers: ["%gcc@13", "%llvm"]
  - tools: &tools [cmake, hdf5 +mpi]
    when: arch.satisfies("target=x86_64:") and re.search("x", env.get("USER", ""))
  specs:
  - matrix: [[$tools], [$compilers]]
    exclude: ["cmake %llvm"]
  - group: apps
    needs: [tools]
    specs: *tools
    override: {packages: {all: {require: ["+shared"]}}}
  toolchains: {own: [{spec: "%c=gcc", when: "%c"}]}
"""
INCLUDED = """\
packages:
  all: {require: [{one_of: ["%gcc", "%llvm"], when: "@1:"}], prefer: ["+mpi"]}
  mpi: {require: [openmpi]}
  cuda: {buildable: false, externals: [{spec: cuda@12, prefix: /usr}]}
"""


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few changes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, length = (
            rng.randrange(len(found) + 1),
            rng.choice((0, 1, 1, 2, 4, 8, 64, 512)),
        )
        kind = rng.randrange(5)
        if kind == 0:
            found[at : at + length] = rng.choice(TOKENS)
        elif kind == 1:
            del found[at : at + length]
        elif kind == 2:
            other = rng.randrange(len(found) + 1)
            found[at:at] = found[other : other + length]
        elif kind == 3 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        else:
            found[at : at + length] = rng.randbytes(length)
    return bytes(found)


def _read(name: str) -> Callable[[Path, bytes], None]:
    """Return what reads bytes as a file of this name."""

    def read(folder: Path, data: bytes) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        _build(folder)

    return read


def _build(folder: Path) -> None:
    if not check(folder)[0]:
        build(folder, folder.parent / "x.db")


def _package_data(folder: Path, data: bytes) -> None:
    """Build from package data, and compare the database with it."""
    (folder / "a.json").write_bytes(data)
    _build(folder)
    if (folder.parent / "x.db").exists():
        found = verify(folder.parent / "x.db", folder)
        assert not found.differences, found.differences


def _environment(name: str) -> Callable[[Path, bytes], None]:
    """Return a reader of an environment whose file of this name has the bytes."""

    def read(folder: Path, data: bytes) -> None:
        files = {"spack.yaml": ENVIRONMENT.encode(), "packages.yaml": INCLUDED.encode()}
        for file_name, text in (files | {name: data}).items():
            (folder / file_name).write_bytes(text)
        read_environment_file(folder / (name if name == "spack.lock" else "spack.yaml"))

    return read


def _blob(folder: Path, data: bytes) -> None:
    write_layout3(folder, {None: data})
    _build(folder)


def _state(folder: Path, data: bytes) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / ".fetched.json").write_bytes(data)
    [*stacks_of(folder, "https://x")]


def _tar(files: dict[str, bytes], form: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.pax_headers = {"comment": "x", "mtime": "1.5"}
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def targets() -> dict[str, tuple[bytes, Callable[[Path, bytes], None]]]:
    """Return good bytes of each kind, and their reader."""
    nodes = [node("a", edge("b", "link")), node("b")]
    complete = index(*(record(spec_node, ref_count=0) for spec_node in nodes))
    target = {
        "name": "zen3",
        "vendor": "AMD",
        "features": [],
        "generation": 0,
        "parents": [],
    }
    rich = node("a", external={"path": "/usr", "module": None}, patches=["a" * 64])
    rich["arch"] = {"platform": "linux", "platform_os": "debian12", "target": target}
    old = {
        hash_of(name): {"spec": old_node(name, "5"), "ref_count": 1} for name in "ab"
    }
    files = {"a.md": page(), "b/index.json": complete}
    spec = {
        "spec": {"_meta": {"version": 5}, "nodes": nodes},
        "buildcache_layout_version": 2,
    }
    blob = {
        "contentLength": 1,
        "mediaType": "application/vnd.spack.db.v8+json",
        "compression": "none",
        "checksumAlgorithm": "sha256",
        "checksum": "0" * 64,
    }
    manifest = json.dumps({"version": 3, "data": [blob]})
    state = {
        "files": {"index.json": {"url": "u", "size": 1, "sha256": "0"}},
        "parts": {},
    }
    stacks = {"develop": [{"label": "e4s", "url": "https://h/m"}]}
    return {
        "page": (page(), _read("a.md")),
        "index": (complete, _read("index.json")),
        "index with indents": (
            json.dumps(json.loads(complete), indent=1).encode(),
            _read("i.json"),
        ),
        "rich index": (
            index(record(rich, installed=True, path="/x")),
            _read("index.json"),
        ),
        "old index": (
            json.dumps({"database": {"version": "5", "installs": old}}).encode(),
            _read("index.json"),
        ),
        "published package": (json.dumps(_package(), indent=1).encode(), _package_data),
        "listed packages": (
            json.dumps([listed("a", "1"), listed("b", "2"), "c"]).encode(),
            _package_data,
        ),
        "installed tree": (
            index(
                record(
                    rich,
                    installed=True,
                    path="/x",
                    installation_time=1.5,
                    explicit=True,
                )
            ),
            _read(".spack-db/index.json"),
        ),
        "environment": (ENVIRONMENT.encode(), _environment("spack.yaml")),
        "included file": (INCLUDED.encode(), _environment("packages.yaml")),
        "lockfile": (lock_of(*nodes), _environment("spack.lock")),
        "packed index": (gzip.compress(complete), _read("index.json.gz")),
        "zstd index": (zstandard.compress(complete), _read("index.zst")),
        "blob": (complete, _blob),
        "spec file": (json.dumps(spec).encode(), _read("build_cache/a.spec.json")),
        "signed": (
            signed(json.dumps(spec)).encode(),
            _read("build_cache/a.spec.json.sig"),
        ),
        "yaml": (yaml.safe_dump(spec).encode(), _read("build_cache/a.spec.yaml")),
        "manifest": (
            manifest.encode(),
            _read("v3/manifests/index/index.manifest.json"),
        ),
        "spec manifest": (
            manifest.encode(),
            _read(f"v3/manifests/spec/a/a-1-{hash_of('a')}.spec.manifest.json"),
        ),
        "tar": (_tar(files, tarfile.GNU_FORMAT), _read("a.tar")),
        "pax": (_tar(files, tarfile.PAX_FORMAT), _read("a.tar")),
        "tgz": (gzip.compress(_tar(files, tarfile.PAX_FORMAT)), _read("a.tar.gz")),
        "tar.zst": (
            zstandard.compress(_tar(files, tarfile.USTAR_FORMAT)),
            _read("a.tar.zst"),
        ),
        "zip": (_zip(files), _read("a.zip")),
        "address": (
            b'{"url": "https://host/a"}',
            lambda _, data: _ignored(read_address, data),
        ),
        "read_manifest": (
            manifest.encode(),
            lambda _, data: _ignored(read_manifest, data),
        ),
        "image": (
            json.dumps(
                {
                    "schemaVersion": 2,
                    "layers": [{"digest": f"sha256:{'0' * 64}", "size": 1}],
                }
            ).encode(),
            lambda _, data: _ignored(lambda text: read_layers("oci://h/a", text), data),
        ),
        "state": (json.dumps(state).encode(), _state),
        "releases": (
            json.dumps(stacks).encode(),
            lambda _, data: _ignored(
                lambda text: read_release_manifest("https://h", text), data
            ),
        ),
    }


def _package() -> dict[str, Any]:
    """Return data of a package, as the packages site has it."""
    return published(
        "a",
        "1",
        "main",
        versions_deprecated=[{"name": "0.9", "commit": "x", "tag": "y"}],
        variants=[{"name": "mpi", "default": True, "description": "Use MPI"}],
        dependencies=described("b", "c"),
        dependent_to=described("d"),
        conflicts=[{"name": "%gcc", "spec": "", "description": None}],
    )


def _ignored(reader: Callable[[bytes], object], data: bytes) -> None:
    try:
        reader(data)
    except (IndexFault, FetchFault):
        return


def inputs(seed: int) -> Iterator[tuple[str, bytes, Callable[[Path, bytes], None]]]:
    """Yield names, changed bytes and their readers, without end."""
    rng, kinds = random.Random(seed), targets()
    while True:
        for name, (data, reader) in kinds.items():
            yield name, changed(data, rng), reader


def one_input(data: bytes, reader: Callable[[Path, bytes], None]) -> float:
    """Read bytes and return the seconds; raise unexpected exceptions."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {TRACEBACK: "1"}),
    ):
        (Path(folder) / "in").mkdir()
        started = time.process_time()
        try:
            reader(Path(folder) / "in", data)
        except BuilderError as error:
            str(error).encode()
        return time.process_time() - started


def main() -> None:
    """Run for some seconds, and print each finding with its bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    end, count, found = time.monotonic() + options.seconds, 0, 0
    for name, data, reader in inputs(options.seed):
        if time.monotonic() > end:
            break
        count += 1
        try:
            spent = one_input(data, reader)
        except Exception:
            found += 1
            traceback.print_exc()
            print(f"{name}: {data[:2000]!r}\n")
        else:
            if spent > SLOWEST:
                found += 1
                print(f"{name}: {spent:.1f} s: {data[:2000]!r}\n")
    print(f"{count:,} inputs, {found} findings")
    raise SystemExit(found > 0)


if __name__ == "__main__":
    main()
