"""cli.find: what `find` prints where, and with which exit status."""

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli import tables
from spack_cache_db.cli.main import cli
from spack_cache_db.spack import machine
from spack_cache_db.spack.machine import Machine
from tests.commands import process
from tests.indexes import REAL_FILE, hash_of
from tests.small_sources import LOOK_ALIKES, built

SPEC = "py-mpi4py@4 target=x86_64_v3"


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes into a pipe of no known width, wherever the tests run."""
    monkeypatch.delenv("COLUMNS", raising=False)


def run(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli, ["find", *map(str, arguments)])


def test_a_table(samples_file: Path) -> None:
    """People get totals, what all rows share, and a table whose columns are aligned."""
    assert run(SPEC, samples_file).stdout.splitlines() == [
        "3 configurations, 55 binaries",
        "all: py-mpi4py@4.0.1 linux x86_64_v3 build_system=python_pip",
        "",
        "version  compiler                         os           binaries  releases  stacks",
        "4.0.1    gcc@11.4.0                       ubuntu22.04  30        develop"
        "   e4s e4s-rocm-external hep",
        "4.0.1    gcc@13.2.0                       ubuntu24.04  15        develop"
        "   ml-linux-x86_64-cpu ml-linux-x86_64-cuda",
        "4.0.1    intel-oneapi-compilers@2025.1.0  ubuntu22.04  10        develop   e4s-oneapi",
    ]


def test_one_row_has_all_its_columns(samples_file: Path) -> None:
    """A single configuration is shown whole; with --hashes there is one row per
    spec.
    """
    lines = run("py-mpi4py@3", samples_file).stdout.splitlines()
    assert " ".join(lines[2].split()) == (
        "package version compiler os platform target binaries releases variants stacks"
    )

    hashes = run("py-mpi4py@3", samples_file, "--hashes").stdout.splitlines()
    assert (hashes[0], len(hashes)) == ("1 configuration, 5 binaries", 3 + 5)


def test_a_table_fits_the_terminal(
    samples_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A narrow terminal leaves out the least useful columns, and names them below the
    table.
    """
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(SPEC, samples_file).stdout.splitlines()

    assert shown[3].split() == ["version", "compiler", "os", "binaries", "releases"]
    assert shown[-1] == "left out of this narrow table: stacks"

    monkeypatch.setenv("COLUMNS", "60")
    shown = run(SPEC, samples_file).stdout.splitlines()
    assert shown[-1] == "left out of this narrow table: releases, stacks"
    assert max(map(len, shown)) <= 60


def test_a_terminal_shows_fifty_rows(
    real_index_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is counted below; --all and --limit show more, and a pipe gets
    all rows.
    """
    whole = run("*", real_index_file).stdout
    count = len(json.loads(run("*", real_index_file, "--json").stdout))
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "100000")

    for options in ((), ("--hashes",)):
        *_, end = shown = run("*", real_index_file, *options).stdout.splitlines()
        assert len(shown) == 3 + 1 + tables.MOST_ROWS + 2
        assert end.endswith("more rows: --all shows all")
    assert f"{count - tables.MOST_ROWS:,} more rows" in run("*", real_index_file).stdout
    assert run("*", real_index_file, "--all").stdout == whole
    assert len(run("*", real_index_file, "--limit", 60).stdout.splitlines()) == 4 + 60


SEEN = ("first_seen", "last_seen")
BUILDS = """
SELECT hash, package, version, compiler, os, platform, target, variants, stacks, release_count,
  first_seen, last_seen
FROM builds ORDER BY hash
"""


def test_a_row_for_a_spec_is_of_that_spec_alone(all_samples_file: Path) -> None:
    """Each row of --hashes says what `builds` says: the spec's own releases, stacks and
    days.
    """
    found = json.loads(run("*", all_samples_file, "--hashes", "--json").stdout)
    with sqlite3.connect(all_samples_file) as connection:
        expected = [
            [*row[:7], row[7].split(), json.loads(row[8]), *row[9:]]
            for row in connection.execute(BUILDS)
        ]
    names = (
        "hash",
        "package",
        "version",
        "compiler",
        "os",
        "platform",
        "target",
        "variants",
    )
    rows: list[list[Any]] = []
    for row in found:
        words = [row[name] for name in (*names, "stacks")]
        seen = [row[name] for name in SEEN]
        rows.append([*words, len(row["releases"]), *seen])

    assert sorted(rows, key=lambda row: str(row[0])) == expected


def test_install(samples_file: Path, tmp_path: Path) -> None:
    """With --install the commands follow that install the first row, and what they
    lack.
    """
    mirror, trust, install = run(
        "py-mpi4py@3", samples_file, "--install"
    ).stdout.splitlines()[-3:]
    assert mirror == "spack mirror add develop https://binaries.spack.io/develop"
    assert trust == "yes | spack buildcache keys --install --trust"
    assert install.startswith("spack install --cache-only py-mpi4py/")

    build([REAL_FILE], tmp_path / "x.db")
    lines = run("zlib-ng", tmp_path / "x.db", "--install").stdout.splitlines()
    note, _, mirror, *_ = lines[-5:]
    assert note.startswith(
        "# The address of the mirror is not known: put it in place of URL-"
    )
    assert mirror == "spack mirror add root URL-of-your-mirror"


@pytest.mark.parametrize(
    ("this", "status", "oses", "said"),
    [
        (
            Machine("zen3", "ubuntu24.04", "linux"),
            0,
            {"ubuntu24.04"},
            "is zen3, ubuntu24.04, linu",
        ),
        (
            Machine("m2", None, "darwin", ("no name",)),
            0,
            {"sequoia"},
            "no name: any operating sys",
        ),
        (
            Machine("riscv64", "debian13", "linux"),
            1,
            set(),
            "without os=debian13 and host riscv64",
        ),
    ],
    ids=lambda value: getattr(value, "target", None),
)
def test_here(
    this: Machine,
    status: int,
    oses: set[str],
    said: str,
    samples_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With --here only what the machine can run is left; what is not known of it is
    said.
    """
    monkeypatch.setattr(machine, "this_machine", lambda: this)
    result = run("py-mpi4py", samples_file, "--here", "--json")

    assert result.exit_code == status
    assert {row["os"] for row in json.loads(result.stdout)} == oses
    assert said in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "status"), [("py-mpi4py", 0), ("nothing", 1), ("a@@", 2)]
)
def test_a_real_process(samples_file: Path, spec: str, status: int) -> None:
    """The statuses are those of the process, and nothing ends in a traceback."""
    done = process("find", spec, samples_file)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_dependencies(tmp_path: Path) -> None:
    """Of two specs that look alike one is found; what cannot be asked is counted in a
    note.
    """
    file = built(LOOK_ALIKES, tmp_path)
    result = run("app ^mpich", file, "--hashes", "--csv")
    (row,) = csv.DictReader(io.StringIO(result.stdout))

    assert (row["hash"], row["releases"]) == (hash_of("one"), "develop")
    assert result.stderr == (
        "Note: 1 more binary may satisfy this, but this database lacks the data\n"
    )

    installed = run("app ^openmpi", file, "--install", "--release", "v1.9")
    assert f"app/{hash_of('two')[:7]}" in installed.stdout


@pytest.mark.parametrize(
    ("pasted", "spec", "note"),
    [
        (
            f"$ spack install --fresh -j 8 '{SPEC}'",
            SPEC,
            "skipped: install --fresh -j 8",
        ),
        ("[+]  2feova4  py-mpi4py@4.0.1", "py-mpi4py@4.0.1 /2feova4", "read as"),
        (
            "py-mpi4py/4.0.1-gcc-11.4.0-2feova4",
            "py-mpi4py/2feova4",
            "read as 'py-mpi4py/2feova4'",
        ),
        (
            "py-mpi4py-4.0.1-gcc-11.4.0-aaaaaaa",
            "py-mpi4py@4.0.1",
            "read as 'py-mpi4py@4.0.1'",
        ),
        ("py-mpi4py %gcc@11", "py-mpi4py %gcc@11", "one compiler per binary"),
    ],
)
def test_what_people_paste(
    pasted: str, spec: str, note: str, samples_file: Path
) -> None:
    """A command, a line that Spack printed or a module is answered as its spec; a note
    says so.
    """
    result = run(pasted, samples_file)
    assert (result.exit_code, result.stdout) == (0, run(spec, samples_file).stdout)
    assert note in result.stderr


@pytest.mark.parametrize(
    ("spec", "options", "status", "said"),
    [
        ("py-mpi4pi", (), 1, "py-mpi4pi: no package has this name (near: py-mpi4py)"),
        ("zzzz", (), 1, "zzzz: no package has this name\n"),
        (
            "py-mpi4py target=zen3",
            (),
            1,
            "with target=:zen3: 4 configurations; x86_64_v3 runs on",
        ),
        ("py-mpi4py@99:", (), 1, "no binary in this database satisfies this spec"),
        ("py-mpi4py@99:", (), 1, "no version 99: of py-mpi4py: newest 4.0.1"),
        (
            "py-mpi4py %gcc target=:zen3",
            (),
            2,
            "perhaps you mean: py-mpi4py target=:zen3 %gcc",
        ),
        ("py-mpi4py@@4", (), 2, "  py-mpi4py@@4\n           ^\n"),
        ("", (), 2, "expected a package name"),
        ("py-mpi4py ^openmpi", (), 2, "this database has no dependency data"),
        ("mpi", (), 2, "virtual package"),
        (
            "py-mpi4py",
            ("--release", "devlop"),
            2,
            "no release is called 'devlop'; close: develop",
        ),
        ("py-mpi4py", ("--stack", "e4"), 2, "no stack is called 'e4'; close: e4s"),
        ("py-mpi4py", ("--limit", "0"), 2, "--limit"),
    ],
)
def test_no_rows(
    samples_file: Path, spec: str, options: tuple[str, ...], status: int, said: str
) -> None:
    """Without rows standard output is empty, and standard error says why."""
    result = run(spec, samples_file, *options)
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("mpi4py gcc 13 zen3", "py-mpi4py %gcc@13 --host zen3"),
        ("mpi4py in e4s", "py-mpi4py --stack e4s"),
        ("py-mpi4py nonsense", None),
    ],
)
def test_words_that_are_no_spec_are_read(
    samples_file: Path, words: str, proposed: str | None
) -> None:
    """The error has the spec and the options that they mean, and these work; it has
    none if a word has no meaning.
    """
    result = run(*words.split(), samples_file)
    _, _, advice = result.stderr.rstrip().partition("perhaps you mean: ")

    assert result.exit_code == 2
    assert "cannot read this spec" in result.stderr
    assert advice == (proposed or "")
    if proposed is not None:
        assert run(*proposed.split(), samples_file).exit_code == 0
