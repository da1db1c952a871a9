"""A process that answers statements over one file, and ends when one takes too long.

`python -m spack_cache_db.site.sql.runner URI` reads statements from its standard input and writes
answers to its standard output, until the input ends. An alarm ends the process from outside of
Python: it rings also while SQLite is in the middle of a step.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
import sys
from pathlib import Path

import msgspec
from datasette.utils import escape_fts

from spack_cache_db.site import spec_functions
from spack_cache_db.site.sql.authorizer import authorize
from spack_cache_db.site.sql.limits import restrict
from spack_cache_db.site.sql.statement import READY, Statement, receive, run, send

GRACE_SECONDS = 0.3
"""For a statement to end by itself, when SQLite next looks at the time."""
MEMORY_BYTES = 400 << 20
FILE_BYTES = 256 << 20
"""Of a temporary file, into which SQLite sorts."""
BOUNDS = {
    resource.RLIMIT_AS: MEMORY_BYTES,
    resource.RLIMIT_FSIZE: FILE_BYTES,
    resource.RLIMIT_CORE: 0,
}
FIRST_TO_GO = "500"
"""Where a machine or a systemd unit has no memory left, the kernel ends this before a server."""
NICENESS = 5
"""Pages of the catalogue come first."""


def connect(uri: str) -> sqlite3.Connection:
    """Open a file as Datasette does, with what SQL of its pages may call."""
    conn = sqlite3.connect(uri, uri=True)
    conn.text_factory = lambda encoded: str(encoded, "utf-8", "replace")
    conn.create_function("escape_fts", 1, escape_fts)
    spec_functions.register(conn)
    restrict(conn)
    authorize(conn)
    return conn


def bound_itself() -> None:
    """Have the kernel hold this process to its bounds, where whoever started it allows that."""
    for kind, most in BOUNDS.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
    with contextlib.suppress(OSError):
        os.nice(NICENESS)


def main(uri: str) -> None:
    """Answer statements until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    bound_itself()
    conn = connect(uri)
    send(sys.stdout.buffer, READY)
    # From here on a visitor decides what would be written there.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    decoder = msgspec.msgpack.Decoder(Statement)
    while (encoded := receive(sys.stdin.buffer)) is not None:
        statement = decoder.decode(encoded)
        signal.setitimer(signal.ITIMER_REAL, statement.milliseconds / 1000 + GRACE_SECONDS)
        answer = run(conn, statement)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main(sys.argv[1])
