"""Which nodes of a lockfile have a binary, and which have another; a cover as text."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from typing import Any

import pytest

from spack_cache_db.environments.formats import read_environment
from spack_cache_db.query.answers import scope_of
from spack_cache_db.query.coverage import cover_environment
from spack_cache_db.query.coverage_output import (
    Cover,
    CoveredNode,
    cover_csv,
    cover_json,
    cover_markdown,
    cover_table,
)
from spack_cache_db.query.lookups import read_lookups
from tests.conftest import Build
from tests.indexes import edge, hash_of, node
from tests.pagetexts import page, spec, spec_hash

WORDS: dict[str, Any] = {
    "compiler": "gcc@13.2.0",
    "os": "debian12",
    "variants": ["build_system=generic"],
}
ARCH = {"platform": "linux", "platform_os": "debian12", "target": "x86_64_v3"}


@pytest.fixture
def conn(built: Build) -> sqlite3.Connection:
    """A connection to a file of hdf5, its own hash and others, in two releases."""
    same = [spec(number, **WORDS) for number in range(1, 8)]
    own = spec(
        0,
        **WORDS,
    ) | {"hash": hash_of("hdf5"), "stacks": ["ml", "root"]}
    return built(
        a=page("hdf5", "develop", same),
        b=page("hdf5", "v1.0", [own, same[0]]),
        c=page("zlib", "develop", [spec(20, **WORDS | {"compiler": "none"})]),
    )


def lock() -> bytes:
    """Return a lockfile: hdf5 needs zlib and gcc."""
    nodes = [
        node("hdf5", edge("zlib", "link"), edge("gcc", "build", virtuals=("c",))),
        node("zlib"),
        node("gcc", version="13.2.0"),
        node("glibc", external={"path": "/usr"}),
    ]
    return json.dumps(
        {
            "_meta": {"file-type": "spack-lockfile", "lockfile-version": 6},
            "roots": [{"hash": hash_of("hdf5"), "spec": "hdf5"}],
            "concrete_specs": {each["hash"]: each for each in nodes},
        }
    ).encode()


def covered(conn: sqlite3.Connection, **names: Any) -> Cover:
    """Return the answers for the lockfile."""
    lookups = read_lookups(conn)
    return cover_environment(
        conn, lookups, read_environment(lock(), "-"), scope_of(lookups, **names)
    )


def test_each_node_has_its_answer(conn: sqlite3.Connection) -> None:
    """By its hash a node has a binary; by its configuration others; or nothing is there."""
    found = covered(conn)
    hdf5, gcc, zlib = (each for each in found.specs if isinstance(each, CoveredNode))

    assert (hdf5.spec, hdf5.status, hdf5.is_root) == ("hdf5@1.0", "binary", True)
    assert (gcc.spec, gcc.status, gcc.hash) == ("gcc@13.2.0", "missing", hash_of("gcc"))
    assert (zlib.status, zlib.others, zlib.other_count) == ("rebuilt", (spec_hash(20),), 1)
    assert (found.binary, found.total, found.is_lock) == (1, 3, True)
    assert found.notes == ("one external needs no binary, and is left out",)


@pytest.mark.parametrize(
    ("names", "status", "others"),
    [
        ({"release": "v1.0"}, "binary", 0),
        ({"release": "develop"}, "rebuilt", 7),
        ({"stack": "ml"}, "binary", 0),
        ({"stack": "e4s"}, "rebuilt", 7),
        ({"release": "v1.0", "stack": "e4s"}, "rebuilt", 1),
        ({"release": "develop", "stack": "ml"}, "missing", 0),
    ],
)
def test_a_release_and_a_stack_must_have_it(
    conn: sqlite3.Connection, names: dict[str, str], status: str, others: int
) -> None:
    """Binaries count where they are asked for, and so do the others."""
    hdf5 = covered(conn, **names).specs[0]

    assert isinstance(hdf5, CoveredNode)
    assert (hdf5.status, hdf5.other_count, len(hdf5.others)) == (status, others, min(others, 5))


def test_a_machine_is_not_looked_at(conn: sqlite3.Connection) -> None:
    """A lockfile names its binaries; that the machine changes nothing is said."""
    found = covered(conn, host="riscv64", os="rhel9")

    assert found.binary == 1
    assert "the machine is not looked at" in found.notes[1]
    assert covered(conn, release="v1.0", stack="ml").notes == found.notes[:1]


def test_a_lockfile_as_text(conn: sqlite3.Connection) -> None:
    """The share that has a binary is told, what a rebuild would replace, and by what."""
    lines = cover_table(covered(conn)).splitlines()

    assert lines[0] == (
        "1 of 3 specs have a binary (33%); of 1 there are others of the same configuration"
    )
    assert [line.split()[0] for line in lines[2:]] == ["missing", "rebuilt", "binary"]
    assert " would be replaced by /" in lines[3]
    assert lines[4].endswith("(root)")


def test_a_lockfile_as_data(conn: sqlite3.Connection) -> None:
    """JSON and CSV have the same fields, each node with its hash and status."""
    found = covered(conn)
    said = json.loads(cover_json(found))
    rows = list(csv.DictReader(io.StringIO(cover_csv(found))))

    assert {key: said[key] for key in ("binary", "total", "rebuilt", "missing")} == {
        **{"binary": 1, "total": 3, "rebuilt": 1, "missing": 1}
    }
    assert [each["hash"] for each in said["specs"]] == [row["hash"] for row in rows]
    assert [row["status"] for row in rows] == ["binary", "missing", "rebuilt"]
    assert [row["root"] for row in rows] == ["1", "0", "0"]


@pytest.mark.parametrize("form", [cover_table, cover_json, cover_csv, cover_markdown])
def test_nothing_is_printed_as_well(form: object) -> None:
    """An environment that asks for nothing has a form, too."""
    assert callable(form)
    assert form(Cover((), is_lock=False))


def test_a_table_fits_the_terminal(conn: sqlite3.Connection) -> None:
    """Lines are wrapped where the terminal is narrow, and nothing is lost."""
    wide, narrow = (cover_table(covered(conn), width) for width in (None, 40))
    assert max(map(len, narrow.splitlines()[2:])) <= 40
    assert narrow.split() == wide.split()
