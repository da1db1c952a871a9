"""environments.formats: what terminals print and people write, and the specs in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments import Environment, Surroundings, UnreadableEnvironment
from spack_cache_db.environments.formats import read_environment
from spack_cache_db.spack.pasted_specs import KnownNames

DATA = Path(__file__).parents[1] / "data" / "pasted_texts.txt"
CASES = re.findall(
    r"^=== (.+)\n((?:(?!--- specs).*\n)*)--- specs\n((?:(?!=== ).*\n)*)",
    DATA.read_text("utf-8"),
    re.MULTILINE,
)
"""Output of Spack 1.2, lists of modules, logs and READMEs; the specs of each with their lines."""

PACKAGES = """
callpath cmake compiler-wrapper dyninst externaltool gcc gcc-runtime glibc hdf5 libdwarf libelf
mpich mpileaks ncurses openmpi python slurm zlib zlib-ng
"""
KNOWN = KnownNames(set(PACKAGES.split()).__contains__, {"nekvq6z", "n3bpxms"}.__contains__)


def read(text: str) -> Environment:
    """Return what a text asks for, of a database with a few packages."""
    return read_environment(text.encode(), "pasted", surroundings=Surroundings(known=KNOWN))


def asked(text: str) -> str:
    """Return what a text asks for, as the data has it."""
    try:
        found = read(text)
    except UnreadableEnvironment as error:
        return f"error: {error.faults[0].message}\n"
    lines = []
    for spec in found.specs:
        group = f" [{spec.group}]" if spec.group else ""
        external = " (external)" if spec.external else ""
        fault = f" ({spec.error})" if spec.error else ""
        lines.append(f"{spec.line} {spec.text}{group}{external}{fault}")
    lines += [f"note: {note}" for note in found.notes]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_specs_of_pasted_texts(text: str, expected: str) -> None:
    """Only specs count: other lines are named in one note, headings are applied or named."""
    assert len(CASES) > 20
    assert asked(text) == expected
    assert asked(text.replace("\n", "\r\n")) == expected


SPECS = st.sampled_from(
    ["zlib", "hdf5 +mpi", "cmake@3: %gcc@13", "unknown@1.2", "- ncurses", "$ hdf5@1.14", "/nekvq6z"]
)
OTHERS = st.sampled_from(
    [
        *("cd spack", "export CC=gcc", "| hdf5 |", "make -j8", "gcc --version", "Done!", "```"),
        *("hdf5 is a library", "$ ls -l", "https://example.org/hdf5", "spack compiler find"),
        *("100%", "<hdf5>", "git clone x", "ftp://x@y", "spack mirror add hdf5 /x"),
    ]
)


@given(st.lists(st.one_of(SPECS, OTHERS.map(lambda line: f"!{line}")), max_size=12))
def test_other_lines_change_nothing(lines: list[str]) -> None:
    """Whatever stands between specs, the same specs count, and all other lines are named."""
    specs = [line for line in lines if line[0] != "!"]
    others = [line[1:] for line in lines if line[0] == "!"]
    if not specs and others:
        with pytest.raises(UnreadableEnvironment, match="there is no spec in this text"):
            read("\n".join(others))
        return
    found = read("\n".join(line.removeprefix("!") for line in lines))

    alone = read("\n".join(specs))
    assert [spec.text for spec in found.specs] == [spec.text for spec in alone.specs]
    assert len(alone.specs) == len(specs)
    assert sorted(found.others) == sorted(others)
    assert alone.others == ()
    assert any(f"{len(others):,} line" in note for note in found.notes) == bool(others)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version https://git-lfs.github.com/spec/v1\nsize 1\n", "Git LFS pointer"),
        ("\n<!DOCTYPE html>\n<title>404</title>", "an HTML page"),
        ("<?xml version='1.0'?><html/>", "an HTML page"),
        ("<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "an XML document"),
        ("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{}\n", "spec.json.sig"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n", "a PGP key"),
        ("spack:\n<<<<<<< HEAD\n  a: 1\n=======\n>>>>>>> x\n", ":2: has an unresolved merge"),
        ('{"a":\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> x\n}', ":2: has an unresolved merge"),
        ('[{"name": "zlib", "arch": {}}]', "without their hashes"),
        ('[{"zlib": {"version": "1.2", "arch": {}}}]', "without their hashes"),
        ('{"database": {"version": "8"}}', "the index of a build cache"),
        ('{"version": 3, "data": []}', "a manifest of a build cache"),
        ('["zlib"]', "is JSON, but neither"),
        ('{"a": 1}', "is JSON, but neither"),
        ("[]", "is JSON, but neither"),
        ('[{"name": "zlib", ', ":1: broken JSON at column 19"),
    ],
)
def test_other_files_are_named(text: str, said: str) -> None:
    """A file that was given by mistake is named for what it is, not for what it lacks."""
    with pytest.raises(UnreadableEnvironment, match=re.escape(said)):
        read(text)
