"""Names in other spellings."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spack_cache_db
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.names import Spellings, read_spellings
from tests.commands import run

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "package": {"a-b": ("a-b",), "c-d": ("c-d", "c_d")},
    "release": {"a-b": ("a_b",)},
}


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=40, max_size=40))
def test_every_spelling_of_a_name_is_read(
    samples: sqlite3.Connection, changes: list[tuple[bool, bool]]
) -> None:
    """Capitals, `_` for `-` and `-` for `_` lead to each name of every kind, and to no other."""
    spellings = read_spellings(read_lookups(samples))

    for kind, names in spellings.names.items():
        for name in (each for some in names.values() for each in some):
            spelled = "".join(
                {"-": "_", "_": "-"}.get(char, char) if swaps else char.upper() if raises else char
                for char, (swaps, raises) in zip(name, changes * 2, strict=False)
            )
            assert spellings.canonical(kind, spelled) == name


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("package", "A_B", "a-b"),
        ("package", " A-b ", "a-b"),
        ("package", "c_d", "c_d"),
        ("package", "c-d", "c-d"),
        ("package", "C-D", "C-D"),
        ("package", "ab", "ab"),
        ("release", "A-B", "a_b"),
        ("stack", "A-B", "A-B"),
        ("hash", "ABC", "abc"),
    ],
)
def test_only_one_name_is_meant(kind: str, text: str, name: str) -> None:
    """A name stays as it is, and so does a text that is a spelling of several names or of none."""
    assert Spellings(NAMES).canonical(kind, text) == name


@pytest.mark.parametrize(
    ("spec", "spelled"),
    [
        ("py-mpi4py", "Py_MPI4Py"),
        ("py-mpi4py@4: %gcc@13", "PY-MPI4PY@4: %GCC@13"),
        ("py-mpi4py target=:zen3 os=ubuntu22.04", "py-mpi4py target=:ZEN3 os=Ubuntu22.04"),
        ("/2feova4", "/2FEOVA4"),
        ("py-mpi4py target=x86_64_v3", "py-mpi4py target=X86-64-v3"),
    ],
)
def test_specs_are_read_in_any_spelling(samples_file: Path, spec: str, spelled: str) -> None:
    """Python and the commands find the same, and the commands say how they read a name."""
    found = spack_cache_db.find(samples_file, spec)

    assert found
    assert spack_cache_db.find(samples_file, spelled) == found
    assert "read as" in run("find", spelled, samples_file).stderr
    assert "read as" not in run("find", spec, samples_file).stderr


@pytest.mark.parametrize(
    "command",
    [
        ("find", "py-mpi4py", "FILE", "--release", "Develop", "--stack", "E4S", "--host", "ZEN3"),
        ("history", "py-mpi4py", "FILE", "--stack", "E4S", "--host", "ZEN3"),
        ("cover", "py-mpi4py", "FILE", "--release", "Develop", "--stack", "E4S"),
        ("diff", "develop-2025-04-20", "develop", "FILE", "--package", "PY_MPI4PY"),
        ("diff", "DEVELOP-2025-04-20:E4S", "Develop:E4S", "FILE", "--host", "ZEN3"),
    ],
)
def test_options_are_read_in_any_spelling(
    samples_file: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A name after an option narrows as the name itself does, with a note."""
    specs = tmp_path / "specs.txt"
    specs.write_text("py-mpi4py\n")
    given = {"FILE": samples_file, "py-mpi4py": specs if command[0] == "cover" else "py-mpi4py"}
    spelled = run(*(given.get(each, each) for each in command))
    lower = (each if each == "FILE" else each.lower().replace("py_", "py-") for each in command)
    plain = run(*(given.get(each, each) for each in lower))

    assert (spelled.exit_code, spelled.stdout) == (plain.exit_code, plain.stdout)
    assert spelled.stdout
    assert "read as" in spelled.stderr
