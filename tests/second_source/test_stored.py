"""What documents of a second kind say is stored, folded, or kept as a problem."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db.build import build, check
from spack_cache_db.records import Configuration
from spack_cache_db.sources.columns import tarball_suffix
from tests.madeup import configuration_of, document, known, of_target
from tests.pagetexts import page, spec, spec_hash


def connected(folder: Path, *files: bytes) -> sqlite3.Connection:
    """Build files, called 0, 1, …, and connect to the database."""
    (folder / "in").mkdir()
    for number, data in enumerate(files):
        (folder / "in" / str(number)).write_bytes(data)
    build([str(folder / "in")], folder / "x.db")
    return sqlite3.connect(folder / "x.db")


def test_a_spec_that_no_release_lists_is_known(tmp_path: Path) -> None:
    """It has a row in `specs`, with its configuration and an empty set of stacks."""
    connection = connected(tmp_path, document("develop", "a", [known(1, "gcc", listed=False)]))
    assert connection.execute(
        "SELECT hash, packages.name, stack_sets.stacks, specs.release_count, specs.first_seen "
        "FROM specs JOIN configurations ON configurations.id = specs.configuration "
        "JOIN packages ON packages.id = configurations.package "
        "JOIN stack_sets ON stack_sets.id = specs.stacks"
    ).fetchall() == [(spec_hash(1), "gcc", "[]", 0, None)]
    assert connection.execute("SELECT count(*) FROM listings").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM pages").fetchone() == (0,)
    connection.close()


def test_size_and_tarball_are_those_of_whoever_knows_them(tmp_path: Path) -> None:
    """The first document by its path of those that know."""
    zlib = configuration_of(known(1, "zlib"))
    connection = connected(
        tmp_path,
        document("develop", "a", [known(1, "zlib")]),
        document("develop", "b", [known(1, "zlib", tarball=("https://m", False))]),
        document("develop", "c", [known(1, "zlib", size="7 kB")]),
    )
    url = f"https://m{tarball_suffix(zlib)}{spec_hash(1)}.spack"
    assert connection.execute("SELECT stacks, size, tarball FROM build_listings").fetchall() == [
        ('["a","b","c"]', "7 kB", url)
    ]
    assert connection.execute("SELECT count(*) FROM problems").fetchone() == (0,)
    connection.close()


def as_values(configuration: Configuration) -> Any:
    """Return a configuration as JSON gives it back."""
    return json.loads(json.dumps(configuration._asdict()))


def test_what_contradicts_is_kept_as_a_problem(tmp_path: Path) -> None:
    """The first document is right; what the other says instead is in `declared`."""
    one = of_target(1, "zlib", "zen3", size="1 kB", tarball=("https://m", False))
    two = of_target(1, "zlib", "zen2", size="2 kB", tarball=("https://m", False))
    three = of_target(1, "zlib", "zen4", listed=False)
    connection = connected(
        tmp_path, *(document("develop", "a", [each]) for each in (one, two, three))
    )
    assert connection.execute("SELECT target, size FROM build_listings").fetchall() == [
        ("zen3", "1 kB")
    ]
    said = f"the spec {spec_hash(1)} has another"
    url = tarball_suffix(configuration_of(two))
    rows = connection.execute("SELECT page, code, message, declared FROM problems").fetchall()
    assert [(*row[:3], json.loads(row[3])) for row in rows] == [
        (None, "two_configurations",
         f"1: {said} configuration here than in 0: target zen2, not zen3",
         as_values(configuration_of(two))),
        (None, "two_sizes", f"1: {said} size here than in 0: 2 kB, not 1 kB", "2 kB"),
        (None, "two_tarballs",
         f"1: {said} tarball here than in 0: https://m{url}{spec_hash(1)}.spack, not "
         f"https://m{tarball_suffix(configuration_of(one))}{spec_hash(1)}.spack",
         f"https://m{url}{spec_hash(1)}.spack"),
        (None, "two_configurations",
         f"2: {said} configuration here than in 0: target zen4, not zen3",
         as_values(configuration_of(three))),
    ]  # fmt: skip
    connection.close()


def test_a_tarball_is_never_put_together_from_two_documents(tmp_path: Path) -> None:
    """Where they disagree about the configuration, its layout would make another URL of it."""
    connection = connected(
        tmp_path,
        document("develop", "a", [of_target(1, "zlib", "zen3")]),
        document("develop", "b", [of_target(1, "zlib", "zen2", tarball=("https://m", False))]),
    )
    assert connection.execute("SELECT tarball FROM build_listings").fetchall() == [(None,)]
    codes = {code for (code,) in connection.execute("SELECT code FROM problems")}
    assert codes == {"two_configurations", "two_tarballs"}
    connection.close()


def test_releases_that_disagree_are_told_without_a_page(tmp_path: Path) -> None:
    """As between pages, the foremost release is right, and the other keeps its word."""
    connection = connected(
        tmp_path,
        document("v0.20", "a", [of_target(1, "zlib", "zen2")]),
        document("develop", "a", [of_target(1, "zlib", "zen3")]),
    )
    assert connection.execute("SELECT target FROM builds").fetchall() == [("zen3",)]
    assert connection.execute(
        "SELECT release, target FROM build_listings ORDER BY release"
    ).fetchall() == [("develop", "zen3"), ("v0.20", "zen2")]
    said = f"0: the spec {spec_hash(1)} has another configuration here than in a foremost release"
    assert connection.execute("SELECT page, message FROM problems").fetchall() == [(None, said)]
    connection.close()


def test_what_a_page_says_comes_before_what_others_say(tmp_path: Path) -> None:
    """So that the page can be read back, and keeps its row; the other's word is a problem."""
    connection = connected(
        tmp_path,
        document("develop", "a", [of_target(1, "zlib", "zen3")]),
        page("zlib", "develop", [spec(1, target="zen2", stacks=["p"])]),
    )
    assert connection.execute("SELECT target, stacks FROM build_listings").fetchall() == [
        ("zen2", '["a","p"]')
    ]
    assert connection.execute("SELECT path, spec_count FROM pages").fetchall() == [("1", 1)]
    assert connection.execute("SELECT page, code FROM problems").fetchall() == [
        (None, "two_configurations")
    ]
    connection.close()


def test_check_names_the_file_of_a_problem(tmp_path: Path) -> None:
    """As the user would type it."""
    (tmp_path / "a").write_bytes(document("develop", "a", [of_target(1, "zlib", "zen3")]))
    (tmp_path / "b").write_bytes(document("v0.20", "a", [of_target(1, "zlib", "zen2")]))
    faults, problems = check([str(tmp_path)])
    assert faults == ()
    assert [each.path for each in problems] == [f"{tmp_path}/b"]


def test_a_file_that_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    """Its fault is told like that of a page."""
    (tmp_path / "a").write_bytes(b'{"made up"')
    (tmp_path / "b").write_bytes(document("develop", "a", [known(1, "zlib")]))
    faults, _ = check([str(tmp_path)])
    assert [str(each) for each in faults] == [f"{tmp_path}/a: is broken"]
