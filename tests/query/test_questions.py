"""What is asked of dependencies, compared with Spack's answers."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.answers import find, notes_on
from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.configurations import Candidates
from spack_cache_db.query.coverage import cover
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.explanation import why_not
from spack_cache_db.query.records import question_of
from spack_cache_db.spack.constraints import spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from tests.dependency_oracle import left_out
from tests.indexes import edge, hash_of, node, old_node, real, record
from tests.pagetexts import spec_hash
from tests.paths import DATA
from tests.small_sources import LOOK_ALIKES, Sources, hashes, opened
from tests.spackrecords import SPACK

ANSWERS: dict[str, list[tuple[str, list[int]]]] = json.loads(
    gzip.decompress((DATA / "satisfies_1.2.json.gz").read_bytes())
)["answers"]
"""Queries over two real indexes, one from before Spack 1.0, and what Spack 1.2 answers."""


def notes(conn: sqlite3.Connection, text: str) -> tuple[str, ...]:
    """Return what is said beside the answer to a query."""
    lookups = read_lookups(conn)
    return notes_on(lookups, question_of(lookups, parse_query(text)))


@pytest.mark.slow
def test_every_recorded_answer_is_spacks(real_index: sqlite3.Connection) -> None:
    """Each of 210 queries, dependencies and flags included, finds the binaries that Spack finds."""
    installs = json.loads(real())["database"]["installs"]
    binaries = {dag_hash for dag_hash, each in installs.items() if each["in_buildcache"]}
    every = [row[0] for row in SPACK["specs"]]

    wrong = [
        text
        for text, places in SPACK["answers"].items()
        if hashes(real_index, text) != {every[place] for place in places} & binaries
    ]

    assert wrong == []
    assert len(SPACK["answers"]) == 210


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file of indexes in which two specs look alike, and of pages."""
    with opened(LOOK_ALIKES) as conn:
        yield conn


def test_specs_of_one_configuration_differ(mixed: sqlite3.Connection) -> None:
    """Counts, hashes, releases and stacks are those of the specs that satisfy the query."""
    (both,) = find(mixed, "app@1.0 os=debian12", with_hashes=True)
    (one,) = find(mixed, "app ^mpich")
    (two,) = find(mixed, "app ^openmpi ^hwloc", with_hashes=True)

    assert (both.spec_count, both.hashes) == (2, (hash_of("one"), hash_of("two")))
    assert one.configuration == two.configuration == both.configuration
    assert (one.spec_count, one.releases, one.stacks) == (1, ("develop",), ("e4s",))
    assert (two.releases, two.stacks) == (("develop", "v1.9"), ("e4s", "ml"))
    assert two.hashes == (hash_of("two"),)
    assert find(mixed, "app ^mpich ^openmpi") == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"release": "v1.9"}, {"two"}),
        ({"stack": "e4s"}, {"one", "two"}),
        ({"release": "develop", "stack": "ml"}, set()),
        ({"os": "rhel8"}, set()),
    ],
)
def test_a_place_narrows(
    mixed: sqlite3.Connection, options: dict[str, Any], expected: set[str]
) -> None:
    """Release, stack and machine narrow what depends on something as they do everything else."""
    assert hashes(mixed, "app ^mpi", **options) == {hash_of(name) for name in expected}


def test_what_is_no_binary_is_needed_but_not_found(mixed: sqlite3.Connection) -> None:
    """A dependency that was not pushed leads to what needs it, and is in no answer itself."""
    assert hashes(mixed, "^hwloc") == {hash_of("two"), hash_of("openmpi")}


@pytest.mark.parametrize(
    ("text", "found", "count"),
    [
        ("app ^mpi", {"one", "two"}, 1),
        ("app os=debian12 ^mpi", {"one", "two"}, 0),
        ("tool ^mpi", set(), 2),
        ("tool %gcc", {8}, 0),
        ("tool %gcc ^mpi", set(), 1),
        ("tool %gcc %clang", set(), 0),
        ("tool %[deptypes=build] gcc", set(), 2),
        ("++x", {"one", "two", "mpich", "openmpi"}, 4),
        ("own.app", set(), 1),
        ("cflags=-g", set(), 4),
        ("%[when='@1'] gcc", {8, 9}, 0),
        ("tool %[when='^mpi'] nothing", set(), 2),
    ],
)
def test_what_pages_alone_tell_of(
    mixed: sqlite3.Connection, text: str, found: set[str | int], count: int
) -> None:
    """Such a spec is found by its compiler; else it is left out, and counted where it may fit."""
    expected = {hash_of(each) if isinstance(each, str) else spec_hash(each) for each in found}

    assert hashes(mixed, text) == expected
    assert left_out(notes(mixed, text)) == count


def test_a_dependency_that_looks_like_a_binary(mixed: sqlite3.Connection) -> None:
    """What was not pushed satisfies nothing, and does not contradict a binary that looks alike."""
    assert len(find(mixed, "hwloc")) == 1
    assert find(mixed, "hwloc namespace=builtin") == []
    lookups, query = read_lookups(mixed), parse_query("hwloc namespace=builtin")
    (note,) = why_not(Candidates(lookups), query).notes
    assert note.startswith("such a spec is known as a dependency")


def test_notes(mixed: sqlite3.Connection) -> None:
    """An answer comes with how it was read."""
    assert any("one compiler per binary" in each for each in notes(mixed, "%gcc"))
    assert notes(mixed, "app os=debian12 ^mpi") == ()
    assert notes(mixed, "mpich ^[deptypes=run] openmpi") == ()
    (note,) = notes(mixed, "app os=debian12 ^mpi+cuda")
    assert note == "mpi is a virtual package: only its name is asked, as in Spack"


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
def test_what_records_cannot_answer(mixed: sqlite3.Connection, text: str, reason: str) -> None:
    """It is refused with the reason."""
    with pytest.raises(UnsupportedQuery, match=reason):
        find(mixed, text)


def test_the_condition_of_a_dependency_is_a_spec(mixed: sqlite3.Connection) -> None:
    """What is none is an error like any other of the syntax."""
    with pytest.raises(QuerySyntaxError):
        find(mixed, "app %[when='@@'] gcc")


def test_indexes_without_virtual_packages() -> None:
    """In records from before Spack 0.21, only compilers are known to provide something."""
    old = [record(old_node("app", "6", "mpich")), record(old_node("mpich", "6"))]
    with opened(Sources({("develop", "e4s"): ("6", old)}, {})) as conn:
        for text, count in (("^mpi", 2), ("%mpi", 2), ("^mpi=mpich", 2), ("%c=mpich", 0)):
            assert hashes(conn, text) == set()
            assert left_out(notes(conn, text)) == count
        assert hashes(conn, "^mpich") == hashes(conn, "%mpich") == {hash_of("app")}
        for text in ("%c", "%c=gcc@12", "%[deptypes=build] gcc", "^c,cxx=gcc ~~cuda"):
            assert hashes(conn, text) == {hash_of("app"), hash_of("mpich")}
        assert hashes(conn, "%[deptypes=link] gcc") == hashes(conn, "%gcc+cuda") == set()


def test_old_compilers_have_two_names(mixed: sqlite3.Connection) -> None:
    """What a record of before Spack 1.0 calls clang is llvm as well."""
    kept = {"original_specfile_version": 4, "compiler": "clang@=15.0.7"}
    records = [record(node("app", annotations=kept))]
    with opened(Sources({("develop", "e4s"): ("8", records)}, {})) as conn:
        assert hashes(conn, "%clang@15") == hashes(conn, "%llvm") == {hash_of("app")}
        assert hashes(conn, "%[virtuals=c] @15") == {hash_of("app")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("patches=ab", True),
        ("patches=" + "ab" * 5, True),
        ("patches=abababab0", False),
        ("patches:=" + "ab" * 32, False),
        ("patches:=" + "ab" * 32 + "," + "cd" * 32, True),
    ],
)
def test_records_have_whole_patch_sums(text: str, expected: bool) -> None:
    """A patch is compared by all of its sum, where an index tells it."""
    patched = {"patches": ["cd" * 32, "ab" * 32], "cflags": []}
    records = [record(node("app", parameters=patched))]
    with opened(Sources({("develop", "e4s"): ("8", records)}, {})) as conn:
        assert bool(hashes(conn, text)) is expected


def test_a_cycle_comes_to_an_end() -> None:
    """What needs itself, which Spack does not write, is found once."""
    records = [record(node("a", edge("b", "link"))), record(node("b", edge("a", "link")))]
    with opened(Sources({("develop", "e4s"): ("8", records)}, {})) as conn:
        assert hashes(conn, "a ^a") == {hash_of("a")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_dependencies_are_those_of_spack(name: str, tmp_path: Path) -> None:
    """Edges, their types and virtual packages, and old compilers satisfy what they do in Spack."""
    build(DATA / "indexes" / name, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        binaries = sorted(row[0] for row in conn.execute("SELECT hash FROM builds"))

        wrong = [
            text
            for text, places in ANSWERS[name]
            if hashes(conn, text) != {binaries[place] for place in places}
        ]

    assert wrong == []
    assert len(ANSWERS[name]) > 100


CHAIN = [
    record(node("app", edge("openblas", "link"), edge("lib", "link", virtuals=("mpi",)))),
    record(node("lib", edge("openblas", "link", virtuals=("blas",)), edge("gcc", "build"))),
    record(node("openblas", edge("tool", "build"))),
    record({**node("second", edge("app", "link")), "name": "lib"}),
    record(node("top", edge("app", "run", "test"), edge("second", "link") | {"name": "lib"})),
    record(node("gcc")),
    record(node("tool")),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("^blas", {"app", "lib", "second", "top"}),
        ("^blas=openblas", {"app", "lib", "second", "top"}),
        ("%blas", {"lib"}),
        ("^[deptypes=test] app", {"top"}),
        ("^[deptypes=build] gcc", {"lib"}),
        ("^openblas %tool", {"app", "lib", "second", "top"}),
        ("^lib %gcc", {"app", "second", "top"}),
        ("^lib ^lib %gcc", {"app", "second", "top"}),
        ("^mpi+nothing %gcc", {"app", "second", "top"}),
        ("^%gcc", {"app", "second", "top"}),
        ("app %[when='build_system=generic,x'] tool", {"app"}),
        ("app %[when='^lib %gcc'] tool", set()),
        ("app ^[when='^lib %tool'] nothing", {"app"}),
    ],
)
def test_all_edges_count(text: str, expected: set[str]) -> None:
    """A `^` looks at every edge, whichever comes first, and conditions are read as a whole."""
    with opened(Sources({("develop", "e4s"): ("8", CHAIN)}, {})) as conn:
        assert hashes(conn, text) == {hash_of(each) for each in expected}


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("hdf5 ^", "hdf5 ^*"),
        ("hdf5 ^%gcc", "hdf5 ^* %gcc"),
        ("hdf5 %[deptypes=link]", "hdf5 %[deptypes=link] *"),
    ],
)
def test_a_sigil_without_a_name_is_any_package(
    short: str, whole: str, real_index: sqlite3.Connection
) -> None:
    """As in Spack 1.1, and what is printed is read the same."""
    assert find(real_index, short) == find(real_index, whole) != []
    assert find(real_index, spec_text(parse_query(short))) == find(real_index, short)


def test_capitals_of_a_name_do_not_matter(real_index: sqlite3.Connection) -> None:
    """A package is found however its name is written, and a note says how it was read."""
    assert find(real_index, "HDF5@1.14: +mpi") == find(real_index, "hdf5@1.14: +mpi") != []
    question = question_of(read_lookups(real_index), parse_query("HDF5 ^OpenMPI"))
    assert question.notes[0] == "HDF5 is read as hdf5"


def test_a_virtual_root_is_refused_with_its_providers(real_index: sqlite3.Connection) -> None:
    """Which they are the edges of the file say."""
    with pytest.raises(UnsupportedQuery, match="provided here by intel-oneapi-runtime"):
        find(real_index, "libifcore os=debian12")


def test_why_nothing_has_such_a_dependency(mixed: sqlite3.Connection) -> None:
    """Each thing that is asked beyond configurations can be left out like others."""
    query = parse_query("app@1.0 os=debian12 namespace=builtin ^mpich@9")

    lookups = read_lookups(mixed)
    why = why_not(Candidates(lookups), query)

    assert [(each.spec, each.configurations) for each in why.without] == [
        ("builtin.app@1.0 os=debian12", 1),
    ]
    assert why.sentences()[0].startswith("without ^mpich@9: 1 configuration; there is ")


def test_environments_ask_for_dependencies(mixed: sqlite3.Connection) -> None:
    """A binary has such dependencies; it is not known of one that only a page lists."""
    answers = cover(mixed, ["app ^mpich", "app ^openmpi ^hwloc", "app ^mpich ^openmpi"]).specs

    assert [(each.status, each.hash) for each in answers] == [
        ("binary", hash_of("one")),
        ("binary", hash_of("two")),
        ("unknown", None),
    ]


def test_requirements_ask_for_dependencies(mixed: sqlite3.Connection, tmp_path: Path) -> None:
    """What `packages:` excludes is excluded of specs, and not of all that look like them."""
    path = tmp_path / "spack.yaml"
    path.write_text(
        "spack:\n  specs: [app os=debian12]\n  packages:\n    app:\n      conflict: [^mpich]\n"
    )

    (answer,) = cover(mixed, path).specs

    assert (answer.status, answer.hash) == ("binary", hash_of("two"))


def test_what_is_needed_to_build() -> None:
    """`^` goes over link and run, and over build from the root alone."""
    records = [
        record(node("app", edge("lib", "link"), edge("cmake", "build"))),
        record(node("lib", edge("other", "build"), edge("low", "run"))),
        record(node("cmake", edge("tool", "build", "link"))),
        *(record(node(name)) for name in ("other", "low", "tool")),
    ]
    with opened(Sources({("develop", "e4s"): ("8", records)}, {})) as conn:
        found = {name: hashes(conn, f"^{name}") for name in ("cmake", "tool", "other", "low")}

    assert found == {
        "cmake": {hash_of("app")},
        "tool": {hash_of("cmake")},
        "other": {hash_of("lib")},
        "low": {hash_of("app"), hash_of("lib")},
    }
