"""cli: reports for people and machines, and what happens when the disk says no."""

import resource
import sys
from pathlib import Path

import pytest

from tests.commands import OLD, run, untouched
from tests.pagetexts import SAMPLES
from tests.processes import completed


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file stands where the output's folder would have to be."""
    (tmp_path / "file").write_bytes(OLD)
    output = tmp_path / "file" / "x.db"
    result = run("build", SAMPLES, "-o", output)

    assert result.exit_code == 2, result.output
    assert result.stderr == (
        f"Error: {output}: cannot be written: {tmp_path}/file is not a folder; "
        "free space or choose another place with -o. "
        "The old file, if there was one, is untouched.\n"
    )
    assert (tmp_path / "file").read_bytes() == OLD


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 4096, 100_000, 200_000])
def test_a_full_disk_leaves_the_old_file(
    limit: int, tmp_path: Path, output: Path
) -> None:
    """A limit on the size of files stands in for the disk: one line, nothing left
    behind.
    """
    done = completed(
        [
            sys.executable,
            "-m",
            "spack_cache_db",
            "build",
            SAMPLES,
            "-o",
            output,
            "--jobs",
            "1",
            "--force",
        ],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2
    assert done.stdout == ""

    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {output}: cannot be written: ")
    assert line.endswith("The old file, if there was one, is untouched.")
    assert untouched(output)


def test_build_ends_with_a_line_of_totals(tmp_path: Path) -> None:
    """What was built, how large it is, and how long it took."""
    output = tmp_path / "x.db"
    result = run("build", SAMPLES, "-o", output)

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(
        f"{output}: 5 pages, 425 listings, 413 binaries, 24 configurations, 0 problems, "
    )
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [("info",), ("find", "zlib"), ("serve",)])
def test_a_folder_is_no_file(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Whoever names a folder where a file is read is told so, and not to build into
    it.
    """
    result = run(*arguments, tmp_path)
    assert result.exit_code != 0
    said = result.stderr.removeprefix(f"Loading {tmp_path} ...\n")
    assert said == f"Error: {tmp_path}: is a folder, expected a regular file\n"


@pytest.mark.parametrize("arguments", [("check",), ("verify", "{file}")])
def test_only_a_build_speaks_of_what_was_written(
    arguments: tuple[str, ...], samples_file: Path
) -> None:
    """What never writes does not say that it has not, nor how to build in spite of
    faults.
    """
    result = run(
        *(argument.format(file=samples_file) for argument in arguments), "no-such-page"
    )
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "Error: 1 fault in the input"
