"""build.documents: a facility's nights become snapshots, and the branch is the mirror
of today.
"""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import ArgumentError
from tests.commands import run
from tests.indexes import hash_of, index, node, record, write_layout3
from tests.package_data import published
from tests.test_databases_as_sources import SOME, files, same, write_files
from tests.trees import installed, write_tree


def night(folder: Path, *names: str, release: str = "site") -> Path:
    """Write the mirror of a release as it is at night; return the folder of all
    mirrors.
    """
    write_layout3(
        folder / release / "root",
        {None: index(*(record(node(name)) for name in names))},
    )
    return folder


def listed(file: Path, *names: str) -> dict[str, set[tuple[Any, ...]]]:
    """Return the binaries of each release, or of these."""
    found: dict[str, set[tuple[Any, ...]]] = {name: set() for name in names}
    with closing(sqlite3.connect(file)) as db:
        for release, *row in db.execute(
            "SELECT release, hash, stacks, size FROM build_listings"
        ):
            if not names or release in names:
                found.setdefault(release, set()).add(tuple(row))
    return found


def test_nights_become_a_history(tmp_path: Path) -> None:
    """A binary that the mirror lost is gone from the branch, and stays in the
    snapshots.
    """
    mirrors = tmp_path / "mirrors"
    file = tmp_path / "x.db"
    nights = {
        "2026-11-23": "ab",
        "2026-11-24": "ab",
        "2026-11-25": "bc",
        "2026-11-26": "c",
    }
    command = ("build", file, mirrors, "-o", file, "--snapshot")

    # Without an input nothing is built.
    assert run(*command, "2026-11-22").exit_code == 1
    assert not file.exists()

    # Four nights; the copy of the second one is not kept.
    for day, names in nights.items():
        night(mirrors, *names)
        result = run(*command, day, "--keep-snapshots", 2)
        assert result.exit_code == 0, result.output
        mirrors.rename(tmp_path / day)
    assert "x.db: snapshots: site-2026-11-26\n" in result.stdout
    assert {name: len(rows) for name, rows in listed(file).items()} == {
        "site": 1, "site-2026-11-23": 2, "site-2026-11-25": 2, "site-2026-11-26": 1
    }  # fmt: skip

    # What the mirror lost has its days, and is not current.
    with closing(sqlite3.connect(file)) as db:
        seen = "SELECT first_seen, last_seen, is_current FROM builds WHERE hash = ?"
        assert db.execute(seen, [hash_of("b")]).fetchall() == [
            ("2026-11-23", "2026-11-25", 0)
        ]
        kind = "SELECT kind, position FROM releases WHERE name = 'site'"
        assert db.execute(kind).fetchall() == [("branch", 1)]
    assert "b: 1 configuration" in run("diff", "site-2026-11-25", "site", file).stdout

    # The database and its last night give it again.
    options = ("--snapshot", "2026-11-26", "--keep-snapshots", 2)
    verified = run("verify", file, file, tmp_path / "2026-11-26", *options)
    assert verified.exit_code == 0


def test_a_mirror_that_lost_most_is_named(tmp_path: Path) -> None:
    """The mirror may have been incomplete: the note has the command that takes the
    snapshot out.
    """
    mirrors = tmp_path / "mirrors"
    file = tmp_path / "x.db"
    notes = {}
    for day, names in {
        "2026-11-23": "abcd",
        "2026-11-24": "ab",
        "2026-11-25": "",
    }.items():
        shutil.rmtree(mirrors, ignore_errors=True)
        night(mirrors, *names)
        notes[day] = run("build", file, mirrors, "-o", file, "--snapshot", day).stderr

    assert (notes["2026-11-23"], notes["2026-11-24"]) == ("", "")
    snapshot = "site-2026-11-25"
    assert (
        f"{snapshot} has 0 of the 2 binaries of site-2026-11-24" in notes["2026-11-25"]
    )
    command = notes["2026-11-25"].partition("snapshot: spack-cache-db ")[2]
    assert run(*command.split()).exit_code == 0
    assert snapshot not in listed(file)


def test_nothing_new_is_nothing_to_do(tmp_path: Path) -> None:
    """The next night ends at once, and the file is not touched; any news is built."""
    mirrors = night(tmp_path / "mirrors", "a")
    file = tmp_path / "x.db"
    command = ("build", file, mirrors, "-o", file, "--snapshot")
    run(*command, "2026-11-25")
    before = file.stat().st_ino, file.stat().st_mtime_ns
    result = run(*command, "2026-11-26")

    assert result.stdout.startswith(
        f"{file}: unchanged, because its input has nothing new ("
    )
    assert (
        run(*command, "2026-11-26", "--json").output.count('"is_unchanged": true') == 1
    )

    (tmp_path / "x.inspect.json").unlink()
    assert "unchanged" in run(*command, "2026-11-26").stdout
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == before

    night(mirrors, "a", release="other")
    result = run(*command, "2026-11-26")
    assert f"{file}: snapshots: other-2026-11-26\n" in result.stdout

    night(mirrors, "b")
    assert (
        "snapshots: other-2026-11-26, site-2026-11-26\n"
        in run(*command, "2026-11-26").stdout
    )

    address = mirrors / "site" / "root" / "mirror.json"
    address.write_text('{"url": "https://example.org", "exclude_binary": ["b"]}')
    assert "1 binary left out" in run(*command, "2026-11-26").stderr
    assert listed(file, "site", "site-2026-11-26") == {
        "site": set(),
        "site-2026-11-26": set(),
    }


def test_installations_and_package_data_are_replaced(tmp_path: Path) -> None:
    """So do installations and package data; only mirrors become snapshots."""
    file = tmp_path / "x.db"
    today = tmp_path / "today"

    for version in ("1.0", "2.0"):
        shutil.rmtree(today, ignore_errors=True)
        write_tree(today / "opt", [installed(node("tool", hash=hash_of(version)))])
        data = published("tool", version)
        write_files(today, {"tool.json": str(data).replace("'", '"').encode()})
        result = run("build", file, today, "-o", file, "--snapshot", "2026-11-25")
        assert result.exit_code == 0
        assert "no snapshot, because " in result.stdout
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT hash FROM installations").fetchall() == [
            (hash_of("2.0"),)
        ]
        assert db.execute("SELECT version FROM known_versions").fetchall() == [("2.0",)]


def gone(file: Path) -> dict[str, int]:
    """Return whether each binary is gone, by its hash."""
    with closing(sqlite3.connect(file)) as db:
        return dict(db.execute("SELECT hash, is_gone FROM builds"))


def copies(file: Path) -> dict[str, int]:
    """Return whether each release is a copy, by its name."""
    with closing(sqlite3.connect(file)) as db:
        return dict(db.execute("SELECT name, is_copy FROM releases"))


def test_only_copies_of_a_mirror_make_a_binary_gone(tmp_path: Path) -> None:
    """A dated release of its own is a mirror; the marks survive a build from the
    database.
    """
    file = tmp_path / "x.db"
    mirrors = tmp_path / "mirrors"
    night(mirrors, "old", release="public-2026-11-01")
    night(mirrors, "a", "b")

    assert run("build", mirrors, "-o", file, "--snapshot", "2026-11-22").exit_code == 0

    night(mirrors, "b")
    assert (
        run("build", file, mirrors, "-o", file, "--snapshot", "2026-11-23").exit_code
        == 0
    )
    assert gone(file) == {hash_of("old"): 0, hash_of("a"): 1, hash_of("b"): 0}
    assert copies(file) == {
        "site": 0, "site-2026-11-22": 1, "site-2026-11-23": 1, "public-2026-11-01": 0
    }  # fmt: skip
    again = tmp_path / "again.db"
    assert run("build", file, "-o", again).exit_code == 0
    assert same(file, again)


def test_a_release_with_a_source_of_its_own_is_no_copy(tmp_path: Path) -> None:
    """An index that is given for the day of a snapshot is a mirror again."""
    file = tmp_path / "x.db"
    mirrors = night(tmp_path / "mirrors", "a")
    run("build", mirrors, "-o", file, "--snapshot", "2026-11-22")
    own = night(tmp_path / "own", "a", release="site-2026-11-22")
    (own / "site-2026-11-22" / "root").rename(own / "site-2026-11-22" / "e4s")
    result = run("build", file, own, "-o", file)

    assert result.exit_code == 0, result.output
    assert copies(file) == {"site": 0, "site-2026-11-22": 0}


@pytest.mark.slow
@SOME
@given(old=files(), new=files(), keep=st.sampled_from([None, 1]))
def test_a_night_agrees_with_its_sources(
    old: dict[str, bytes], new: dict[str, bytes], keep: int | None
) -> None:
    """A release of today is what today's sources alone give; a repeated night changes
    no byte.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "x.db"
        yesterday = write_files(folder / "old", old)
        today = write_files(folder / "new", new)
        build(yesterday, file, keep_going=True, snapshot="2026-11-24")
        build(today, folder / "today.db", keep_going=True)

        # Two nights with the same sources: the second one has nothing to do.
        for day in ("2026-11-25", "2026-11-26"):
            options: dict[str, Any] = {"snapshot": day, "keep_snapshots": keep}
            report = build([file, today], file, keep_going=True, **options)
            (folder / "x.inspect.json").unlink()
        assert report.is_unchanged

        # The database is a source that gives itself.
        build(file, folder / "y.db")
        assert same(file, folder / "y.db")

        # Branches, and their copies of today, are what today's sources have.
        expected = listed(folder / "today.db")
        assert listed(file, *expected) == expected
        for snapshot in report.snapshots.added:
            release = snapshot.removesuffix("-2026-11-25")
            (copied,) = listed(file, f"{release}-2026-11-25").values()
            assert copied == expected[release]


def test_a_release_is_dropped_by_its_name(tmp_path: Path) -> None:
    """A snapshot, and a branch that no mirror has any more; the build names them."""
    mirrors = tmp_path / "mirrors"
    file = tmp_path / "x.db"
    for day, names in (("2026-11-23", "a"), ("2026-11-24", "b"), ("2026-11-25", "c")):
        build([file, night(mirrors, names)], file, snapshot=day)
    result = run(
        "build", file, "-o", file, "--drop", "site-2026-11-24", "--drop", "site"
    )

    assert result.exit_code == 0, result.output
    assert (
        f"{file}: 2 releases left out by --drop: site-2026-11-24, site\n"
        in result.stdout
    )
    assert listed(file).keys() == {"site-2026-11-23", "site-2026-11-25"}

    result = run("build", file, mirrors, "-o", file, "--drop", "site-2026-11-24")
    assert result.exit_code == 2
    expected = "expected a release of a database of the input: site-2026-11-25, site-2026-11-23"
    assert result.stderr == f"Error: drop is 'site-2026-11-24', {expected}\n"

    build([file, mirrors], file, snapshot="2026-11-26")
    result = run("build", file, mirrors, "-o", file, "--drop", "site")
    assert "drop is 'site', which a source beside the databases has" in result.stderr

    copy = tmp_path / "copy.db"
    build(file, copy, drop=["site-2026-11-25"])
    assert run("verify", copy, file, "--drop", "site-2026-11-25").exit_code == 0


def test_snapshots_that_are_thinned_are_named(tmp_path: Path) -> None:
    """Of a build for people, and in its report."""
    mirrors = tmp_path / "mirrors"
    file = tmp_path / "x.db"
    for day, names in (("2026-11-24", "a"), ("2026-11-25", "b"), ("2026-11-26", "c")):
        night(mirrors, names)
        options = ("--snapshot", day, "--keep-snapshots", 1)
        result = run("build", file, mirrors, "-o", file, *options)
        before = listed(file)

    assert (
        f"{file}: 1 release left out by --keep-snapshots: site-2026-11-25\n"
        in result.stdout
    )
    assert before.keys() == {"site", "site-2026-11-24", "site-2026-11-26"}

    result = run("build", mirrors, "-o", tmp_path / "y.db", "--keep-snapshots", 1)
    assert result.exit_code == 2
    assert "keep_snapshots is 1, expected a day" in result.stderr


def test_a_day_is_not_in_the_future_and_not_before_the_newest(tmp_path: Path) -> None:
    """A wrong clock changes no history; `--force` allows an earlier day."""
    mirrors = night(tmp_path / "mirrors", "a")
    file = tmp_path / "x.db"
    command = ("build", file, mirrors, "-o", file, "--snapshot")
    result = run(*command, "2999-01-01")

    assert result.exit_code == 2
    assert "expected a day that is not after today" in result.stderr
    for day in ("2026-11-24", "2026-11-25"):
        assert run(*command, day).exit_code == 0

    night(mirrors, "b")
    assert run(*command, "2026-11-25").exit_code == 0

    night(mirrors, "c")
    before = file.read_bytes()
    for day in ("2026-11-23", "2026-11-24"):
        result = run(*command, day)
        assert result.exit_code == 2
        assert (
            f"snapshot is {day}, but site already has a snapshot of 2026-11-25"
            in result.stderr
        )
    assert file.read_bytes() == before

    # Another branch has no snapshot yet.
    other = night(tmp_path / "others", "d", release="other")
    assert (
        run("build", file, other, "-o", file, "--snapshot", "2026-11-20").exit_code == 0
    )
    assert run(*command, "2026-11-23", "--force").exit_code == 0
    assert {"site-2026-11-23", "other-2026-11-20"} < listed(file).keys()


def test_a_mirror_of_its_own_is_not_replaced_by_a_copy(tmp_path: Path) -> None:
    """A dated mirror of another source has the name of a copy, and other binaries."""
    dated = night(tmp_path / "dated", "a", release="site-2026-11-25")
    file = tmp_path / "x.db"
    build(dated, file)
    build([file, night(tmp_path / "mirrors", "b")], file, snapshot="2026-11-25")

    releases = listed(file)
    assert releases.keys() == {"site", "site-2026-11-25"}
    assert {row[0] for row in releases["site"]} == {hash_of("b")}
    assert {row[0] for row in releases["site-2026-11-25"]} == {hash_of("a")}


@pytest.mark.parametrize(
    "day", ["", "today", "2026-11-31", "20261125", "2026-W48-3", "26-11-25"]
)
def test_a_day_that_is_none_is_refused(day: str, tmp_path: Path) -> None:
    """In one sentence, before anything is read."""
    result = run("build", tmp_path, "-o", tmp_path / "x.db", "--snapshot", day)
    message = f"Error: snapshot is {day!r}, expected a day such as 2026-11-25\n"

    assert (result.exit_code, result.stderr) == (2, message)
    with pytest.raises(
        ArgumentError, match="keep_snapshots is 0, expected a whole number from 1"
    ):
        build(tmp_path, tmp_path / "x.db", snapshot="2026-11-25", keep_snapshots=0)
