"""The builder under attack: a real process with limited memory, and the checks of its
results.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

MOST_MEGABYTES = 600
_PEAK = Path("/proc/self/clear_refs")
SECONDS = 60.0
"""Processor time allowed for one build of a few pages."""


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
        if self.status not in statuses:
            faults.append(f"ended with status {self.status}: {self.output[-200:]!r}")
        if "Traceback" in self.output:
            faults.append(f"a traceback: {self.output[-200:]!r}")
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
    _PEAK.write_text("5", encoding="ascii")
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Run(process.returncode, output, usage.ru_maxrss / 1024, cpu)


def judged_build(source: Path, folder: Path) -> tuple[Run, list[str]]:
    """Build a source in place of an older file, and return the faults of the result."""
    output = folder / "built.db"
    old = b"an older file"
    output.write_bytes(old)
    built = run("build", source, "-o", output, "--force")
    faults = built.faults()
    if built.status and output.read_bytes() != old:
        faults.append("a build that failed has replaced the older file")
    if not built.status and output.read_bytes()[:6] != b"SQLite":
        faults.append("a build that succeeded has written no file")
    litter = {path.name for path in folder.iterdir()} - {
        "built.db",
        "built.inspect.json",
    }
    faults += [f"left {name}" for name in sorted(litter - {source.name})]
    return built, faults


def enough(began: float, seconds: float) -> bool:
    """Return whether this time has passed since `began`."""
    return time.monotonic() > began + seconds
