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
    return CliRunner().invoke(cli, list(map(str, arguments)))


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return completed([sys.executable, "-m", "spack_cache_db", *map(str, arguments)])


PEAK_MEMORY = """
import resource, subprocess, sys
done = subprocess.run(
    [sys.executable, "-m", "spack_cache_db", *sys.argv[1:]],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(done.returncode, peak, flush=True)
sys.stdout.buffer.write(done.stdout)
"""
"""A program that runs the command, and prints its status and its peak memory first."""


def peak_memory(*arguments: object) -> tuple[int, int, str]:
    """Run the command; return its status, its peak memory in megabytes, and its
    output.
    """
    python = [sys.executable, "-c", PEAK_MEMORY, *map(str, arguments)]
    # A new process begins with the memory of the one that starts it, and a shell is
    # small.
    done = completed(["/bin/sh", "-c", '"$@"', "sh", *python], check=True)
    first_line, _, output = done.stdout.partition("\n")
    status, megabytes = first_line.split()
    return int(status), int(megabytes), output


def refusal(output: Path, *arguments: object) -> list[str]:
    """Build faulty sources; return the lines about their faults."""
    result = run("build", *arguments, "-o", output)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert untouched(output)
    *lines, last = result.stderr.splitlines()
    assert last == closing(len(lines))
    return lines


def untouched(output: Path) -> bool:
    """Return whether the old file is whole and has no new neighbour."""
    neighbours = list(output.parent.iterdir())
    return output.read_bytes() == OLD and neighbours == [output]


def closing(count: int) -> str:
    """Return the last line of a refusal."""
    faults = "fault" if count == 1 else "faults"
    return (
        f"Error: {count} {faults} in the input; nothing was written. "
        "Fix it, or leave it out with --keep-going."
    )
