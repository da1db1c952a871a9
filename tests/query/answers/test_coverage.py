"""Which specs of an environment have a binary, as `find` says one by one."""

import json
import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.environments.model import Surroundings, UnreadableEnvironment
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import cover, cover_environment
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.spack.legacy import parser_of
from tests.conftest import Build
from tests.indexes import index, old_node, record
from tests.pagetexts import page, spec, spec_hash


def covered(conn: sqlite3.Connection, text: str) -> list[CoveredSpec]:
    """Return the answers for an environment."""
    found = cover_environment(read_lookups(conn), read_environment(text.encode(), "-"))
    return [each for each in found.specs if each.is_root is None]


@pytest.mark.parametrize(
    ("spec", "status", "reason"),
    [
        ("py-mpi4py@4: %gcc@13", "binary", None),
        ("/2feova4", "binary", None),
        ("py-mpi4py@99", "near", "newest 4.0.1"),
        ("py-mpi4py@99 +cuda ~rocm", "none", "no version 99"),
        ("py-mpi4px", "none", "(near: py-mpi4py)"),
        ("py-mpi4py ^openmpi", "unanswerable", "this database has no dependency data"),
        ("py-mpi4py %gcc@13 target=zen3", "unanswerable", "constraints after %gcc"),
        ("+cuda", "unanswerable", "names no package"),
        ("/zzzzzz", "unanswerable", "stands for nothing"),
        ("py-mpi4py@@4", "unanswerable", "expected a version after '@'"),
    ],
)
def test_each_status(
    samples: sqlite3.Connection, spec: str, status: str, reason: str | None
) -> None:
    """Each spec has one status, and where it has no binary the reason."""
    (answer,) = covered(samples, spec)

    assert (answer.spec, answer.line, answer.status) == (spec, 1, status)
    assert reason in answer.reasons[0] if reason else answer.reasons == ()
    assert (answer.hash is not None) == (status == "binary")


def test_a_correction_has_what_is_required(samples: sqlite3.Connection) -> None:
    """A corrected spec counts if it finds something that `packages:` allows, and says
    so.
    """
    options = ["%nvhpc@24.9", "%gcc@13", "%gcc@11"]
    found = []
    for require in ([{"one_of": options}, "os=ubuntu24.04"], [{"one_of": options[:1]}]):
        packages = {"all": {"require": require}}
        environment = {"specs": ["py-mpi4py %gcc target=:zen3"], "packages": packages}
        found += covered(samples, json.dumps({"spack": environment}))

    assert [each.corrected for each in found] == [
        "py-mpi4py os=ubuntu24.04 target=:zen3 %gcc",
        None,
    ]


def test_specs_of_before_spack_1_0(samples: sqlite3.Connection) -> None:
    """One note counts those that Spack 1.0 reads otherwise; as Spack 0.23 all are
    answered.
    """
    specs = [
        "py-mpi4py %gcc@13 target=:zen3",
        "py-mpi4py %gcc target=aarch64",
        "py-mpi4py %gcc",
    ]
    today, before = (cover(samples, specs, spack=each) for each in (None, "0.23"))

    assert [each.status for each in today.specs] == [
        "unanswerable",
        "unanswerable",
        "binary",
    ]
    assert [note.partition(" constrain ")[0] for note in today.notes] == ["2 specs"]
    assert "spack style --spec-strings --fix" in today.notes[0]
    assert [each.status for each in before.specs] == ["binary"] * 3
    assert [each.spec for each in before.specs] == specs
    assert before.notes == ()
    for text, each in zip(specs, before.specs, strict=True):
        found = find(samples, text, spack="0.23")
        assert each.configurations == len(found) == len(find(samples, each.query))


def test_requirements_of_before_spack_1_0(samples: sqlite3.Connection) -> None:
    """Matrices, exclusions and requirements are read alike, whichever part names the
    compiler.
    """
    environment = {
        "specs": [
            {
                "matrix": [
                    ["py-mpi4py"],
                    ["%gcc@13 target=:zen3", "%gcc@11 target=:zen3"],
                ],
                "exclude": ["%gcc@11 target=:zen3"],
            }
        ],
        "packages": {"all": {"require": "%gcc os=ubuntu24.04"}},
    }
    text = json.dumps({"spack": environment}).encode()
    read = read_environment(
        text, "-", surroundings=Surroundings(parse=parser_of("0.23"))
    )
    (answer,) = cover_environment(read_lookups(samples), read).specs

    assert answer.query == "py-mpi4py os=ubuntu24.04 target=:zen3 %gcc@13"
    assert answer.status == "binary"


def test_records_of_before_spack_1_0_name_one_compiler(tmp_path: Path) -> None:
    """With Spack 0.23's rules a compiler is the one that such a record names, bare or
    not.
    """
    nodes = [record(old_node(name, "7")) for name in ("hdf5", "zlib")]
    (tmp_path / "index.json").write_bytes(index(*nodes, version="7"))
    build([str(tmp_path / "index.json")], tmp_path / "old.db", release="develop")

    for text in (
        "hdf5 %gcc",
        "hdf5 %gcc@12 build_system=generic",
        "%gcc target=x86_64_v3",
    ):
        found = find(tmp_path / "old.db", text, spack="0.23")
        assert found and all(answer.compiler == "gcc@12.2.0" for answer in found), text
    assert not find(tmp_path / "old.db", "hdf5 %gcc@13", spack="0.23")
    assert not find(tmp_path / "old.db", "hdf5 %gcc@12 build_system=generic")


def test_in_python(samples_file: Path, tmp_path: Path) -> None:
    """A path or specs are taken, with the names that narrow an answer."""
    listed = tmp_path / "specs.txt"
    listed.write_text("py-mpi4py@4\npy-mpi4py os=rhel8\n")

    by_path = cover(samples_file, listed, host="zen3")
    by_specs = cover(samples_file, ["py-mpi4py@4", "py-mpi4py os=rhel8"], host="zen3")

    assert [each.status for each in by_path.specs] == ["binary", "near"]
    assert [each.status for each in by_specs.specs] == ["binary", "near"]
    assert (by_path.binary, by_path.total) == (1, 2)
    assert cover(samples_file, []) == Cover(
        (), False, ("the environment has no specs",)
    )
    with pytest.raises(
        UnreadableEnvironment, match="none: cannot be read: No such file"
    ):
        cover(samples_file, tmp_path / "none")
    with pytest.raises(UnknownNameError):
        cover(samples_file, listed, release="none")


def test_the_nearest_may_be_elsewhere(built: Build) -> None:
    """Where not even two conditions suffice that are left out, the nearest misses the
    place too.
    """
    conn = built(
        a=page("bar", "develop", [spec(1)]),
        b=page("baz", "v1.0", [spec(2, stacks=["ml"])]),
    )
    (answer,) = cover(conn, [f"bar/{spec_hash(2)}"], release="v1.0", stack="ml").specs

    assert answer.status == "none"
    (reason,) = answer.reasons
    assert reason.endswith(f"which misses /{spec_hash(2)}, release v1.0, stack ml")
    assert answer.configuration is not None
    assert answer.configuration.package == "bar"


def test_many_unknown_names_are_answered(samples: sqlite3.Connection) -> None:
    """Close names are looked for for the first of them only: to compare all would take
    long.
    """
    answers = covered(samples, "\n".join(f"py-mpi4p{number}" for number in range(30)))

    assert all("no package has this name" in each.reasons[0] for each in answers)
    assert sum("(near: py-mpi4py)" in each.reasons[0] for each in answers) == 20
