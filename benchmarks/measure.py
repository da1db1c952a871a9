"""Run a command and measure its wall time, its output, and the memory of all its
processes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.processes import family_bytes

SECONDS_BETWEEN_SAMPLES = 0.05
FOLDER = Path(tempfile.gettempdir()) / "spack-cache-db-bench"
"""The default folder for corpora and databases."""


class _HasTime(Protocol):
    @property
    def seconds(self) -> float: ...


Timed = TypeVar("Timed", bound=_HasTime)
"""A run of a program, or what was measured in it."""
Result = TypeVar("Result")


class CommandFailedError(Exception):
    """A measured command failed."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished command; its peak is 0 if memory was not measured."""

    seconds: float
    cpu_seconds: float
    output: str
    peak_bytes: int


def run_module(module: str, arguments: Sequence[str], *, memory: bool = False) -> Run:
    """Run `python -m module` and measure it, as `run_command` does."""
    return run_command([sys.executable, "-m", module, *arguments], memory=memory)


def run_command(command: Sequence[str], *, memory: bool = False) -> Run:
    """Run a command and measure it; sampling its `memory` slows it down a little.

    Raises:
        CommandFailedError: the command failed; the message holds what it printed.
    """
    # The system adds the time of a process to that of its parent when it has ended.
    started = time.perf_counter()
    cpu_before = _cpu_of_ended_children()
    peak_bytes = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        if memory:
            peak_bytes = _watch(process)
        output, _ = process.communicate()
        seconds = time.perf_counter() - started
    if process.returncode != 0:
        words = " ".join(command)
        raise CommandFailedError(f"{words}: status {process.returncode}\n{output}")
    cpu_seconds = _cpu_of_ended_children() - cpu_before
    return Run(seconds, cpu_seconds, output, peak_bytes)


def median_of(runs: Sequence[Timed]) -> Timed:
    """Return the run of median time; of two in the middle, the slower one."""
    in_order = sorted(runs, key=lambda run: run.seconds)
    return in_order[len(in_order) // 2]


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Do work in this process; return its result and the processor time in seconds."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def _cpu_of_ended_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(process: subprocess.Popen[str]) -> int:
    """Return the most memory that a process and its children have, until it ends."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, family_bytes(process.pid))
        time.sleep(SECONDS_BETWEEN_SAMPLES)
    return peak
