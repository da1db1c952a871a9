"""Binaries that the mirror has lost are shown apart, with the day of their last
listing.
"""

import random
from pathlib import Path

import pytest

from spack_cache_db.query.answers.find import find
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.names.scope import named_conditions
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.stored.gone import Gone, gone_of_package, has_gone
from spack_cache_db.query.stored.graph import read_nodes
from tests.commands import run
from tests.histories import FIRST, binary, build_history, lost_history
from tests.indexes import hash_of

DAY = "2026-11-01"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of a mirror that lost four binaries."""
    return lost_history(tmp_path_factory.mktemp("history"))


@pytest.mark.parametrize(
    ("arguments", "status", "notes"),
    [
        (["hdf5"], 0, [f"2 more that the mirror has lost, last listed {DAY}"]),
        (["hdf5", "--release", "site"], 0, []),
        (
            ["hdf5", "--release", FIRST],
            0,
            [f"the mirror has lost 2 of these binaries, last listed {DAY}"],
        ),
        (["netcdf"], 0, []),
        (["solo"], 1, [f"solo: its mirror has lost all 2 binaries, last listed {DAY}"]),
        (["solo@2.1", "--json"], 1, ["solo: its mirror has lost all 2 binaries"]),
        (
            ["hdf5@1.14"],
            1,
            [f"such a binary is gone from its mirror, last listed {DAY}"],
        ),
        (
            ["hdf5@1.14 ^zlib"],
            1,
            [f"such a binary is gone from its mirror, last listed {DAY}"],
        ),
        (
            [f"/{hash_of('hdf5_new')[:9]}"],
            1,
            [f"such a binary is gone from its mirror, last listed {DAY}"],
        ),
    ],
)
def test_find_names_what_the_mirror_has_lost(
    history: Path, arguments: list[str], status: int, notes: list[str]
) -> None:
    """Beside other binaries as a note; alone as the answer, with exit status 1."""
    result = run("find", *arguments, history)

    assert result.exit_code == status
    for note in notes:
        assert note in result.stderr
    if not notes:
        assert "lost" not in result.stderr


def test_no_commands_for_a_lost_binary(history: Path) -> None:
    """Only the release of a copy lists it, and its row and its JSON say that it is
    gone.
    """
    result = run("find", "solo", "--install", "--release", FIRST, history)

    assert result.exit_code == 1
    assert "spack install" not in result.stdout
    assert "gone from its mirror" in result.stdout
    rows = {
        (row.version, hash_row.hash, hash_row.is_gone)
        for row in find(history, "hdf5", release=FIRST, with_hashes=True)
        for hash_row in row.specs or ()
    }
    assert rows == {
        ("1.14.6", hash_of("hdf5_new"), True),
        ("1.12.2", hash_of("hdf5_old"), False),
        ("1.12.2", hash_of("hdf5_other"), True),
    }
    # A row of several binaries is gone if all of them are.
    by_version = {
        row.version: row.is_gone for row in find(history, "hdf5", release=FIRST)
    }
    assert by_version == {"1.14.6": True, "1.12.2": False}
    assert not any(row.is_gone for row in find(history, "*"))


def test_lost_binaries_come_last_in_their_row(history: Path) -> None:
    """The first of several binaries is one that can be installed."""
    (row,) = find(history, "hdf5@1.12", release=FIRST, with_hashes=True)
    assert row.hashes == (hash_of("hdf5_old"), hash_of("hdf5_other"))


def test_the_kind_of_a_lost_binary_is_gone(history: Path) -> None:
    """In names of packages, and in lists of dependencies."""
    with opened(history) as lookups:
        name = known_name(lookups, "solo")
        assert (name.kind, name.spec_count, name.gone) == ("gone", 0, Gone(2, DAY))
        assert known_name(lookups, "hdf5").kind == "binary"
        ids = [key for (key,) in lookups.conn.execute("SELECT id FROM specs")]
        kinds = {
            node.hash: node.kind for node in read_nodes(lookups.conn, ids).values()
        }

    lost = {hash_of(name) for name in ("hdf5_new", "hdf5_other", "solo", "solo_two")}
    assert {dag_hash for dag_hash, kind in kinds.items() if kind == "gone"} == lost

    dependents = run("deps", hash_of("app"), history)
    assert " gone" in dependents.stdout


def test_a_database_without_copies_has_no_lost_binary(real_index_file: Path) -> None:
    """Whatever its mirrors list."""
    with opened(real_index_file) as lookups:
        assert not has_gone(lookups)
        assert gone_among(lookups, ()) is None
        assert gone_of_package(lookups.conn, "zlib") is None


@pytest.mark.parametrize("seed", range(3))
def test_lost_binaries_are_those_of_earlier_days(tmp_path: Path, seed: int) -> None:
    """For random days: found and gone together are all that any day listed."""
    chance = random.Random(seed)
    names = [
        f"{package}_{number}" for package in ("aa", "bb", "cc") for number in range(3)
    ]
    days = {}
    listed: dict[str, set[str]] = {}
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        today = [name for name in names if chance.random() < 0.5] or names[:1]
        days[day] = [binary(name, chance.choice(["1.0", "2.0"])) for name in today]
        listed[day] = {hash_of(name) for name in today}
    file = build_history(tmp_path, days)

    for package in ("aa", "bb", "cc", None):
        of_package = {hash_of(name) for name in names if package in (None, name[:2])}
        now = listed["2026-11-03"] & of_package
        before = (listed["2026-11-01"] | listed["2026-11-02"]) & of_package
        lost = before - now

        # What is there is found, if there is or was anything.
        if package is None or lost or now:
            found = find(file, package or "*", with_hashes=True)
            hashes = {dag_hash for row in found for dag_hash in row.hashes or ()}
            assert hashes == now

        # What was there is counted, with the last day that listed some of it.
        with opened(file) as lookups:
            conditions: Conditions = ()
            if package is not None:
                conditions = named_conditions(lookups, package=package)
            gone = gone_among(lookups, conditions)
        if lost:
            last_day = max(day for day, hashes in listed.items() if hashes & lost)
            assert gone == Gone(len(lost), last_day)
        else:
            assert gone is None
