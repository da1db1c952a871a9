"""The command line as the tests call it, and what it must leave behind when it
refuses.
"""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from spack_cache_db.cli.main import cli
from spack_cache_db.schema import identity
from tests.processes import completed

OLD = b"SQLite format 3\0".ljust(68, b"\0") + identity.APPLICATION_ID.to_bytes(4, "big")
"""The first bytes of a database of this program."""


def run(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli, [*map(str, arguments)])


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return completed([sys.executable, "-m", "spack_cache_db", *map(str, arguments)])


def peak_memory(*arguments: object) -> tuple[int, int, str]:
    """Run the command; return its status, its peak memory in megabytes, and its
    output.
    """
    program = (
        "import resource, subprocess, sys\n"
        "run = subprocess.run([sys.executable, '-m', 'spack_cache_db', *sys.argv[1:]],\n"
        "    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024\n"
        "print(run.returncode, peak, flush=True)\n"
        "sys.stdout.buffer.write(run.stdout)\n"
    )
    # The shell is small: what it becomes was never this process.
    command = [
        "/bin/sh",
        "-c",
        '"$@"',
        "sh",
        sys.executable,
        "-c",
        program,
        *map(str, arguments),
    ]
    done = completed(command, check=True)
    first, _, output = done.stdout.partition("\n")
    status, megabytes = map(int, first.split())
    return status, megabytes, output


def closing(count: int) -> str:
    """Return the last line of a refusal."""
    return (
        f"Error: {count} fault{'s' if count > 1 else ''} in the input; nothing was written. "
        "Fix it, or leave it out with --keep-going."
    )


def untouched(output: Path) -> bool:
    """Whether the old file is whole and has no new neighbour."""
    return output.read_bytes() == OLD and [*output.parent.iterdir()] == [output]


def refusal(output: Path, *arguments: object) -> list[str]:
    """Build what has faults; return the lines about them."""
    result = run("build", *arguments, "-o", output)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert untouched(output)
    *lines, last = result.stderr.splitlines()
    assert last == closing(len(lines))
    return lines
