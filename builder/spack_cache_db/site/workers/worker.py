"""The program of a worker process: it runs one task after the other on a connection of its own.

A task is a function with its arguments and the seconds of processor time that it may take. `main`
reads tasks from standard input, pickled, and writes results to standard output: JSON with what is
plain, then the bytes of a page. So nothing that a visitor may have made a worker do is unpickled in
the server. An alarm of the kernel ends the process when the time of a task is over, also while
SQLite is in the middle of a step. On the clock a task may take `CLOCK_TIMES` as long.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib
import json
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

from spack_cache_db.site.answers import Answer, BadAddress, Site, SiteSettings
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.site.sandbox.statements import (
    Rows,
    SqlValue,
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
ALARMS = (signal.SIGPROF, signal.SIGALRM)
"""Processor time is over, or time on the clock."""
LENGTH = 8
"""Bytes of each length that stands before a message."""

Call = Callable[..., Any]
Result = Answer | Rows


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task has no result.

    Attributes:
        kind: the name of an exception of `sqlite3`, of one that `FAILURES` has, or empty for a bug.
        message: its message; of a bug its traceback.
    """

    kind: str
    message: str


FAILURES: dict[str, type[Exception]] = {"MemoryError": MemoryError, "BadAddress": BadAddress}
INTERRUPTED = Failure("OperationalError", "interrupted")
NO_MEMORY = Failure("MemoryError", "the query needs more memory than this server gives to one")


def run_task(
    site: Site, call: Call, arguments: tuple[Any, ...], seconds: float
) -> Result | Failure:
    """Return what a function returns, or the `Failure` that it ended in.

    Args:
        site: its first argument.
        call: the function.
        arguments: its other arguments.
        seconds: processor time after which SQLite interrupts its statements.
    """
    end = time.process_time() + seconds
    site.conn.set_progress_handler(lambda: time.process_time() > end, STEPS)
    try:
        result: Result = call(site, *arguments)
    except sqlite3.Error as error:
        # A subclass that is not SQLite's own counts as the first of its bases that is.
        names = (base.__name__ for base in type(error).__mro__)
        return Failure(next(name for name in names if hasattr(sqlite3, name)), str(error))
    except MemoryError:
        return NO_MEMORY
    except BadAddress as error:
        return Failure("BadAddress", str(error))
    except Exception:
        return Failure("", traceback.format_exc())
    finally:
        site.conn.set_progress_handler(None, 0)
    return result


def run_on(site: Site, call: Call, *arguments: Any) -> Rows:
    """Call a function of `statements` with the connection of a site."""
    rows: Rows = call(site.conn, *arguments)
    return rows


def connect(uri: str) -> sqlite3.Connection:
    """Open a database as Datasette does, with the functions that SQL of its pages may call."""
    conn = sqlite3.connect(uri, uri=True)
    conn.text_factory = lambda encoded: str(encoded, "utf-8", "replace")
    conn.create_function("escape_fts", 1, escape_fts)
    sql_functions.register(conn)
    restrict(conn)
    authorize(conn)
    return conn


def encoded(result: Result | Failure, seconds: float) -> tuple[bytes, bytes]:
    """Return a result as it is sent: a document in JSON, and the bytes of a page."""
    if isinstance(result, Answer):
        document: dict[str, Any] = {"answer": [result.status, result.headers, result.following]}
        body = result.body
    elif isinstance(result, Rows):
        rows = [[*map(_plain, row)] for row in result.rows]
        document, body = {"rows": [result.columns, rows, result.is_cut]}, b""
    else:
        document, body = {"failure": [result.kind, result.message]}, b""
    return json.dumps(document | {"seconds": seconds}).encode(), body


def decoded(document: bytes, body: bytes) -> tuple[Result | Failure, float]:
    """Return a result that was encoded, and the seconds that it took.

    Raises:
        ValueError, TypeError, KeyError: it was not.
    """
    found = json.loads(document)
    seconds = float(found["seconds"])
    if "answer" in found:
        status, headers, following = found["answer"]
        named = tuple((str(name), str(value)) for name, value in headers)
        return Answer(body, int(status), named, following), seconds
    if "failure" in found:
        kind, message = found["failure"]
        return Failure(str(kind), str(message)), seconds
    columns, rows, is_cut = found["rows"]
    return Rows(columns, [tuple(map(_value, row)) for row in rows], is_cut), seconds


def _plain(value: SqlValue) -> Any:
    return [base64.b64encode(value).decode()] if isinstance(value, bytes) else value


def _value(plain: Any) -> SqlValue:
    found: SqlValue = base64.b64decode(plain[0]) if isinstance(plain, list) else plain
    return found


def framed(*parts: bytes) -> bytes:
    """Return the parts of a message, each after its length."""
    return b"".join(len(part).to_bytes(LENGTH, "big") + part for part in parts)


def received(stream: BinaryIO) -> Any:
    """Read a message of the server, which is to be trusted; None where the server has gone."""
    length = int.from_bytes(stream.read(LENGTH), "big")
    pickled = stream.read(length)
    return pickle.loads(pickled) if length and len(pickled) == length else None


def bound_itself(niceness: int) -> None:
    """Have the kernel hold this process to its bounds, where whoever started it allows that."""
    bound_heap()
    import resource  # Pyodide, which has no processes either, lacks it.

    for kind, most in BOUNDS.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, kind), (most, most))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
    with contextlib.suppress(OSError):
        os.nice(niceness)


def main() -> None:
    """Run tasks until there are no more; the settings of the site come first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ALARMS:
        signal.signal(number, signal.SIG_DFL)
    settings, niceness = received(sys.stdin.buffer) or sys.exit(0)
    bound_itself(niceness)
    site, results = open_site(settings), sys.stdout.buffer
    # The module of most tasks: the first of them does not wait for it.
    importlib.import_module("spack_cache_db.site.routes")
    # Objects of imported modules stay; a collection in the middle of a task would look at all.
    gc.collect()
    gc.freeze()
    # A server that has ended meanwhile reads nothing, and asks for nothing below.
    with contextlib.suppress(BrokenPipeError):
        os.write(results.fileno(), framed(*encoded(Answer(b""), 0.0)))
    # From here on a visitor decides what would be written there.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    while (task := received(sys.stdin.buffer)) is not None:
        call, arguments, seconds = task
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds + GRACE_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, CLOCK_TIMES * seconds + GRACE_SECONDS)
        result = run_task(site, call, arguments, seconds)
        message = framed(*encoded(result, time.process_time() - began))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        results.write(message)
        results.flush()


def open_site(settings: SiteSettings) -> Site:
    """Return the site over the database that its settings name."""
    return Site(settings, connect(settings.uri))
