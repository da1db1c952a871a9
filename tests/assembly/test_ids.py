"""Which rows a build writes, in which order, and which contradictions it records."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.builds import build
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash, write


def test_a_refused_page_leaves_no_trace(tmp_path: Path) -> None:
    """No package, version, stack or spec of it is in the file."""
    wrong = spec(2, versions=["9.9"], stacks=["gone"], target="gone", os="gone")
    folder = write(tmp_path / "pages", a=page(), b=page(specs=[wrong]))
    build(folder, tmp_path / "x.db", keep_going=True)
    build(folder / "a.md", tmp_path / "y.db")
    databases = (sqlite3.connect(tmp_path / name) for name in ("x.db", "y.db"))

    with closing(next(databases)) as one, closing(next(databases)) as other:
        for table in ("specs", "versions", "stacks", "targets", "operating_systems"):
            rows = f"SELECT * FROM {table}"
            assert one.execute(rows).fetchall() == other.execute(rows).fetchall()


def test_releases_are_numbered_in_their_order(built: Build) -> None:
    """Branch, releases from new to old, snapshots from new to old."""
    names = [
        "develop",
        "v0.23.1",
        "v0.9",
        "develop-2025-02-02",
        "develop-2025-01-01",
        "pr-1",
    ]
    pages = {name: page(release=name, specs=[spec(1)]) for name in sorted(names)}
    rows = built(**pages).execute(
        "SELECT name, position, kind FROM releases ORDER BY position"
    )
    kinds = ["branch", "release", "release", "snapshot", "snapshot", "other"]

    assert rows.fetchall() == [
        tuple(each) for each in zip(names, range(1, 7), kinds, strict=True)
    ]


def test_versions_are_numbered_in_spacks_order(built: Build) -> None:
    """1.10 is newer than 1.9, and develop is newer than any number; ids are by
    preference.
    """
    ordered = [
        "1.0",
        "1.9",
        "1.10",
        "1.10.1",
        "2023.08.25",
        "2024.1-rc1",
        "main",
        "develop-1.14",
    ]
    specs = [
        spec(number, versions=[name]) for number, name in enumerate(sorted(ordered))
    ]
    connection = built(a=page(specs=specs))
    rows = connection.execute("SELECT name FROM versions ORDER BY position")

    assert [name for (name,) in rows] == ordered

    by_id = [
        name for (name,) in connection.execute("SELECT name FROM versions ORDER BY id")
    ]
    assert by_id == ["main", "develop-1.14", "2024.1-rc1", *ordered[:5]]
    newest = """
SELECT packages.newest_version, versions.name FROM packages, release_packages
JOIN versions ON versions.id = release_packages.newest_version_id
"""
    assert connection.execute(newest).fetchone() == ("2023.08.25", "2023.08.25")


def test_specs_are_numbered_by_configuration_then_hash(built: Build) -> None:
    """Specs of one configuration are neighbours in the file."""
    specs = [
        spec(9, target="zen2"),
        spec(3, target="zen3"),
        spec(5, target="zen2"),
        spec(4),
    ]
    rows = (
        built(a=page(specs=specs))
        .execute("SELECT hash FROM specs ORDER BY id")
        .fetchall()
    )

    assert [dag_hash for (dag_hash,) in rows] == [
        spec_hash(number) for number in (4, 5, 9, 3)
    ]


def test_pages_are_numbered_by_release_then_package(built: Build) -> None:
    """In the order of releases."""
    connection = built(
        a=page("zstd", "v0.20"),
        b=page("zlib", "v0.20", [spec(2)]),
        c=page("zstd", "develop"),
    )
    rows = connection.execute("SELECT path FROM pages ORDER BY id").fetchall()

    assert [path for (path,) in rows] == ["c.md", "b.md", "a.md"]


ALIKE: tuple[dict[str, Any], ...] = (
    {},
    {"variants": ["a b"]},
    {"variants": ["a", "b"]},
    {"variants": []},
    {"variants": [""]},
    {"stacks": ["a", "b"]},
    {"stacks": ['a","b']},
    {"versions": ["01"]},
    {"versions": ["1"]},
    {"compiler": "gcc"},
    {"compiler": "none"},
    {"tarball": "x"},
    {"tarball": "y"},
    {"tarball": "https://x"},
    {
        "tarball": "https://x/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
        f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(14)}.spack"
    },
)
"""Parts of specs whose texts look the same if they are joined."""


def test_values_that_read_alike_stay_apart(built: Build) -> None:
    """Each spec has its own values in the database."""
    specs = [spec(number, **parts) for number, parts in enumerate(ALIKE)]
    database = built(a=page(specs=specs))
    rows = database.execute(
        "SELECT hash, version, compiler, tarball FROM build_listings"
    )

    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(specs)
    for listed_spec in specs:
        (version,) = listed_spec["versions"]
        expected = (version, listed_spec["compiler"], listed_spec.get("tarball"))
        assert found[listed_spec["hash"]] == expected
    sets = "SELECT count(DISTINCT variant_set_id) FROM configurations"
    assert database.execute(sets).fetchone() == (5,)


ROWS = "SELECT source, code, message, hash, value FROM problems ORDER BY id"


def test_problems_of_a_page_come_before_those_with_other_pages(built: Build) -> None:
    """Each has its page, hash and value; sources that add up have none."""
    assert built(a=page(), b=page(release="v0.20")).execute(ROWS).fetchall() == []
    one_on_zen2 = spec(1, target="zen2")
    two_on_zen2 = spec(2, target="zen2")
    wrong_number = page(meta={"num_specs": 7}, specs=[spec(1), spec(2)])
    wrong_target = page(
        release="v0.20", specs=[one_on_zen2], meta={"targets": ["zen3"]}
    )
    other_targets = page(release="v0.9", specs=[one_on_zen2, two_on_zen2])

    database = built(c=other_targets, a=wrong_number, b=wrong_target)

    other = "has another configuration here than in a.md: target zen2, not x86_64_v3"
    targets = (
        "meta.targets declares zen3, which no spec has "
        "and does not declare zen2, which specs have"
    )
    one = spec_hash(1)
    two = spec_hash(2)
    rows = database.execute(ROWS).fetchall()
    assert [row[:4] for row in rows] == [
        ("a.md", "num_specs", "meta declares num_specs 7, the page lists 2", None),
        ("b.md", "targets", targets, None),
        ("b.md", "two_configurations", f"the spec {one} {other}", one),
        ("c.md", "two_configurations", f"the spec {one} {other}", one),
        ("c.md", "two_configurations", f"the spec {two} {other}", two),
    ]
    values = [json.loads(row[4]) for row in rows]
    assert values[:2] == [7, ["zen3"]]
    assert {configuration["target"] for configuration in values[2:]} == {"zen2"}
