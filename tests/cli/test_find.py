"""cli.find: what is printed where, and with which exit status."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spack_cache_db import machine
from spack_cache_db.build import build
from spack_cache_db.cli import cli, output
from spack_cache_db.machine import Machine
from tests.indexes import REAL_FILE, hash_of
from tests.processes import completed
from tests.small_sources import LOOK_ALIKES, built


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes into a pipe of no known width, wherever the tests run."""
    monkeypatch.delenv("COLUMNS", raising=False)


def run(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli, ["find", *map(str, arguments)])


def test_a_table(samples_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People get totals, what all rows share, and a table whose columns are aligned."""
    monkeypatch.delenv("COLUMNS", raising=False)

    result = run("py-mpi4py@4 target=x86_64_v3", samples_file)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "3 configurations, 55 specs",
        "all: py-mpi4py@4.0.1 linux x86_64_v3 build_system=python_pip",
        "",
        "version  compiler                         os           specs  releases  stacks",
        "4.0.1    gcc@11.4.0                       ubuntu22.04  30     develop"
        "   e4s e4s-rocm-external hep",
        "4.0.1    gcc@13.2.0                       ubuntu24.04  15     develop"
        "   ml-linux-x86_64-cpu ml-linux-x86_64-cuda",
        "4.0.1    intel-oneapi-compilers@2025.1.0  ubuntu22.04  10     develop   e4s-oneapi",
    ]


def test_names_of_modules(samples_file: Path) -> None:
    """A module is found by its hash, or by its name and version if its hash is not known."""
    by_hash = run("py-mpi4py/4.0.1-gcc-11.4.0-2feova4", samples_file)
    assert "Note: read as 'py-mpi4py/2feova4'" in by_hash.stderr
    assert by_hash.stdout.startswith("1 configuration,")
    by_name = run("py-mpi4py-4.0.1-gcc-11.4.0-aaaaaaa", samples_file)
    assert "Note: read as 'py-mpi4py@4.0.1'" in by_name.stderr
    assert (by_hash.exit_code, by_name.exit_code) == (0, 0)


def test_a_table_fits_the_terminal(samples_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow terminal shows every word that a wide one does; what does not fit is wrapped."""
    whole = run("py-mpi4py@4 target=x86_64_v3", samples_file).stdout
    monkeypatch.setenv("COLUMNS", "60")

    shown = run("py-mpi4py@4 target=x86_64_v3", samples_file).stdout

    assert max(map(len, shown.splitlines())) <= 60
    assert {*whole.replace(":", "").split()} <= {*shown.replace(":", "").split()}


def test_a_terminal_shows_fifty_rows(
    real_index_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is counted below; --all and --limit show more, and a pipe gets all rows."""
    whole = run("*", real_index_file).stdout
    count = len(json.loads(run("*", real_index_file, "--json").stdout))
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "100000")

    for options in ((), ("--hashes",)):
        *_, end = shown = run("*", real_index_file, *options).stdout.splitlines()
        assert len(shown) == 3 + 1 + output.MOST_ROWS + 2
        assert end.endswith("more rows: --all shows all")
    assert f"{count - output.MOST_ROWS:,} more rows" in run("*", real_index_file).stdout
    assert run("*", real_index_file, "--all").stdout == whole
    assert len(run("*", real_index_file, "--limit", 60).stdout.splitlines()) == 4 + 60
    assert len(json.loads(run("*", real_index_file, "--json").stdout)) == count


def test_one_row_has_all_its_columns(samples_file: Path) -> None:
    """A single configuration is shown whole, with nothing folded away."""
    result = run("py-mpi4py@3", samples_file)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[2].split() == [
        *("package", "version", "compiler", "os", "platform", "target", "specs", "releases"),
        *("variants", "stacks"),
    ]


def test_hashes(samples_file: Path) -> None:
    """With --hashes there is one row per spec."""
    result = run("py-mpi4py@3", samples_file, "--hashes")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("1 configuration, 5 specs\n")
    assert len(result.stdout.splitlines()) == 3 + 5


def test_json(samples_file: Path) -> None:
    """Machines get every field: one object for a configuration, or for each of its specs."""
    (plain,) = json.loads(run("py-mpi4py@3", samples_file, "--json").stdout)
    hashed = json.loads(run("py-mpi4py@3", samples_file, "--json", "--hashes").stdout)

    assert plain["releases"] == ["develop"]
    assert "hash" not in plain
    assert plain.pop("spec_count") == len(hashed) == len({each.pop("hash") for each in hashed})
    assert {tuple(each) for each in hashed} == {(*plain, "differences")}


@pytest.mark.parametrize(("options", "count"), [((), 7), (("--hashes",), 91)])
def test_csv(samples_file: Path, options: tuple[str, ...], count: int) -> None:
    """CSV has a header and one line per configuration or spec, and nothing else."""
    result = run("py-mpi4py", samples_file, "--csv", *options)

    table = list(csv.DictReader(io.StringIO(result.stdout)))

    assert result.exit_code == 0, result.output
    assert len(table) == count
    assert ("hash" in table[0]) is bool(options)


BUILDS = """
SELECT hash, package, version, compiler, os, platform, target, variants, stacks, releases,
  first_seen, last_seen
FROM builds ORDER BY hash
"""


@pytest.mark.parametrize("output", ["--json", "--csv"])
def test_a_row_for_a_spec_is_of_that_spec_alone(all_samples_file: Path, output: str) -> None:
    """Each row of --hashes says what `builds` says: the spec's own releases, stacks and days."""
    text = run("*", all_samples_file, "--hashes", output).stdout
    found = json.loads(text) if output == "--json" else list(csv.DictReader(io.StringIO(text)))

    def listed(value: Any) -> list[str]:
        return value.split() if isinstance(value, str) else list(value)

    connection = sqlite3.connect(all_samples_file)
    expected = [
        [*row[:7], row[7].split(), json.loads(row[8]), row[9], row[10] or "", row[11] or ""]
        for row in connection.execute(BUILDS)
    ]
    connection.close()

    assert (
        sorted(
            [
                *(each[name] for name in ("hash", "package", "version", "compiler", "os")),
                *(each[name] for name in ("platform", "target")),
                listed(each["variants"]),
                listed(each["stacks"]),
                len(listed(each["releases"])),
                each["first_seen"] or "",
                each["last_seen"] or "",
            ]
            for each in found
        )
        == expected
    )


def test_narrowed(samples_file: Path) -> None:
    """Release, stack and limit reach the search."""
    options = ("--release", "develop", "--stack", "e4s", "--limit", 1)
    found = json.loads(run("py-mpi4py", samples_file, "--json", *options).stdout)

    assert [(each["compiler"], each["spec_count"]) for each in found] == [("gcc@11.4.0", 23)]


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (("--limit", "2"), "2 of 7 configurations, "),
        (("--limit", "1", "--release", "develop"), "1 of 7 configurations, "),
        (("--limit", "7"), "7 configurations, "),
        ((), "7 configurations, "),
    ],
)
def test_a_limit_says_how_many_match(
    samples_file: Path, options: tuple[str, ...], first: str
) -> None:
    """The table's first line counts all configurations that match, beside those that it shows."""
    assert run("py-mpi4py", samples_file, *options).stdout.startswith(first)


def test_install(samples_file: Path) -> None:
    """With --install the commands follow that install the first row."""
    result = run("py-mpi4py@3", samples_file, "--install")

    assert result.exit_code == 0, result.output
    mirror, trust, install = result.stdout.splitlines()[-3:]
    assert mirror == "spack mirror add develop https://binaries.spack.io/develop"
    assert trust == "spack buildcache keys --install --trust"
    assert install.startswith("spack install --cache-only py-mpi4py/")


def test_install_from_a_mirror_without_an_address(tmp_path: Path) -> None:
    """Where nothing says where the mirror is, a comment before the commands says what to do."""
    build([REAL_FILE], tmp_path / "x.db")
    result = run("zlib-ng", tmp_path / "x.db", "--install")

    note, mirror, *_ = result.stdout.splitlines()[-4:]
    assert (
        note == "# The address of the mirror is not known: put it in place of URL-of-your-mirror."
    )
    assert mirror == "spack mirror add root URL-of-your-mirror"


def test_caveats_are_said(samples_file: Path) -> None:
    """An answer by compiler comes with what pages do not show, apart from the rows."""
    result = run("py-mpi4py %gcc@11", samples_file)

    assert result.exit_code == 0, result.output
    assert "Note: one compiler per binary is known" in result.stderr


def test_here(samples_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --here only what the machine can run is left, and the machine is named."""
    monkeypatch.setattr(machine, "this_machine", lambda: Machine("zen3", "ubuntu24.04", "linux"))

    result = run("py-mpi4py", samples_file, "--here", "--json")

    assert [each["target"] for each in json.loads(result.stdout)] == ["x86_64_v3"]
    assert "this machine is zen3, ubuntu24.04, linux" in result.stderr


def test_here_says_what_it_cannot_know(samples_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown operating system is said, and does not narrow the answer."""
    mac = Machine("m2", None, "darwin", ("Spack's name of macOS 99 is not known",))
    monkeypatch.setattr(machine, "this_machine", lambda: mac)

    result = run("py-mpi4py", samples_file, "--here", "--json")

    assert [each["os"] for each in json.loads(result.stdout)] == ["sequoia"]
    assert "macOS 99 is not known: any operating system is shown" in result.stderr


def test_nothing_runs_here(samples_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine for which nothing was built gives no rows, status 1."""
    monkeypatch.setattr(machine, "this_machine", lambda: Machine("riscv64", "debian13", "linux"))

    result = run("py-mpi4py", samples_file, "--here")

    assert result.exit_code == 1, result.output
    assert "without os=debian13 and host riscv64: 6 configurations" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "status"), [("py-mpi4py", 0), ("nothing", 1), ("a@@", 2)])
def test_a_real_process(samples_file: Path, spec: str, status: int) -> None:
    """The statuses are those of the process, and nothing ends in a traceback."""
    command = [sys.executable, "-m", "spack_cache_db", "find", spec, str(samples_file)]

    done = completed(command)

    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_dependencies(tmp_path: Path) -> None:
    """Of two specs that look alike one is found; what cannot be asked is counted in a note."""
    file = built(LOOK_ALIKES, tmp_path)

    result = run("app ^mpich", file, "--hashes", "--csv")
    installed = run("app ^openmpi", file, "--install", "--release", "v1.9")

    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert (row["hash"], row["releases"]) == (hash_of("one"), "develop")
    assert result.stderr == (
        "Note: 1 more spec may satisfy this, but nothing in this file shows it\n"
    )
    assert f"app/{hash_of('two')[:7]}" in installed.stdout


def test_what_people_paste(samples_file: Path) -> None:
    """A command or a line that Spack printed is answered as the spec in it, and a note says so."""
    spec, hashed = "py-mpi4py@4 target=x86_64_v3", "py-mpi4py@4.0.1 /2feova4"
    command = run(f"$ spack install --fresh -j 8 '{spec}'", samples_file)
    line = run("[+]  2feova4  py-mpi4py@4.0.1", samples_file)

    assert (command.exit_code, command.stdout) == (0, run(spec, samples_file).stdout)
    assert "skipped: install --fresh -j 8" in command.stderr
    assert (line.exit_code, line.stdout) == (0, run(hashed, samples_file).stdout)
    assert "read as" in line.stderr
    assert "read as" not in run(spec, samples_file).stderr


def test_specs_of_before_spack_1_0(samples_file: Path) -> None:
    """With `--spack 0.23` what follows a compiler is asked of the package."""
    old = run("py-mpi4py %gcc@13 target=:zen3", samples_file, "--spack", "0.23")

    assert old.exit_code == 0, old.output
    assert old.stdout == run("py-mpi4py target=:zen3 %gcc@13", samples_file).stdout
    assert run("py-mpi4py", samples_file, "--spack", "new").exit_code == 2
