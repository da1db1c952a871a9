"""The program of a worker process, which runs tasks one after the other.

A task is a function, its arguments and the seconds of processor time that it may take. Tasks arrive
pickled. Outcomes are sent as MessagePack, because the server must not unpickle bytes that a visitor
may have influenced. Timers of the kernel end the process if a task exceeds its time, even if SQLite
does not return. By the clock, a task may take `CLOCK_TIMES` as long.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from spack_cache_db.site.answers import Answer, BadAddress, Site, SiteSettings
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.site.sandbox.statements import (
    Rows,
    authorize,
    bound_heap,
    escape_fts,
    restrict,
)

STEPS = 1_000
"""Instructions of SQLite's virtual machine between two checks of the time, as in Datasette."""
CLOCK_TIMES = 5
GRACE_SECONDS = 0.3
"""Time between the interruption of a statement and the end of the process."""
BOUNDS = {"RLIMIT_AS": 400 << 20, "RLIMIT_FSIZE": 256 << 20, "RLIMIT_CORE": 0}
"""Limits of the process, by their names in the module `resource`; SQLite sorts in files."""
OOM_SCORE = "500"
"""`oom_score_adj`: if memory runs out, Linux ends a worker before the server."""
ALARMS = (signal.SIGPROF, signal.SIGALRM)
"""The signals that end the process: after its processor time, and after its time by the clock."""

Call = Callable[..., Any]
Result = Answer | Rows


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a task has no result.

    Attributes:
        kind: an exception of `sqlite3`, a key of `FAILURES`, or empty for a bug.
        message: the exception's message, or the traceback of a bug.
    """

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task or its failure, and the seconds of processor time that it took.

    `rows` are the fields of `Rows`, because msgspec cannot decode a union of `str` and `bytes`.
    """

    answer: Answer | None = None
    rows: tuple[list[str], list[tuple[Any, ...]], bool] | None = None
    failure: Failure | None = None
    seconds: float = 0.0


FAILURES: dict[str, type[Exception]] = {"MemoryError": MemoryError, "BadAddress": BadAddress}
INTERRUPTED = Failure("OperationalError", "interrupted")
NO_MEMORY = Failure("MemoryError", "the query needs more memory than this server gives to one")


def encoded(outcome: Outcome) -> bytes:
    """Return an outcome as MessagePack."""
    import msgspec  # Missing in Pyodide.

    return msgspec.msgpack.encode(outcome)


def decoded(message: bytes) -> Outcome:
    """Return an outcome from MessagePack; `msgspec.MsgspecError` if it is not one."""
    import msgspec

    return msgspec.msgpack.decode(message, type=Outcome)


def run_task(site: Site, call: Call, arguments: tuple[Any, ...], seconds: float) -> Outcome:
    """Return the outcome of `call(site, *arguments)`.

    Args:
        site: the site of this process.
        call: returns an `Answer` or `Rows`.
        arguments: its other arguments.
        seconds: processor time after which SQLite interrupts its statements.
    """
    began = time.process_time()
    site.conn.set_progress_handler(lambda: time.process_time() > began + seconds, STEPS)
    answer, rows, failure = None, None, None
    try:
        result: Result = call(site, *arguments)
        if isinstance(result, Rows):
            rows = (result.columns, [*result.rows], result.is_cut)
        else:
            answer = result
    except sqlite3.Error as error:
        # Our subclasses count as the exception of SQLite that they extend.
        names = (base.__name__ for base in type(error).__mro__)
        failure = Failure(next(name for name in names if hasattr(sqlite3, name)), str(error))
    except MemoryError:
        failure = NO_MEMORY
    except BadAddress as error:
        failure = Failure("BadAddress", str(error))
    except Exception:
        failure = Failure("", traceback.format_exc())
    finally:
        site.conn.set_progress_handler(None, 0)
    return Outcome(answer, rows, failure, time.process_time() - began)


def run_on(site: Site, call: Call, *arguments: Any) -> Rows:
    """Call a function of `statements` with the connection of a site."""
    rows: Rows = call(site.conn, *arguments)
    return rows


def open_site(settings: SiteSettings) -> Site:
    """Return the site over the database that its settings name."""
    return Site(settings, connect(settings.uri))


def connect(uri: str) -> sqlite3.Connection:
    """Open a database as Datasette does, with the functions that its pages may call in SQL."""
    conn = sqlite3.connect(uri, uri=True)
    conn.text_factory = lambda text: str(text, "utf-8", "replace")
    conn.create_function("escape_fts", 1, escape_fts)
    sql_functions.register(conn)
    restrict(conn)
    authorize(conn)
    return conn


def limit_process(niceness: int) -> None:
    """Apply the limits of this process, as far as the system allows it."""
    bound_heap()
    import resource  # Missing in Pyodide, which has no processes either.

    for name, limit in BOUNDS.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (limit, limit))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
    with contextlib.suppress(OSError):
        os.nice(niceness)


def set_timers(seconds: float) -> None:
    """End this process after these seconds and a short grace; never, if they are 0."""
    grace = GRACE_SECONDS if seconds else 0
    signal.setitimer(signal.ITIMER_PROF, seconds + grace)
    signal.setitimer(signal.ITIMER_REAL, CLOCK_TIMES * seconds + grace)


def main() -> None:
    """Run the tasks that the server sends, until it closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ALARMS:
        signal.signal(number, signal.SIG_DFL)
    server = Connection(int(sys.argv[1]))
    # The server has ended, or does not read the answer any more.
    with contextlib.suppress(EOFError, ConnectionError):
        settings, niceness = server.recv()
        limit_process(niceness)
        site = open_site(settings)
        # Most tasks need this module; the first one should not wait for it.
        importlib.import_module("spack_cache_db.site.routes")
        # Garbage collections during tasks skip the objects of imported modules.
        gc.collect()
        gc.freeze()
        server.send_bytes(encoded(Outcome()))
        # From now on, messages may contain texts of visitors.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        while True:
            call, arguments, seconds = server.recv()
            set_timers(seconds)
            message = encoded(run_task(site, call, arguments, seconds))
            set_timers(0)
            server.send_bytes(message)
