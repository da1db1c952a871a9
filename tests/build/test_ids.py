"""build.ids: ids depend on what the input says, and on nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build import build
from spack_cache_db.build.ids import configuration_ids, configuration_rows, none_first
from spack_cache_db.records import Configuration
from tests.configurations import configuration
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash, write


def test_a_refused_page_leaves_no_trace(tmp_path: Path) -> None:
    """No package, version, stack or spec of it is in the file."""
    pages = {
        "a": page(specs=[spec(1)]),
        "b": page(specs=[spec(2, versions=["9.9"], stacks=["gone"], target="gone", os="gone")]),
    }
    output = tmp_path / "x.db"
    build([str(write(tmp_path / "pages", **pages))], output, keep_going=True)
    connection = sqlite3.connect(output)
    assert connection.execute("SELECT hash, version FROM builds").fetchall() == [
        (spec_hash(1), "1.0")
    ]
    for table in ("versions", "stacks", "targets", "operating_systems"):
        names = {name for (name,) in connection.execute(f"SELECT name FROM {table}")}
        assert not names & {"9.9", "gone"}
    connection.close()


def test_releases_are_numbered_in_their_order(built: Build) -> None:
    """Branch, releases from new to old, snapshots from new to old."""
    names = ["develop", "v0.23.1", "v0.9", "develop-2025-02-02", "develop-2025-01-01", "pr-1"]
    pages = {name: page(release=name, specs=[spec(1)]) for name in sorted(names)}
    rows = built(**pages).execute("SELECT name, position, kind FROM releases ORDER BY position")
    kinds = ["branch", "release", "release", "snapshot", "snapshot", "other"]
    assert rows.fetchall() == [(*each,) for each in zip(names, range(1, 7), kinds, strict=True)]


def test_versions_are_numbered_in_spacks_order(built: Build) -> None:
    """1.10 is newer than 1.9, and develop is newer than any number; ids are by preference."""
    ordered = ["1.0", "1.9", "1.10", "1.10.1", "2023.08.25", "2024.1-rc1", "main", "develop-1.14"]
    specs = [spec(number, versions=[name]) for number, name in enumerate(sorted(ordered))]
    connection = built(a=page(specs=specs))
    rows = connection.execute("SELECT name FROM versions ORDER BY position")
    assert [name for (name,) in rows] == ordered
    by_id = [name for (name,) in connection.execute("SELECT name FROM versions ORDER BY id")]
    assert by_id == ["main", "develop-1.14", "2024.1-rc1", *ordered[:5]]
    newest = """
SELECT packages.newest_version, versions.name FROM packages, release_packages
JOIN versions ON versions.id = release_packages.newest_version
"""
    assert connection.execute(newest).fetchone() == ("2023.08.25", "2023.08.25")


def test_a_hash_in_another_release_is_one_spec(built: Build) -> None:
    """Its stacks are the union, its dates those of the snapshots."""
    connection = built(
        a=page(release="develop", specs=[spec(1, stacks=["a"])]),
        b=page(release="develop-2025-01-01", specs=[spec(1, stacks=["b", "root"])]),
        c=page(release="develop-2025-02-02", specs=[spec(1, stacks=["b"])]),
    )
    assert connection.execute(
        "SELECT stacks, releases, first_seen, last_seen FROM builds"
    ).fetchall() == [('["a","b"]', 3, "2025-01-01", "2025-02-02")]


def test_specs_are_numbered_by_configuration_then_hash(built: Build) -> None:
    """What is asked for together lies together in the file."""
    specs = [spec(9, target="zen2"), spec(3, target="zen3"), spec(5, target="zen2"), spec(4)]
    rows = built(a=page(specs=specs)).execute("SELECT hash FROM specs ORDER BY id").fetchall()
    assert [dag_hash for (dag_hash,) in rows] == [spec_hash(number) for number in (4, 5, 9, 3)]


def test_pages_are_numbered_by_release_then_package(built: Build) -> None:
    """The foremost release first."""
    connection = built(
        a=page("zstd", "v0.20"), b=page("zlib", "v0.20", [spec(2)]), c=page("zstd", "develop")
    )
    rows = connection.execute("SELECT path FROM pages ORDER BY id").fetchall()
    assert [path for (path,) in rows] == ["c.md", "b.md", "a.md"]


def test_where_releases_disagree_the_foremost_is_right(built: Build) -> None:
    """A hash has one configuration in every release."""
    connection = built(
        a=page(release="develop-2025-01-01", specs=[spec(1, target="zen2")]),
        b=page(release="v0.20", specs=[spec(1, target="zen3")]),
        c=page(release="v0.19", specs=[spec(1, target="zen3")]),
    )
    assert connection.execute("SELECT target FROM build_listings").fetchall() == [("zen3",)] * 3
    assert connection.execute("SELECT name FROM targets").fetchall() == [("zen3",)]


def named(package: str, version: str, compiler: str, *variants: str) -> Configuration:
    """Return a configuration on a usual machine."""
    return configuration(package=package, version=version, compiler=compiler, variants=variants)


@pytest.mark.parametrize("field", Configuration._fields)
def test_every_field_of_a_configuration_is_in_its_row(field: str) -> None:
    """The row is also the place in the order: two that differ in one field have two."""
    one = named("zlib", "1.3", "gcc@13", "+x")
    changes: dict[str, Any] = {field: ("~x",) if field == "variants" else "other"}
    other = one._replace(**changes)
    ids = configuration_ids([one, other], [])
    assert len({*configuration_rows(ids, [one, other])}) == 2


@given(
    st.permutations(["a", "b", "c"]),
    st.permutations(
        [
            named("a", "1.10", "gcc@9"),
            named("a", "1.9", "gcc@13"),
            named("b", "1.9", "clang@3", "+x", "~y"),
            named("b", "1.9", "none", "~y"),
        ]
    ),
)
def test_the_order_of_what_is_named_does_not_matter(
    packages: list[str], configurations: list[Configuration]
) -> None:
    """Versions and compilers come in Spack's order, others by text."""
    found = configuration_ids(configurations, packages)
    expected = {
        "packages": {"a": 1, "b": 2, "c": 3},
        "versions": {("a", "1.9"): 1, ("a", "1.10"): 2, ("b", "1.9"): 3},
        "compilers": {"clang@3": 1, "gcc@9": 2, "gcc@13": 3, "none": 4},
        "operating_systems": {"ubuntu24.04": 1},
        "platforms": {"linux": 1},
        "targets": {"zen3": 1},
        "variants": {"+x": 1, "~y": 2},
        "variant_sets": {(): 1, ("+x", "~y"): 2, ("~y",): 3},
    }
    assert found | expected == found
    [row] = configuration_rows(found, [named("b", "1.9", "none", "~y")])
    assert (row[:6], row[-1]) == ((2, 3, 4, 1, 1, 1), 3)


@given(st.permutations([None, "", "a", "b"]))
def test_what_need_not_be_known_comes_first(names: list[str | None]) -> None:
    """In a record as well as by itself."""
    expected = [None, "", "a", "b"]
    assert sorted(names, key=none_first) == expected
    records = [(name, "x") for name in names]
    assert [name for name, _ in sorted(records, key=none_first)] == expected
