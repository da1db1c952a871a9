"""The program of a sandbox process: it runs one task after the other on a connection of its own.

A task is a function, by its name, with its arguments and the seconds that it may take. `main` reads
tasks from standard input and writes their answers to standard output, pickled, until the input
ends. An alarm ends the process when the time of a task is over: the kernel rings it also while
SQLite is in the middle of a step, or Python in the middle of a regular expression.

The seconds are those of the processor: what a visitor may ask does not depend on how much others
ask at the same time. On the clock a task may take `CLOCK_TIMES` as long.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import pickle
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from spack_cache_db.query.connection import Lookups, read_lookups
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.site.sandbox.statements import (
    authorize,
    bound_heap,
    escape_fts,
    restrict,
)

STEPS = 1_000
"""Virtual machine instructions of SQLite between two looks at the time, as Datasette has it."""
CLOCK_TIMES = 5
GRACE_SECONDS = 0.3
"""For a task to end by itself, when SQLite next looks at the time."""
MEMORY_BYTES = 400 << 20
FILE_BYTES = 256 << 20
"""Of a temporary file, into which SQLite sorts."""
BOUNDS = {"RLIMIT_AS": MEMORY_BYTES, "RLIMIT_FSIZE": FILE_BYTES, "RLIMIT_CORE": 0}
"""Of this process, by the names of the module `resource`."""
FIRST_TO_GO = "500"
"""The score by which Linux, out of memory, ends this process before a server (`oom_score_adj`)."""
NICENESS = 5
"""The server comes first."""
ALARMS = (signal.SIGPROF, signal.SIGALRM)
"""Processor time is over, or time on the clock."""
TASKS = "spack_cache_db.site.loaders"
"""The module of most tasks; loaded early, so that the first task does not wait for it."""
LENGTH = 8
"""Bytes of a message's length, which stand before it."""

Call = Callable[..., object]


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a task has no answer.

    Attributes:
        kind: the name of an exception of `sqlite3`, `MemoryError`, or empty for any other.
        message: its message; of any other exception its traceback.
    """

    kind: str
    message: str


INTERRUPTED = TaskFailure("OperationalError", "interrupted")
NO_MEMORY = TaskFailure("MemoryError", "the query needs more memory than this server gives to one")


def run_task(conn: sqlite3.Connection, call: Call, arguments: tuple[Any, ...], end: float) -> Any:
    """Return what a function returns, or the `TaskFailure` that it ended in.

    Args:
        conn: its first argument.
        call: the function.
        arguments: its other arguments.
        end: when SQLite interrupts the function's statements, by `time.process_time`.
    """
    conn.set_progress_handler(lambda: time.process_time() > end, STEPS)
    try:
        return call(conn, *arguments)
    except sqlite3.Error as error:
        # Subclasses that are not SQLite's own are told by the first of its names.
        names = (each.__name__ for each in type(error).__mro__)
        return TaskFailure(next(name for name in names if hasattr(sqlite3, name)), str(error))
    except MemoryError:
        return NO_MEMORY
    except Exception:
        return TaskFailure("", traceback.format_exc())
    finally:
        conn.set_progress_handler(None, 0)


def with_lookups(conn: sqlite3.Connection, load: Call, *arguments: Any) -> object:
    """Call a page's function with the file's small tables."""
    return load(_lookups(conn), *arguments)


@functools.cache
def _lookups(conn: sqlite3.Connection) -> Lookups:
    return read_lookups(conn)


def connect(uri: str) -> sqlite3.Connection:
    """Open a file as Datasette does, with the functions that SQL of its pages may call."""
    conn = sqlite3.connect(uri, uri=True)
    conn.text_factory = lambda encoded: str(encoded, "utf-8", "replace")
    conn.create_function("escape_fts", 1, escape_fts)
    sql_functions.register(conn)
    restrict(conn)
    authorize(conn)
    return conn


def bound_itself() -> None:
    """Have the kernel hold this process to its bounds, where whoever started it allows that."""
    bound_heap()
    import resource  # Pyodide, which has no processes either, lacks it.

    for kind, most in BOUNDS.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, kind), (most, most))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
    with contextlib.suppress(OSError):
        os.nice(NICENESS)


def framed(message: object) -> bytes:
    """Return a message as it is sent: pickled, after its length."""
    pickled = pickle.dumps(message)
    return len(pickled).to_bytes(LENGTH, "big") + pickled


def received(stream: BinaryIO) -> Any:
    """Read a message of the server; None where the server has gone."""
    length = int.from_bytes(stream.read(LENGTH), "big")
    pickled = stream.read(length)
    # The server is to be trusted; only what a process answers may be a visitor's work.
    return pickle.loads(pickled) if length and len(pickled) == length else None


def main(uri: str) -> None:
    """Run tasks over a file until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in ALARMS:
        signal.signal(each, signal.SIG_DFL)
    bound_itself()
    conn, answers = connect(uri), sys.stdout.buffer
    importlib.import_module(TASKS)
    _keep()
    # A server that has ended meanwhile reads nothing, and asks for nothing below.
    with contextlib.suppress(BrokenPipeError):
        os.write(answers.fileno(), framed("ready"))
    # From here on a visitor decides what would be written there.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    while (task := received(sys.stdin.buffer)) is not None:
        call, arguments, seconds = task
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds + GRACE_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, CLOCK_TIMES * seconds + GRACE_SECONDS)
        answer = run_task(conn, call, arguments, began + seconds)
        message = framed((answer, time.process_time() - began))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(message)
        answers.flush()
        _keep()


def _keep() -> None:
    """Collect garbage, and do not look through what is left again.

    What was imported, and what a task has kept for later ones, stays. A collection that looks
    through all of it in the middle of a task takes 45 ms.
    """
    gc.collect()
    gc.freeze()
