"""Run a command and measure its wall time, its output, and the memory of all its
processes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import psutil  # type: ignore[import-untyped]

SAMPLE_EVERY = 0.05
FOLDER = Path(tempfile.gettempdir()) / "spack-cache-db-bench"
"""The default folder for corpora and databases."""


class _HasTime(Protocol):
    @property
    def seconds(self) -> float: ...


Timed = TypeVar("Timed", bound=_HasTime)
"""A run of a program, or what was measured in it."""


class CommandFailedError(Exception):
    """A measured command failed."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished command."""

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
    started, cpu = time.perf_counter(), _cpu_of_ended_children()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = _watch(process) if memory else 0
        output, _ = process.communicate()
        seconds = time.perf_counter() - started
    if process.returncode:
        raise CommandFailedError(
            f"{' '.join(command)}: status {process.returncode}\n{output}"
        )
    return Run(seconds, _cpu_of_ended_children() - cpu, output, peak)


def median_of(runs: Sequence[Timed]) -> Timed:
    """Return the run of median time; of two in the middle, the slower one."""
    in_order = sorted(runs, key=lambda run: run.seconds)
    return in_order[len(in_order) // 2]


def memory_of_tree(root: psutil.Process) -> int:
    """Return the memory of a process and its children, with shared pages counted once
    (PSS).
    """
    total = 0
    for process in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total


def _cpu_of_ended_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(process: subprocess.Popen[str]) -> int:
    root = psutil.Process(process.pid)
    peak = 0
    while process.poll() is None:
        with suppress(psutil.Error):
            peak = max(peak, memory_of_tree(root))
        time.sleep(SAMPLE_EVERY)
    return peak
