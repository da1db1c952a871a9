"""Which nodes of a lockfile have a binary, and which have another; a cover as text."""

import csv
import io
import sqlite3
from collections import Counter
from random import Random
from typing import Any

import pytest

from spack_cache_db.cli.cover_texts import cover_table
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.rows import csv_text
from tests.conftest import Build
from tests.graphs import edges, installs, run_time
from tests.indexes import edge, hash_of, index, lock_of, node, record
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
    own = spec(0, **WORDS) | {"hash": hash_of("hdf5"), "stacks": ["ml", "root"]}
    return built(
        a=page("hdf5", "develop", same),
        b=page("hdf5", "v1.0", [own, same[0]]),
        c=page("zlib", "develop", [spec(20, **WORDS | {"compiler": "none"})]),
    )


def lock() -> bytes:
    """Return a lockfile: hdf5 needs zlib and gcc."""
    return lock_of(
        node("hdf5", edge("zlib", "link"), edge("gcc", "build", virtuals=("c",))),
        node("zlib"),
        node("gcc", version="13.2.0"),
        node("glibc", external={"path": "/usr"}),
    )


def with_other_hash(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a node that is the same under a hash that no binary has."""
    return spec | {"hash": hash_of(f"other {spec['hash']}")}


def covered(conn: sqlite3.Connection, data: bytes = b"", **names: Any) -> Cover:
    """Return the answers for a lockfile."""
    lookups = read_lookups(conn)
    read = read_environment(data or lock(), "-")
    return cover_environment(lookups, read, Scope(**names).conditions(lookups))


def nodes_of(found: Cover) -> list[CoveredSpec]:
    """Return the answers for nodes."""
    return [each for each in found.specs if each.is_root is not None]


def test_each_node_has_its_answer(conn: sqlite3.Connection) -> None:
    """By its hash a node has a binary; by its configuration others; or nothing is
    there.
    """
    found = covered(conn)
    hdf5, gcc, zlib = (each for each in found.specs if each.is_root is not None)

    assert hdf5.spec == "hdf5@1.0"
    assert hdf5.status == "incomplete"
    assert hdf5.is_root is True
    assert hdf5.missing == (f"zlib@1.0/{hash_of('zlib')}",)
    assert hdf5.reasons == ("no binary of zlib@1.0, which Spack would build first",)
    assert (gcc.spec, gcc.status, gcc.hash) == ("gcc@13.2.0", "missing", hash_of("gcc"))
    assert zlib.status == "rebuilt"
    assert zlib.others == (spec_hash(20),)
    assert zlib.other_count == 1
    assert found.binary == 0
    assert found.total == 3
    assert found.is_lock is True
    assert found.notes == ("one external needs no binary; left out",)


@pytest.mark.parametrize(
    ("names", "status", "others"),
    [
        ({"release": "v1.0"}, "incomplete", 0),
        ({"release": "develop"}, "rebuilt", 7),
        ({"stack": "ml"}, "incomplete", 0),
        ({"stack": "e4s"}, "rebuilt", 7),
        ({"release": "v1.0", "stack": "e4s"}, "rebuilt", 1),
        ({"release": "develop", "stack": "ml"}, "missing", 0),
    ],
)
def test_a_release_and_a_stack_must_have_it(
    conn: sqlite3.Connection, names: dict[str, str], status: str, others: int
) -> None:
    """Binaries count where they are asked for, and so do the others."""
    hdf5 = covered(conn, lock(), **names).specs[0]

    assert hdf5.status == status
    assert hdf5.other_count == others
    assert len(hdf5.others) == min(others, 5)


def test_a_machine_is_not_looked_at(conn: sqlite3.Connection) -> None:
    """A lockfile names its binaries; that the machine changes nothing is said."""
    found = covered(conn, host="riscv64", os="rhel9")

    assert found.counted("incomplete") == 1
    assert "the machine is not looked at" in found.notes[1]
    assert covered(conn, release="v1.0", stack="ml").notes == found.notes[:1]


def test_a_lockfile_as_text(conn: sqlite3.Connection) -> None:
    """The share that has a binary is told, what a rebuild would replace, and by
    what.
    """
    lines = list(cover_table(covered(conn)))

    assert lines[:2] == [
        "0 of 3 specs have a binary; 1 more binary lacks dependencies (0%)",
        "missing 1, rebuilt 1, incomplete 1",
    ]
    assert [line.split()[0] for line in lines[3:]] == [
        "missing",
        "rebuilt",
        "incomplete",
    ]
    assert " would be replaced by /" in lines[4]
    assert lines[5].endswith(
        "(root); no binary of zlib@1.0, which Spack would build first"
    )


def test_a_lockfile_as_data(conn: sqlite3.Connection) -> None:
    """JSON and CSV have the same fields, each node with its hash and status."""
    found = covered(conn)
    said = found.as_dict()
    rows = list(csv.DictReader(io.StringIO(csv_text(found.rows))))

    counts = {"binary": 0, "total": 3, "rebuilt": 1, "missing": 1, "incomplete": 1}
    assert {key: said[key] for key in counts} == counts
    assert [covered["hash"] for covered in said["specs"]] == [
        row["hash"] for row in rows
    ]
    assert [row["status"] for row in rows] == ["incomplete", "missing", "rebuilt"]
    assert [row["root"] for row in rows] == ["1", "0", "0"]


@pytest.mark.parametrize("lacking", range(5))
def test_a_binary_needs_the_binaries_below_it(built: Build, lacking: int) -> None:
    """A node is incomplete exactly if a node that it links or runs, at any depth, has
    none.
    """
    chain = [
        node("a", edge("b", "link")),
        node("b", edge("c", "run"), edge("tool", "build")),
        node("c", edge("d", "link", "run")),
        node("d"),
        node("tool"),
    ]
    records = [record(each, is_binary=at != lacking) for at, each in enumerate(chain)]
    answers = {
        each.spec[0]: each
        for each in nodes_of(covered(built(a=index(*records)), lock_of(*chain)))
    }

    # What needs each node: build dependencies do not count.
    expected = [(), ("a",), ("a", "b"), ("a", "b", "c"), ()][lacking]
    found = tuple(name for name in "abcd" if answers[name].status == "incomplete")
    assert found == expected
    text = f"{chain[lacking]['name']}@1.0/{chain[lacking]['hash']}"
    assert all(answers[name].missing == (text,) for name in expected)


def needs(dag_hash: str) -> set[tuple[str, str]]:
    """Return the names and versions of all that a spec of the real index needs to
    run.
    """
    nodes = (installs()[each]["spec"] for each in run_time(dag_hash))
    return {(spec_node["name"], spec_node["version"]) for spec_node in nodes}


def shared_configurations(conn: sqlite3.Connection) -> list[list[str]]:
    """Return the hashes of binaries of one configuration, where there are several."""
    found: dict[int, list[str]] = {}
    sql = (
        "SELECT configuration_id, hash FROM specs WHERE release_count > 0 ORDER BY hash"
    )
    for configuration, dag_hash in conn.execute(sql):
        found.setdefault(configuration, []).append(dag_hash)
    return [some for some in found.values() if len(some) > 1]


def everything_below(dag_hash: str) -> list[str]:
    """Return what a spec of the real index needs in any way, directly or not."""
    found = {dag_hash}
    ahead = [dag_hash]
    while ahead:
        new = edges()[ahead.pop()].keys() - found
        found |= new
        ahead += new
    return sorted(found - {dag_hash})


def test_a_rebuild_needs_the_same_to_run(real_index: sqlite3.Connection) -> None:
    """Others of a node's configuration replace it only if they need the same names and
    versions.
    """
    chance = Random(26)
    statuses: Counter[str] = Counter()
    for some in shared_configurations(real_index)[::2]:
        root, *others = chance.sample(some, len(some))
        below = {each: installs()[each]["spec"] for each in everything_below(root)}
        run = sorted(run_time(root) - {root})
        if run and chance.random() < 0.5:
            below[run[0]] = below[run[0]] | {"version": "99"}
        for other in chance.sample(others, len(others) > 3):
            more = {other, *everything_below(other)} - below.keys()
            below |= {each: installs()[each]["spec"] for each in more}
        nodes = [with_other_hash(installs()[root]["spec"]), *below.values()]
        needed = {
            (each["name"], each["version"]) for each in (nodes[0], *map(below.get, run))
        }
        same = {each for each in some if needs(each) == needed} - below.keys()

        answer = nodes_of(covered(real_index, lock_of(*nodes)))[0]

        assert answer.status == ("rebuilt" if same else "alike"), nodes[0]["name"]
        assert answer.other_count == (len(same) or len(some))
        assert set(answer.others) <= (same or set(some))
        assert bool(answer.differences) == (not same)
        statuses[answer.status] += 1
    assert min(statuses["rebuilt"], statuses["alike"]) > 10


def test_what_differs_is_named(built: Build) -> None:
    """Of a node that is alike, the packages and versions are told that only one of both
    needs.
    """
    zlib = node("zlib", version="1.3")
    mpi = node("openmpi", version="5.0")
    hdf5 = node(
        "hdf5", edge("zlib", "link"), edge("openmpi", "run"), edge("cmake", "build")
    )
    conn = built(a=index(*map(record, (hdf5, zlib, mpi, node("cmake")))))
    old = node("zlib", version="1.2", hash=hash_of("old"))
    other = node(
        "hdf5", edge("zlib", "link") | {"hash": old["hash"]}, edge("glibc", "link")
    )
    glibc = node("glibc", version="2.36", external={"path": "/usr"})

    (answer, _) = nodes_of(covered(conn, lock_of(with_other_hash(other), old, glibc)))

    assert (answer.status, answer.others) == ("alike", (hdf5["hash"],))
    assert answer.differences == (
        "glibc 2.36 only here",
        "openmpi 5.0 only there",
        "zlib 1.2 → 1.3",
    )
    assert "openmpi 5.0 only there" in "\n".join(
        cover_table(Cover((answer,), is_lock=True))
    )
    # A sibling that needs the same is no replacement: the lockfile has it already.
    twin = nodes_of(
        covered(conn, lock_of(with_other_hash(hdf5), hdf5, zlib, mpi, node("cmake")))
    )[0]
    assert twin.status == "alike"
    assert twin.differences == ("it is another node of this lockfile",)


def test_a_table_fits_the_terminal(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are wrapped where the terminal is narrow, and nothing is lost."""
    monkeypatch.delenv("COLUMNS", raising=False)
    wide = list(cover_table(covered(conn)))
    monkeypatch.setenv("COLUMNS", "40")
    narrow = list(cover_table(covered(conn)))

    assert max(map(len, narrow[2:])) <= 40
    assert " ".join(narrow).split() == " ".join(wide).split()
