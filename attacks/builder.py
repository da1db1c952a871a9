"""The builder under attack: a real process with limited memory, and what it must not do."""

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
    """How a command ended: its status, its output, and the memory of its largest process."""

    status: int
    said: str
    output: str
    megabytes: float
    cpu_seconds: float

    def faults(self, statuses: Collection[int] = (0, 1), seconds: float = SECONDS) -> list[str]:
        """Return what is wrong with a run, whatever its input was.

        Args:
            statuses: with which it may end.
            seconds: the processor time that it may take.
        """
        faults = []
        if self.status not in statuses:
            faults.append(f"ended with status {self.status}: {self.said[-200:]!r}")
        if "Traceback" in self.said:
            faults.append(f"a traceback: {self.said[-200:]!r}")
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
    # Linux tells of a process at least what its parent had held when it was started; this makes it
    # what the parent holds now (proc(5), "clear_refs").
    _PEAK.write_text("5", encoding="ascii")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Run(process.returncode, said, said, usage.ru_maxrss / 1024, cpu)


def judged_build(source: Path, folder: Path) -> tuple[Run, list[str]]:
    """Build a source in place of an older file, and return what is wrong with the result."""
    output = folder / "built.db"
    old = b"an older file"
    output.write_bytes(old)
    built = run("build", source, "-o", output, "--force")
    faults = built.faults()
    if built.status and output.read_bytes() != old:
        faults.append("a build that failed has replaced the older file")
    if not built.status and output.read_bytes()[:6] != b"SQLite":
        faults.append("a build that succeeded has written no file")
    litter = {each.name for each in folder.iterdir()} - {"built.db", "built.inspect.json"}
    faults += [f"left {name}" for name in sorted(litter - {source.name})]
    return built, faults


def enough(began: float, seconds: float) -> bool:
    """Return whether this time has passed since `began`."""
    return time.monotonic() > began + seconds
