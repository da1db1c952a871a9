"""build.rows: what is stored of each thing, and that nothing is taken for another."""

from __future__ import annotations

from typing import Any

import pytest

from spack_cache_db import schema
from spack_cache_db.build.counts import count
from spack_cache_db.build.ids import number
from spack_cache_db.build.known_packages import package_catalogue, package_rows
from spack_cache_db.build.merge import Merge
from spack_cache_db.build.problems import problems
from spack_cache_db.build.rows import counted_rows, plain_rows
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.readers import read_files
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash


def test_each_table_has_rows_of_its_columns() -> None:
    """Every table of the schema, once, in the order of the columns."""
    merge = Merge()
    merge.add(
        read_files(
            RawFile(name, name, data)
            for name, data in {
                "a": page("zlib", "v0.22", [spec(1, tarball="x", variants=["a b"])]),
                "b": page("zlib", "v0.20", [spec(1, target="zen3")]),
            }.items()
        )
    )
    numbered = number(merge.merged())
    tables = [*plain_rows(numbered, [], ["refused"]), *counted_rows(numbered, count(numbered))]
    of_a_build = {"origin", "recipes"}
    tables += [
        (name, rows)
        for name, rows in package_rows(package_catalogue([]), {}, {})
        if name != "dependency_types"
    ]
    names = {each.name for each in schema.TABLES} - of_a_build
    assert sorted(name for name, _ in tables) == sorted(names)
    of_indexes = {
        "mirrors",
        "target_descriptions",
        "nodes",
        "records",
        "installs",
        "old_hashes",
        "splices",
    }
    of_indexes |= {name for name, _ in tables if name.startswith("dependenc")}
    of_indexes |= {name for name, _ in package_rows(package_catalogue([]), {}, {})}
    for name, rows in tables:
        widths = {len(row) for row in rows}
        assert widths == (set() if name in of_indexes else {len(schema.table(name).columns)}), name


@pytest.mark.parametrize(
    "specs",
    [
        [spec(1, variants=["a b"]), spec(2, variants=["a", "b"])],
        [spec(1, variants=[]), spec(2, variants=[""])],
        [spec(1, stacks=["a", "b"]), spec(2, stacks=['a","b'])],
        [spec(1, versions=["01"]), spec(2, versions=["1"])],
        [spec(1, compiler="gcc"), spec(2, compiler="none")],
        [spec(1, tarball="x"), spec(2, tarball="y"), spec(3)],
        [
            spec(1, tarball="https://x"),
            spec(
                2,
                tarball="https://x/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
                f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(2)}.spack",
            ),
        ],
    ],
)
def test_what_reads_alike_stays_apart(specs: list[dict[str, Any]], built: Build) -> None:
    """Two things whose texts look the same are two rows."""
    rows = built(a=page(specs=specs)).execute(
        "SELECT hash, version, compiler, tarball, stacks, variants FROM build_listings"
    )
    found = {row[0]: row[1:4] for row in rows}
    assert found == {
        each["hash"]: (each["versions"][0], each["compiler"], each.get("tarball")) for each in specs
    }


@pytest.mark.parametrize(("printed", "stored"), [("-", None), ("", ""), ("1 kB", "1 kB")])
def test_a_size_that_is_not_known_is_null(printed: str, stored: str | None, built: Build) -> None:
    """Pages print a dash, and the view gives it back."""
    connection = built(a=page(specs=[spec(1, size=printed)]))
    assert connection.execute("SELECT size FROM listings").fetchall() == [(stored,)]
    assert connection.execute("SELECT size FROM build_listings").fetchall() == [(printed,)]


def test_root_is_kept_and_not_shown(built: Build) -> None:
    """It is the index of everything, and no stack."""
    connection = built(a=page(specs=[spec(1, stacks=["root", "e4s"]), spec(2, stacks=["root"])]))
    assert connection.execute("SELECT stacks, shown FROM stack_sets ORDER BY id").fetchall() == [
        ('["e4s","root"]', '["e4s"]'),
        ('["root"]', "[]"),
    ]


def test_a_refused_page_is_a_problem_without_a_page() -> None:
    """After those of pages that are there."""
    merge = Merge()
    merge.add(read_files([RawFile("a", "a", page(meta={"num_specs": 2}))]))
    merged = merge.merged()
    numbered = number(merged)
    tables = dict(plain_rows(numbered, problems(merged, numbered), ["in/b: is bad"]))
    assert [(row[1], *row[3:5]) for row in tables["problems"]] == [
        (1, "num_specs", "meta declares num_specs 2, the page lists 1"),
        (None, "refused", "in/b: is bad"),
    ]
