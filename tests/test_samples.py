"""The sample pages of every era, held against their database; pages beside an index of
the same.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.spack.versions import version_key
from tests.conftest import Build
from tests.indexes import REAL_FILE
from tests.pagetexts import SAMPLE_PAGES, SAMPLES, front_matter, page, spec
from tests.spackrecords import records, write_records


def test_pages_know_their_release_package_size_and_era(
    all_samples: sqlite3.Connection,
) -> None:
    """One page is of early 2025, one of 2024 by the order of its keys, and the others
    of today.
    """
    rows = all_samples.execute(
        "SELECT path, releases.name, packages.name, pages.spec_count, format FROM pages "
        "JOIN releases ON releases.id = release_id JOIN packages ON packages.id = package_id"
    ).fetchall()
    texts = {
        path.relative_to(SAMPLES).as_posix(): front_matter(path.read_bytes())
        for path in SAMPLE_PAGES
    }
    found = {row[0]: row[1:4] for row in rows}

    for name, text in texts.items():
        release = text["categories"][1]
        assert found[name] == (release, text["title"], len(text["spec_details"]))
    eras = {row[0]: row[4] for row in rows}
    assert {name for name in texts if eras[name] == "B"} == {
        "_cache/develop/py-pdm-backend/specs.md"
    }
    assert {eras[name] for name in texts} == {"A", "B"}
    assert eras["v0.18/axl/specs.md"] == "C"


def test_versions_sort_and_compilers_group(all_samples: sqlite3.Connection) -> None:
    """In every view in words, a version's position is Spack's, and a compiler has no
    version.
    """
    for view in (
        "builds",
        "build_listings",
        "host_builds",
        "release_counts",
        "release_changes",
    ):
        rows = all_samples.execute(
            "SELECT DISTINCT package, version, version_position, compiler, compiler_name "
            f"FROM {view}"
        ).fetchall()
        for package, version, position, compiler, name in rows:
            older = {row[1] for row in rows if row[0] == package and row[2] < position}
            assert all(version_key(each) < version_key(version) for each in older)
            assert name == compiler.partition("@")[0]
        assert rows or view == "release_changes"


def test_a_size_is_a_number_or_null(built: Build) -> None:
    """What is no whole number of bytes is NULL in `size_bytes`, and as it was in
    `size`.
    """
    sizes = {"0": 0, "82": 82, "-": None, "": None, "1.5 MB": None, "9" * 30: None}
    specs = [spec(number, size=text) for number, text in enumerate(sizes)]
    connection = built(a=page("a", specs=specs))

    assert (
        dict(connection.execute("SELECT size, size_bytes FROM build_listings")) == sizes
    )


@pytest.mark.slow
def test_pages_and_an_index_of_the_same_hashes_do_not_contradict(
    tmp_path: Path,
) -> None:
    """A real index, and what Spack prints of its specs: each spec has one
    configuration.
    """
    pages = write_records(tmp_path / "pages")
    build(pages, tmp_path / "pages.db")
    report = build([pages, REAL_FILE], tmp_path / "x.db", release="cache", stack="e4s")

    assert (report.indexes, report.problems, report.records) == (1, 0, len(records()))

    found = []
    for name in ("pages", "x"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as conn:
            words = "hash, package, version, compiler, os, platform, target, variants"
            found.append(set(conn.execute(f"SELECT {words} FROM builds")))
    assert found[0] == found[1]
