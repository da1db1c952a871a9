"""build.counts: binaries that the mirror has lost are counted in their releases, not
elsewhere.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.binaries import binaries
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.history import history
from spack_cache_db.query.answers.retention import retention
from spack_cache_db.query.open.info import info
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.stored.package_data import newest_binary
from spack_cache_db.query.stored.totals import count_packages, facet_counts, read_totals
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.pages.package import load_package
from tests.indexes import hash_of, index, node, record, write_layout3

OLD = "site-2026-11-01"
LATER = "site-2026-11-02"
LOST = {hash_of("hdf5-new"), hash_of("zlib")}
KEPT = {hash_of("hdf5-old"), hash_of("cmake")}


def _mirror(folder: Path, **versions: str) -> Path:
    """Write a mirror with a binary for each name; the package is the part before the
    dash.
    """
    records = []
    for name, version in versions.items():
        package, _, _ = name.partition("_")
        dag_hash = hash_of(name.replace("_", "-"))
        records.append(record(node(package, version=version, hash=dag_hash)))
    write_layout3(folder / "site" / "e4s", {None: index(*records)})
    return folder


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of a mirror that lost a version of hdf5, and zlib."""
    folder = tmp_path_factory.mktemp("gone")
    file = folder / "x.db"
    first = _mirror(folder / "1", hdf5_old="1.10.0", hdf5_new="1.14.0", zlib="1.3")
    build(first, file, snapshot="2026-11-01")
    second = _mirror(folder / "2", hdf5_old="1.10.0", cmake="3.30")
    build([file, second], file, snapshot="2026-11-02")
    return file


def _hashes(database: Path, spec: str, **options: Any) -> set[str]:
    answer = find(database, spec, with_hashes=True, **options)
    return {dag_hash for found in answer for dag_hash in found.hashes or ()}


def test_answers_list_as_many_binaries_as_they_count(database: Path) -> None:
    """Without a release only binaries of the mirror; with a release, all that it
    listed.
    """
    for stack in (None, "e4s"):
        assert _hashes(database, "*", stack=stack) == KEPT
        assert sum(found.spec_count for found in find(database, "*", stack=stack)) == 2
        assert _hashes(database, "*", stack=stack, release=OLD) == LOST | {
            hash_of("hdf5-old")
        }
        assert _hashes(database, "*", stack=stack, release=LATER) == KEPT
    assert _hashes(database, f"/{hash_of('zlib')}") == set()
    assert _hashes(database, f"/{hash_of('zlib')}", release=OLD) == {hash_of("zlib")}
    assert {binary.hash for binary in binaries(database)} == KEPT
    assert {binary.hash for binary in binaries(database, release=OLD)} >= LOST


def test_counts_are_those_of_the_mirror(database: Path) -> None:
    """Of the database, its packages, configurations, stacks and facets."""
    with closing(sqlite3.connect(database)) as conn, opened(conn) as lookups:
        assert read_totals(conn)[:3] == (2, 2, 2)
        packages = (
            "SELECT name, spec_count, configuration_count, newest_version FROM packages"
        )
        assert set(conn.execute(packages)) == {
            ("cmake", 1, 1, "3.30"), ("hdf5", 1, 1, "1.10.0"), ("zlib", 0, 0, None)
        }  # fmt: skip
        assert conn.execute("SELECT spec_count FROM stacks").fetchall() == [(2,)]
        facets = facet_counts(conn)
        assert (facets["os"], facets["stack"]) == ({"debian12": 2}, {"e4s": 2})
        counted = {
            name: count.specs for name, count in count_packages(lookups, ()).items()
        }
        assert counted == {"cmake": 1, "hdf5": 1}
        assert newest_binary(conn, "zlib") is None
        assert (newest_binary(conn, "hdf5") or "").startswith("1.10.0")
        in_release = (
            "SELECT name, spec_count, package_count FROM releases ORDER BY name"
        )
        assert conn.execute(in_release).fetchall() == [
            ("site", 2, 2),
            (OLD, 3, 2),
            (LATER, 2, 2),
        ]
        assert conn.execute(
            "SELECT package, version FROM builds WHERE is_gone"
        ).fetchall() == [
            ("hdf5", "1.14.0"),
            ("zlib", "1.3"),
        ]
    assert (info(database)["specs"], info(database)["configurations"]) == (2, 2)


def test_a_history_has_what_the_mirror_lost(database: Path) -> None:
    """The counts and days of each release stay as they were."""
    rows = {
        row.release: (row.specs, row.added, row.removed)
        for row in _history(database, "zlib")
    }

    assert rows == {OLD: (1, 1, 0), LATER: (0, 0, 1), "site": (0, 0, 0)}
    with closing(sqlite3.connect(database)) as conn:
        seen = "SELECT first_seen, last_seen, release_count FROM packages WHERE name = 'zlib'"
        assert conn.execute(seen).fetchall() == [("2026-11-01", "2026-11-01", 1)]


def _history(database: Path, spec: str) -> Any:
    return history(database, spec).releases


def test_retention_prunes_what_the_mirror_has(database: Path, tmp_path: Path) -> None:
    """A binary that the mirror has lost takes no space."""
    assert set(retention(database, newest=1).keep) == KEPT
    environment = tmp_path / "spack.yaml"
    environment.write_text("spack:\n  specs: [cmake]\n")
    result = retention(database, environments=[environment])
    assert (result.keep, result.prune) == ((hash_of("cmake"),), (hash_of("hdf5-old"),))


def test_the_number_beside_a_release_is_what_the_page_then_lists(
    database: Path,
) -> None:
    """The filter of a package's page counts binaries that a release listed and the
    mirror lost.
    """
    with opened(database) as lookups:
        page = load_package(lookups, "hdf5", Filters())
        assert page is not None
        assert page.spec_count == 1
        (releases,) = (
            choice.values for choice in page.choices if choice.name == "release"
        )
        for name, count in releases:
            narrowed = load_package(lookups, "hdf5", Filters(release=name))
            assert narrowed is not None
            assert narrowed.configuration_count == count
        assert dict(releases)[OLD] == 2
        # The versions of its history include the one that the mirror has lost, which
        # has no binary and leads nowhere.
        counts = {}
        for row in page.versions.rows:
            counts[row.name] = sum(cell.count for cell in row.cells)
        assert counts == {"1.14.0": 0, "1.10.0": 1}
        assert [row.path is None for row in page.versions.rows] == [True, False]
