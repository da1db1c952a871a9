"""Pages and indexes in one file: where they tell of the same hashes, they meet in one spec."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.spack.normal_forms import parse_variant, split_compiler
from tests.indexes import FLAGS, edge, index, node, record
from tests.pagetexts import SAMPLES, front_matter, spec_hash

Records = dict[str, dict[str, Any]]


def records_of(data: bytes, database: str) -> tuple[str, Records]:
    """Return the release of a page, and records of an index that tell of the same binaries."""
    said = front_matter(data)
    package, release = said["title"], said["categories"][1]
    found: Records = {}
    for detail in said["spec_details"]:
        compiler, version = split_compiler(detail["compiler"].replace("@=", "@").split("/")[0])
        more: dict[str, Any] = {}
        if version is not None and database == "8":
            found[f"{compiler}@{version}"] = record(
                node(compiler, hash=hash_of_compiler(compiler, version), version=version),
                is_binary=False,
            )
            needs = edge(compiler, "build", virtuals=("c",))
            more["dependencies"] = [needs | {"hash": hash_of_compiler(compiler, version)}]
        elif version is not None:
            more["compiler"] = {"name": compiler, "version": version}
        arch = {"platform": detail["platform"], "platform_os": detail["os"]}
        mine = node(
            package,
            hash=detail["hash"],
            version=detail["versions"][0],
            arch={**arch, "target": detail["target"]},
            parameters=FLAGS | {"cflags": ["-O2"]} | dict(map(parameter, detail["variants"])),
            **more,
        )
        if database != "8":
            del mine["annotations"]
        found[detail["hash"]] = record(mine)
    return release, found


def hash_of_compiler(name: str, version: str) -> str:
    """Return a hash for a compiler."""
    return spec_hash(int(sha256(f"{name}@{version}".encode()).hexdigest()[:12], 16))


def parameter(text: str) -> tuple[str, Any]:
    """Return a variant as indexes say it: bools, texts, and lists; whole sums of patches."""
    variant = parse_variant(text)
    if variant.kind == "bool":
        return variant.name, variant.values == ("True",)
    if variant.name == "patches":
        return "patches", [each.ljust(64, "0") for each in variant.values]
    return variant.name, [*variant.values] if "," in text or ":=" in text else variant.values[0]


def indexes_of_the_samples(folder: Path, database: str) -> Path:
    """Write one index for each release of the sample pages."""
    releases: dict[str, Records] = {}
    for path in sorted(SAMPLES.iterdir()):
        release, found = records_of(path.read_bytes(), database)
        releases.setdefault(release, {}).update(found)
    for release, found in releases.items():
        (folder / release / "hep").mkdir(parents=True)
        data = index(*found.values(), version=database)
        (folder / release / "hep" / "index.json").write_bytes(data)
    return folder


@pytest.fixture(params=["7", "8"])
def indexes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Indexes that list what the sample pages list, in a stack of their own."""
    yield indexes_of_the_samples(tmp_path / "indexes", request.param)


def rows(file: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.slow
def test_pages_and_an_index_of_the_same_hashes_do_not_contradict(
    indexes: Path, tmp_path: Path
) -> None:
    """413 specs in 24 configurations, as of the pages alone, each with a record of the index."""
    report = build([SAMPLES, indexes], tmp_path / "x.db", jobs=2)

    assert (report.pages, report.indexes, report.problems) == (5, 2, 0)
    assert (report.listings, rows(tmp_path / "x.db", "SELECT count(*) FROM builds")) == (
        425,
        [(413,)],
    )
    of_binaries = "SELECT count(*) FROM configurations WHERE spec_count > 0"
    assert rows(tmp_path / "x.db", of_binaries) == [(24,)]
    assert rows(tmp_path / "x.db", "SELECT count(DISTINCT stacks) FROM build_listings") > [(1,)]
    listed = "SELECT count(*) FROM records JOIN specs ON specs.id = spec WHERE release_count > 0"
    assert rows(tmp_path / "x.db", listed) == [(425,)]
