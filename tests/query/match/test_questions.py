"""What is asked of dependencies, compared with Spack's answers; and what nothing can
answer.
"""

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.why_not import why_not
from spack_cache_db.query.conditions.pages import UnsupportedQuery, check_answerable
from spack_cache_db.query.match.question import Question, recent_question
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.spack.parser import parse_query
from tests.indexes import MIRRORS, REAL_FILE, edge, hash_of, node, real, record
from tests.paths import DATA
from tests.small_sources import LOOK_ALIKES, Sources, database_of, hashes
from tests.spackrecords import SPACK

ANSWERS: dict[str, list[tuple[str, list[int]]]] = json.loads(
    gzip.decompress((DATA / "satisfies_1.2.json.gz").read_bytes())
)["answers"]
"""Queries over two real indexes, one from before Spack 1.0, and what Spack 1.2
answers.
"""


def notes(conn: sqlite3.Connection, text: str) -> tuple[str, ...]:
    """Return what is said beside the answer to a query."""
    return Question(read_lookups(conn), parse_query(text)).notes


@pytest.mark.slow
def test_every_recorded_answer_is_spacks(real_index: sqlite3.Connection) -> None:
    """Each of 210 queries, dependencies and flags included, finds the binaries that
    Spack finds.
    """
    installs = json.loads(real())["database"]["installs"]
    binaries = {
        dag_hash for dag_hash, each in installs.items() if each["in_buildcache"]
    }
    recorded = [row[0] for row in SPACK["specs"]]

    wrong = []
    for text, places in SPACK["answers"].items():
        expected = {recorded[place] for place in places} & binaries
        if hashes(real_index, text) != expected:
            wrong.append(text)

    assert wrong == []
    assert len(SPACK["answers"]) == 210


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file of indexes in which two specs look alike, and of pages."""
    with database_of(LOOK_ALIKES) as conn:
        yield conn


def test_a_dependency_that_looks_like_a_binary(mixed: sqlite3.Connection) -> None:
    """What was not pushed satisfies nothing, and does not contradict a binary that
    looks alike.
    """
    assert len(find(mixed, "hwloc")) == 1
    assert find(mixed, "hwloc namespace=builtin") == []

    lookups = read_lookups(mixed)
    query = parse_query("hwloc namespace=builtin")
    (note,) = why_not(Question(lookups, query)).notes

    assert note.startswith("such a spec is known as a dependency")


def test_notes(mixed: sqlite3.Connection) -> None:
    """An answer comes with how it was read."""
    assert any("one compiler per binary" in each for each in notes(mixed, "%gcc"))
    assert notes(mixed, "app os=debian12 ^mpi") == ()
    assert notes(mixed, "mpich ^[deptypes=run] openmpi") == ()
    (note,) = notes(mixed, "app os=debian12 ^mpi+cuda")
    assert note == "mpi is a virtual package: only its name is compared, as in Spack"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("^mpi@3", r"ask for a provider: '\^mpi=<package>'"),
        ("%mpi@3+cuda", "ask for a provider: '%mpi=<package>'"),
        ("mpi", "virtual package"),
        ("^app@git.main", "git repository"),
        ("app ^zlib os=default_os", "depends on a machine"),
    ],
)
def test_what_records_cannot_answer(
    mixed: sqlite3.Connection, text: str, reason: str
) -> None:
    """It is refused with the reason."""
    with pytest.raises(UnsupportedQuery, match=reason):
        find(mixed, text)


def test_a_cycle_comes_to_an_end() -> None:
    """What needs itself, which Spack does not write, is found once."""
    records = [
        record(node("a", edge("b", "link"))),
        record(node("b", edge("a", "link"))),
    ]

    with database_of(Sources({("develop", "e4s"): ("8", records)}, {})) as conn:
        assert hashes(conn, "a ^a") == {hash_of("a")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_dependencies_are_those_of_spack(name: str, tmp_path: Path) -> None:
    """Edges, their types and virtual packages, and old compilers satisfy what they do
    in Spack.
    """
    build(DATA / "indexes" / name, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        binaries = sorted(row[0] for row in conn.execute("SELECT hash FROM builds"))

        wrong = []
        for text, places in ANSWERS[name]:
            expected = {binaries[place] for place in places}
            if hashes(conn, text) != expected:
                wrong.append(text)

    assert wrong == []
    assert len(ANSWERS[name]) > 100


def test_a_virtual_root_is_refused_with_its_providers(
    real_index: sqlite3.Connection,
) -> None:
    """Which they are the edges of the file say."""
    with pytest.raises(
        UnsupportedQuery, match="provided in this database by intel-oneapi-runtime"
    ):
        find(real_index, "libifcore os=debian12")


@pytest.mark.slow
def test_whole_mirrors(tmp_path: Path) -> None:
    """Of mirrors without an index, those of Spack before 0.21 do not tell of virtual
    packages.
    """
    build([str(MIRRORS), str(REAL_FILE)], tmp_path / "out.db")
    conn = sqlite3.connect(tmp_path / "out.db")
    mute = SpecRecords(read_lookups(conn)).without_virtuals
    releases = {
        row[0]
        for row in conn.execute(
            "SELECT releases.name, spec_id FROM records "
            "JOIN mirrors ON mirrors.id = mirror_id "
            "JOIN releases ON releases.id = release_id"
        )
        if row[1] in mute
    }
    conn.close()

    assert releases == {"v2-0.16", "v2-0.17", "v2-0.20"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%[deptypes=link] gcc", "this database"),
        ("++pic", "this database"),
        ("hdf5 --fortran", "this database"),
        ("zlib cflags=-g", "this database"),
        ("hdf5 ^mpich", "this database has no dependency data"),
        ("hdf5 %cmake", "cmake is not known as a compiler"),
        ("hdf5 %mpi=openmpi", "the providers of mpi"),
        ("hdf5 %fortran=gcc", "the one for Fortran"),
        ("hdf5 %c", "which languages"),
        ("hdf5 %@12", "name a compiler"),
        ("hdf5 %[when='+mpi'] gcc", "how gcc is used"),
        ("hdf5 %%gcc", "only guides Spack's solver"),
        ("hdf5 %gcc %clang", "one compiler per binary"),
        ("hdf5 %gcc target=zen3", "before the '%'"),
        ("hdf5 %gcc namespace=builtin", "before the '%'"),
        ("hdf5 %gcc@git.main", "git repository"),
        ("hdf5@git.main", "git repository"),
        ("builtin.hdf5", "namespaces"),
        ("mpi", "virtual package"),
        ("blas +x", "virtual package"),
        ("hdf5 target=toaster:", "archspec does not know the target 'toaster'"),
        ("hdf5 os=default_os", "depends on a machine"),
        ("hdf5 target=frontend", "depends on a machine"),
        ("hdf5 api==v110", "is about dependencies too"),
    ],
)
def test_what_pages_cannot_answer(text: str, reason: str) -> None:
    """A query that pages cannot answer is refused with the reason, not answered
    wrong.
    """
    with pytest.raises(UnsupportedQuery) as caught:
        check_answerable(parse_query(text))

    assert reason in str(caught.value)


def test_a_question_has_its_answers(samples: sqlite3.Connection) -> None:
    """Count, configurations, notes and results of one question agree with `find`."""
    lookups = read_lookups(samples)
    question = Question(lookups, parse_query("PY_MPI4PY"))
    found = find(samples, "PY_MPI4PY")

    assert question.canonical_spec.name == "py-mpi4py"
    assert question.count() == len(found) > 1

    rows = question.configurations(slice(2))
    first_found = [row.configuration for row in found[:2]]
    assert [row.configuration for row in rows] == first_found
    assert question.notes == found.notes
    assert question.notes[0] == "PY_MPI4PY is read as py-mpi4py"


def test_a_question_is_checked_when_it_is_read(samples: sqlite3.Connection) -> None:
    """A question that pages cannot answer is one that can be explained."""
    question = Question(read_lookups(samples), parse_query("py-mpi4py ^zlib"))
    for read in (question.check, question.count, lambda: question.notes):
        with pytest.raises(UnsupportedQuery, match="no dependency data"):
            read()


def test_recent_questions_are_kept(samples: sqlite3.Connection) -> None:
    """Equal questions of a database share their results until others are asked."""
    lookups = read_lookups(samples)
    query = parse_query("py-mpi4py")
    question = recent_question(lookups, query)

    assert recent_question(lookups, query) is question
    assert recent_question(read_lookups(samples), query) is not question

    for text in ("zlib", "hdf5", "cmake", "gcc"):
        recent_question(lookups, parse_query(text))
    assert recent_question(lookups, query) is not question
