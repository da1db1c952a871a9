"""The builder under attack: a real process with limited memory, and the checks of its
results.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

MOST_MEGABYTES = 600
"""Memory that a command may take."""
SECONDS = 60.0
"""Processor time that a build of a few pages may take."""
MOST_OUTPUT = 200
"""Last characters of the output that a fault shows."""
CLEAR_REFS = Path("/proc/self/clear_refs")
BUILT = {"built.db", "built.inspect.json"}
"""Files that a build writes."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a command, with the memory of its largest process."""

    status: int
    output: str
    megabytes: float
    cpu_seconds: float

    def faults(
        self, statuses: Collection[int] = (0, 1), seconds: float = SECONDS
    ) -> list[str]:
        """Return the faults of a run with any input.

        Args:
            statuses: the allowed exit statuses.
            seconds: the allowed processor time.
        """
        faults = []
        end = self.output[-MOST_OUTPUT:]
        if self.status not in statuses:
            faults.append(f"ended with status {self.status}: {end!r}")
        if "Traceback" in self.output:
            faults.append(f"a traceback: {end!r}")
        if self.megabytes > MOST_MEGABYTES:
            faults.append(f"took {self.megabytes:.0f} MB")
        if self.cpu_seconds > seconds:
            faults.append(f"took {self.cpu_seconds:.0f} s of CPU")
        return faults


def run(*arguments: object) -> Run:
    """Run a command of the builder, reading in one separate process."""
    return run_command(*arguments, "--jobs", "1")


def run_command(*arguments: object) -> Run:
    """Run `spack-cache-db` with these arguments."""
    command = [sys.executable, "-m", "spack_cache_db", *map(str, arguments)]
    # The peak memory of a process begins with that of its parent: reset it (proc(5),
    # "clear_refs").
    CLEAR_REFS.write_text("5", encoding="ascii")
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        output = process.stdout.read()
        # wait4 alone returns what this process used.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Run(
        status=process.returncode,
        output=output,
        megabytes=usage.ru_maxrss / 1024,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
    )


def judged_build(source: Path, folder: Path) -> tuple[Run, list[str]]:
    """Build a source in place of an older file, and return the faults of the result."""
    output = folder / "built.db"
    older = b"an older file"
    output.write_bytes(older)
    built = run("build", source, "-o", output, "--force")
    faults = built.faults()

    # A build replaces the file if it succeeds, and only then.
    content = output.read_bytes()
    if built.status != 0 and content != older:
        faults.append("a build that failed has replaced the older file")
    if built.status == 0 and not content.startswith(b"SQLite"):
        faults.append("a build that succeeded has written no file")

    names = {path.name for path in folder.iterdir()}
    litter = names - BUILT - {source.name}
    faults += [f"left {name}" for name in sorted(litter)]
    return built, faults
