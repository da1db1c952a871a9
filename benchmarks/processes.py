"""Processor time and memory of a process and its children, from /proc.

A process that ends meanwhile is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
KILOBYTE = 1024
"""Bytes of a "kB" in /proc."""


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    # The list grows while it is read: children of children are found as well.
    for parent in found:
        found += children(parent)
    return found


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and that have not ended."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return found


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a family, with that of its ended processes."""
    ticks = 0
    for member in family(pid):
        with suppress(OSError):
            # utime, stime, cutime and cstime: see proc(5).
            times = _fields_of_stat(member)[11:15]
            ticks += sum(int(time) for time in times)
    return ticks / TICKS_PER_SECOND


def peak_bytes(pid: int) -> int:
    """Return the most memory that one process of a family has had at any time."""
    return max(_sizes(pid, "status", "VmHWM"), default=0)


def resident_bytes(pid: int) -> int:
    """Return the memory that the largest process of a family has now."""
    return max(_sizes(pid, "status", "VmRSS"), default=0)


def family_bytes(pid: int) -> int:
    """Return the memory of a whole family; memory that processes share counts once."""
    return sum(_sizes(pid, "smaps_rollup", "Pss"))


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not dead or a zombie."""
    try:
        state = _fields_of_stat(pid)[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def _fields_of_stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat that follow the name of the program."""
    text = Path(f"/proc/{pid}/stat").read_text()
    # The name stands in parentheses, and may contain blanks and parentheses.
    after_name = text.rpartition(")")[2]
    return after_name.split()


def _sizes(pid: int, file: str, name: str) -> Iterator[int]:
    """Yield a size of each process of a family, in bytes."""
    pattern = re.compile(rf"^{name}:\s*(\d+) kB", re.MULTILINE)
    for member in family(pid):
        with suppress(OSError):
            found = pattern.search(Path(f"/proc/{member}/{file}").read_text())
            # A kernel thread or a zombie has no memory.
            if found is not None:
                yield int(found[1]) * KILOBYTE
