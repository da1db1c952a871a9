"""The program of a worker process, which runs tasks one after the other.

Tasks arrive pickled. Outcomes are sent as MessagePack, because the server must not unpickle bytes
that a visitor may have influenced.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spack_cache_db.site.answers import Answer, BadAddress, Site, SiteSettings
from spack_cache_db.site.sandbox import sql_functions, statements

MOST_TASKS = 1_000
"""Tasks of one process; a new one frees the memory that the old one has kept."""
STEPS = 1_000
"""Instructions of SQLite's virtual machine between two checks of the time, as in Datasette."""
GRACE_SECONDS = 0.3
"""Processor time between the interruption of a statement and the end of the process."""
BOUNDS = {"RLIMIT_AS": 400 << 20, "RLIMIT_FSIZE": 256 << 20, "RLIMIT_CORE": 0}
"""Limits of the process, by their names in the module `resource`; SQLite sorts in files."""
OOM_SCORE = "500"
"""`oom_score_adj`: if memory runs out, Linux ends a worker before the server."""
LENGTH_BYTES = 8
"""Size of the number before an outcome: its length."""
NO_MEMORY = "the query needs more memory than this server gives to one"

Call = Callable[..., Any]
Outcome = tuple[str, Any, float]
"""The name of a class of `RESULTS`, its arguments, and the processor time of the task."""
_ERRORS = (BadAddress, sqlite3.OperationalError, sqlite3.ProgrammingError, sqlite3.DatabaseError)
_RESULTS = (Answer, statements.Rows, MemoryError, RuntimeError, *_ERRORS)
RESULTS = {result.__name__: result for result in _RESULTS}
"""The classes that a task returns or raises; `RuntimeError` has the traceback of a bug."""


def run_task(site: Site, call: Call, arguments: tuple[Any, ...], seconds: float) -> Outcome:
    """Return the outcome of `call(site, *arguments)`, whose statements end after these seconds."""
    began = time.process_time()
    site.conn.set_progress_handler(lambda: time.process_time() > began + seconds, STEPS)
    try:
        result = call(site, *arguments)
        name, values = type(result).__name__, [*result]
    except MemoryError:
        name, values = "MemoryError", [NO_MEMORY]
    except _ERRORS as error:
        # Subclasses count as the first of these classes.
        name = next(kind.__name__ for kind in _ERRORS if isinstance(error, kind))
        values = [str(error)]
    except Exception:
        name, values = "RuntimeError", [traceback.format_exc()]
    return name, values, time.process_time() - began


def run_on(site: Site, call: Call, *arguments: Any) -> Any:
    """Call a function of `statements` with the connection of a site."""
    return call(site.conn, *arguments)


def open_site(settings: SiteSettings) -> Site:
    """Return the site over a database, opened as Datasette does and with the limits of visitors."""
    conn = sqlite3.connect(settings.uri, uri=True)
    conn.text_factory = lambda text: str(text, "utf-8", "replace")
    conn.create_function("escape_fts", 1, statements.escape_fts)
    sql_functions.register(conn)
    statements.restrict(conn)
    statements.authorize(conn)
    return Site(settings, conn)


def limit_process() -> None:
    """Apply the limits of this process, as far as the system allows it."""
    statements.bound_heap()
    import resource  # Missing in Pyodide, which has no processes either.

    for name, limit in BOUNDS.items():
        with suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (limit, limit))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")


def main() -> None:
    """Run the tasks that the server sends through standard input, until it closes that socket."""
    import msgspec  # Missing in Pyodide.

    def send(outcome: Outcome) -> None:
        message = msgspec.msgpack.encode(outcome)
        signal.setitimer(signal.ITIMER_PROF, 0)
        server.write(len(message).to_bytes(LENGTH_BYTES) + message)
        server.flush()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = socket.socket(fileno=sys.stdin.fileno()).makefile("rwb")
    # The server ends, or does not read the outcome any more.
    with suppress(EOFError, ConnectionError):
        (settings,) = pickle.load(server)
        limit_process()
        site = open_site(settings)
        send(("", [], 0.0))
        # From now on, messages may contain texts of visitors.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        for _ in range(MOST_TASKS):
            call, arguments, seconds = pickle.load(server)
            # The kernel ends this process if SQLite does not look at the time.
            signal.setitimer(signal.ITIMER_PROF, seconds + GRACE_SECONDS)
            send(run_task(site, call, arguments, seconds))
