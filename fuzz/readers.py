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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
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
"""Processor seconds that an input may take."""
Reader = Callable[[Path, bytes], None]
"""A function that writes bytes into an empty folder, and reads them."""


class Target(NamedTuple):
    """Good bytes of a kind of input, and their reader."""

    name: str
    data: bytes
    reader: Reader


TOKENS = (
    # The syntax of JSON and YAML.
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
    # Texts that are invalid, or that programs take for the end of a line.
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    "\u2028".encode(),
    b"\xef\xbb\xbf",
    # Values.
    b"null",
    b"1e999",
    b"NaN",
    b"-1",
    b"2147483647",
    b"9" * 20,
    b"1" * 5000,
    b"true",
    b'""',
    # Anchors, aliases and tags of YAML, and deep lists.
    b"&a ",
    b"*a",
    b"!!int ",
    b"[" * 2000,
    # Headers of archives.
    b"GNU.sparse.map=1",
    b"GNU.sparse.size=-1",
    b"PK\x05\x06",
    b"PK\x01\x02",
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


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few changes."""
    result = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        start = chance.randrange(len(result) + 1)
        length = chance.choice((0, 1, 1, 2, 4, 8, 64, 512))
        end = start + length
        change = chance.choice(("token", "cut", "copy", "bit", "random"))
        if change == "token":
            result[start:end] = chance.choice(TOKENS)
        elif change == "cut":
            del result[start:end]
        elif change == "copy":
            source = chance.randrange(len(result) + 1)
            result[start:start] = result[source : source + length]
        elif change == "bit" and start < len(result):
            result[start] ^= 1 << chance.randrange(8)
        else:
            result[start:end] = chance.randbytes(length)
    return bytes(result)


def _file(name: str) -> Reader:
    """Return a reader that builds from a folder with a file of this name."""

    def read(folder: Path, data: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        _build(folder)

    return read


def _build(folder: Path) -> None:
    """Build from a folder, unless `check` finds faults in it."""
    faults, _ = check(folder)
    if not faults:
        build(folder, folder.parent / "x.db")


def _package_data(folder: Path, data: bytes) -> None:
    """Build from package data, and compare the database with it."""
    (folder / "a.json").write_bytes(data)
    _build(folder)
    database = folder.parent / "x.db"
    if database.exists():
        differences = verify(database, folder).differences
        assert not differences, differences


def _environment(name: str) -> Reader:
    """Return a reader of an environment whose file of this name has the bytes."""
    opened = name if name == "spack.lock" else "spack.yaml"

    def read(folder: Path, data: bytes) -> None:
        (folder / "spack.yaml").write_text(ENVIRONMENT, encoding="utf-8")
        (folder / "packages.yaml").write_text(INCLUDED, encoding="utf-8")
        (folder / name).write_bytes(data)
        read_environment_file(folder / opened)

    return read


def _blob(folder: Path, data: bytes) -> None:
    """Build from a mirror whose index has the bytes."""
    write_layout3(folder, {None: data})
    _build(folder)


def _state(folder: Path, data: bytes) -> None:
    """Read the record of an earlier fetch."""
    stack_folder = folder / "a" / "b"
    stack_folder.mkdir(parents=True)
    (stack_folder / ".fetched.json").write_bytes(data)
    list(stacks_of(folder, "https://x"))


def _fetched(read_text: Callable[[bytes], object]) -> Reader:
    """Return a reader of a text that `fetch` reads, which may find a fault in it."""

    def read(folder: Path, data: bytes) -> None:
        with suppress(IndexFault, FetchFault):
            read_text(data)

    return read


def _tar(files: Mapping[str, bytes], form: int) -> bytes:
    """Return a TAR archive in one of the forms of the module tarfile."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.pax_headers = {"comment": "x", "mtime": "1.5"}
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _json(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent).encode()


def targets() -> list[Target]:
    """Return good bytes of each kind of input, and their reader."""
    return list(_targets())


def _targets() -> Iterator[Target]:
    nodes = [node("a", edge("b", "link")), node("b")]
    records = [record(spec_node, ref_count=0) for spec_node in nodes]
    whole_index = index(*records)
    yield Target("page", page(), _file("a.md"))
    yield from _index_targets(whole_index)
    yield from _package_targets()
    yield from _environment_targets(nodes)
    yield from _spec_file_targets(nodes)
    yield from _archive_targets({"a.md": page(), "b/index.json": whole_index})
    yield from _fetch_targets()


def _index_targets(whole_index: bytes) -> Iterator[Target]:
    """Yield indexes of build caches and of an installation."""
    # The same records in several forms.
    indented = _json(json.loads(whole_index), indent=1)
    yield Target("index", whole_index, _file("index.json"))
    yield Target("index with indents", indented, _file("i.json"))
    yield Target("packed index", gzip.compress(whole_index), _file("index.json.gz"))
    yield Target("zstd index", zstandard.compress(whole_index), _file("index.zst"))
    yield Target("blob", whole_index, _blob)

    # A record of an installed binary, with everything that it can have.
    rich = node("a", external={"path": "/usr", "module": None}, patches=["a" * 64])
    target = {
        "name": "zen3",
        "vendor": "AMD",
        "features": [],
        "generation": 0,
        "parents": [],
    }
    rich["arch"] = {"platform": "linux", "platform_os": "debian12", "target": target}
    installed = record(rich, installed=True, path="/x")
    explicit = record(
        rich, installed=True, path="/x", installation_time=1.5, explicit=True
    )
    yield Target("rich index", index(installed), _file("index.json"))
    yield Target("installed tree", index(explicit), _file(".spack-db/index.json"))

    # An index of an old version of Spack.
    installs = {}
    for name in "ab":
        installs[hash_of(name)] = {"spec": old_node(name, "5"), "ref_count": 1}
    old_index = _json({"database": {"version": "5", "installs": installs}})
    yield Target("old index", old_index, _file("index.json"))


def _package_targets() -> Iterator[Target]:
    """Yield data of packages, as the packages site has it."""
    package = published(
        "a",
        "1",
        "main",
        versions_deprecated=[{"name": "0.9", "commit": "x", "tag": "y"}],
        variants=[{"name": "mpi", "default": True, "description": "Use MPI"}],
        dependencies=described("b", "c"),
        dependent_to=described("d"),
        conflicts=[{"name": "%gcc", "spec": "", "description": None}],
    )
    packages = [listed("a", "1"), listed("b", "2"), "c"]
    yield Target("published package", _json(package, indent=1), _package_data)
    yield Target("listed packages", _json(packages), _package_data)


def _environment_targets(nodes: list[dict[str, Any]]) -> Iterator[Target]:
    """Yield the files of an environment."""
    yield Target("environment", ENVIRONMENT.encode(), _environment("spack.yaml"))
    yield Target("included file", INCLUDED.encode(), _environment("packages.yaml"))
    yield Target("lockfile", lock_of(*nodes), _environment("spack.lock"))


def _spec_file_targets(nodes: list[dict[str, Any]]) -> Iterator[Target]:
    """Yield spec files of a build cache, in each format that Spack has written."""
    spec = {
        "spec": {"_meta": {"version": 5}, "nodes": nodes},
        "buildcache_layout_version": 2,
    }
    in_json = _json(spec)
    in_yaml = yaml.safe_dump(spec).encode()
    with_signature = signed(in_json.decode()).encode()
    yield Target("spec file", in_json, _file("build_cache/a.spec.json"))
    yield Target("signed", with_signature, _file("build_cache/a.spec.json.sig"))
    yield Target("yaml", in_yaml, _file("build_cache/a.spec.yaml"))


def _archive_targets(files: Mapping[str, bytes]) -> Iterator[Target]:
    """Yield archives of every kind with some files."""
    gnu = _tar(files, tarfile.GNU_FORMAT)
    pax = _tar(files, tarfile.PAX_FORMAT)
    ustar = _tar(files, tarfile.USTAR_FORMAT)
    yield Target("tar", gnu, _file("a.tar"))
    yield Target("pax", pax, _file("a.tar"))
    yield Target("tgz", gzip.compress(pax), _file("a.tar.gz"))
    yield Target("tar.zst", zstandard.compress(ustar), _file("a.tar.zst"))
    yield Target("zip", _zip(files), _file("a.zip"))


def _fetch_targets() -> Iterator[Target]:
    """Yield texts of mirrors and registries, and the record of an earlier fetch."""
    # Manifests of a mirror, in files and in memory.
    blob = {
        "contentLength": 1,
        "mediaType": "application/vnd.spack.db.v8+json",
        "compression": "none",
        "checksumAlgorithm": "sha256",
        "checksum": "0" * 64,
    }
    manifest = _json({"version": 3, "data": [blob]})
    folder = "v3/manifests"
    name_of_spec = f"a-1-{hash_of('a')}.spec.manifest.json"
    yield Target("manifest", manifest, _file(f"{folder}/index/index.manifest.json"))
    yield Target("spec manifest", manifest, _file(f"{folder}/spec/a/{name_of_spec}"))
    yield Target("read_manifest", manifest, _fetched(read_manifest))

    # The address of a mirror.
    yield Target("address", b'{"url": "https://host/a"}', _fetched(read_address))

    # An image of a registry.
    layer = {"digest": "sha256:" + "0" * 64, "size": 1}
    image = _json({"schemaVersion": 2, "layers": [layer]})
    yield Target("image", image, _fetched(partial(read_layers, "oci://h/a")))

    # The record of an earlier fetch.
    fetched_index = {"url": "u", "size": 1, "sha256": "0"}
    state = _json({"files": {"index.json": fetched_index}, "parts": {}})
    yield Target("state", state, _state)

    # The stacks of each release of a site.
    stacks = _json({"develop": [{"label": "e4s", "url": "https://h/m"}]})
    read_releases = partial(read_release_manifest, "https://h")
    yield Target("releases", stacks, _fetched(read_releases))


def inputs(seed: int) -> Iterator[tuple[str, bytes, Reader]]:
    """Yield names, changed bytes and their readers, without end."""
    chance = random.Random(seed)
    good_inputs = targets()
    while True:
        for target in good_inputs:
            yield target.name, changed(target.data, chance), target.reader


def one_input(data: bytes, reader: Reader) -> float:
    """Read bytes and return the seconds; raise unexpected exceptions."""
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.dict(os.environ, {TRACEBACK: "1"}),
    ):
        folder = Path(name, "in")
        folder.mkdir()
        started = time.process_time()
        try:
            reader(folder, data)
        except BuilderError as error:
            # The message can be printed.
            str(error).encode()
        return time.process_time() - started


def main() -> None:
    """Run for some seconds, and print each finding with its bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    input_count = 0
    finding_count = 0
    for name, data, reader in inputs(options.seed):
        if time.monotonic() > end:
            break
        input_count += 1
        try:
            spent = one_input(data, reader)
        except Exception:
            finding_count += 1
            traceback.print_exc()
            print(f"{name}: {data[:2000]!r}\n")
        else:
            if spent > SLOWEST:
                finding_count += 1
                print(f"{name}: {spent:.1f} s: {data[:2000]!r}\n")
    print(f"{input_count:,} inputs, {finding_count} findings")
    if finding_count:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
