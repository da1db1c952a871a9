"""Starts gunicorn: its settings, the limits of its processes, and the log.

gunicorn runs in this process, starts a process for each worker, and ends one whose
request lasts longer than `PAGE_SECONDS`. A worker is a fork of this process, which has
opened the database and made its first page, so that it starts within milliseconds.
"""

from __future__ import annotations

import gc
import logging
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from spack_cache_db.serve.application import Application
from spack_cache_db.serve.datasette_app import SiteOptions
from spack_cache_db.serve.metrics import Counters
from spack_cache_db.serve.process import NOTE_BYTES, Process, read_note
from spack_cache_db.serve.served import Identity, Served
from spack_cache_db.serve.worker import Worker
from spack_cache_db.site.http.own_pages import compile_templates
from spack_cache_db.site.log import log, log_error
from spack_cache_db.site.sql.limits import bound_heap

PAGE_SECONDS = 5
"""Longest time between two parts of a response; gunicorn looks once a second."""

GRACE_SECONDS = 3
"""Seconds that unfinished responses get after a signal to end."""

MOST_REQUESTS = 2_000
"""Requests of one process; a new one frees the memory that the old one has kept."""

BOUNDS = {
    "RLIMIT_DATA": 320 << 20,
    "RLIMIT_FSIZE": 256 << 20,
    "RLIMIT_CORE": 0,
    "RLIMIT_NOFILE": 256,
}
"""Limits of a process, by their names in the module `resource`; SQLite sorts in
files.
"""

OOM_SCORE = "500"
"""`oom_score_adj` of a worker: if memory runs out, Linux ends it before its parent."""

ACCESS_LINE = '%(t)s %({x-forwarded-for}i)s %(h)s "%(r)s" %(s)s %(M)sms %(B)s'
"""Time, visitor behind a proxy, address, request, status, milliseconds, bytes."""

_IDENTITY = struct.Struct("QQQQ")
"""The fields of an `Identity` in shared memory."""

_NOTHING_OPEN = Identity(0, 0, 0, 0)


@dataclass(frozen=True)
class ServerOptions:
    """Options of `serve` for the processes.

    Attributes:
        workers: the number of processes.
        hosts: see `Application`.
        proxy: see `Application`.
        access_log: whether each request is a line of the log.
    """

    workers: int
    hosts: frozenset[str] | None = None
    proxy: str | None = None
    access_log: bool = False


def default_workers() -> int:
    """Return the number of processes for this machine: two per core, 4 to 8.

    One visitor can keep several processes busy.
    """
    # A container may be allowed to use some of the cores only.
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(max(2 * cores, 4), 8)


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn with a database.

    `run`, a method of gunicorn, starts the processes and does not return.

    Args:
        database: the path of the database.
        site: options for the site.
        options: options for the processes.
        listener: the socket on which requests arrive.

    Raises:
        DatabaseError: the database cannot be served, or Datasette refuses the options.
    """

    def __init__(
        self,
        database: Path,
        site: SiteOptions,
        options: ServerOptions,
        listener: socket.socket,
    ) -> None:
        # Limit the memory of SQLite, in this process and its forks.
        bound_heap()
        self._options = options
        self._listener = listener
        # The database that a process has announced last, or that the parent has opened
        # since, in memory of all processes.
        self._announced = mmap.mmap(-1, _IDENTITY.size)
        self._had_terminal = sys.stdin is not None and sys.stdin.isatty()
        self._served = Served(database, site)
        self._has_forked = False
        self._compiled_app: Any = None
        self._counters = Counters(options.workers)
        self._application = Application(
            self._served,
            listener,
            options.hosts,
            options.proxy,
            self._counters,
            self._announce,
        )
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's settings (docs.gunicorn.org/en/stable/settings.html)."""
        settings: dict[str, Any] = {
            # A copy of the socket, because gunicorn closes it.
            "bind": [f"fd://{os.dup(self._listener.fileno())}"],
            "workers": self._options.workers,
            "worker_class": Worker,
            "timeout": PAGE_SECONDS,
            "graceful_timeout": GRACE_SECONDS,
            "max_requests": MOST_REQUESTS,
            # So that not all processes end at the same time.
            "max_requests_jitter": MOST_REQUESTS // 4,
            # Call `load` before the processes are forked.
            "preload_app": True,
            # Commands to gunicorn, which nobody sends.
            "control_socket_disable": True,
            # The address of a form can be long; the site has its own limits
            # (`site.http.checks`).
            "limit_request_line": 0,
            "limit_request_field_size": 16_000,
            # The site refuses unknown methods itself, with its headers.
            "permit_unconventional_http_method": True,
            # `Application` reads the headers of a proxy.
            "forwarded_allow_ips": "",
            "proc_name": "spack-cache-db",
            "loglevel": "warning",
            "logger_class": Log,
            "accesslog": "-" if self._options.access_log else None,
            "access_log_format": ACCESS_LINE,
            "pre_fork": self._before_fork,
            "post_worker_init": self._after_fork,
            "worker_exit": self._before_end,
            "child_exit": self._after_end,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        """Return the WSGI application."""
        exclude_from_collection()
        return self._application

    def reload(self) -> None:
        """Open a new database, after SIGHUP; gunicorn then replaces all processes.

        A process that has noticed a new database sends the signal. A closed terminal
        sends it too: then the server ends.
        """
        if self._had_terminal and not os.isatty(0):
            # gunicorn ends at this exception.
            raise StopIteration
        self._served.refresh()
        # If another file has come meanwhile, the parent has not opened the announced
        # one: it can be announced again.
        identity = self._served.identity or _NOTHING_OPEN
        self._announced[:] = _IDENTITY.pack(*identity)
        exclude_from_collection()

    def _announce(self, identity: Identity | None) -> None:
        """Have the parent open a new database that this process has noticed.

        So later processes begin with it. Only the first process that notices it does
        so.
        """
        if identity is None:
            # The database is being overwritten; the new one is announced later.
            return
        packed = _IDENTITY.pack(*identity)
        if self._announced[:] == packed:
            return
        self._announced[:] = packed
        with suppress(ProcessLookupError):
            os.kill(os.getppid(), signal.SIGHUP)

    def _before_fork(self, _: Any, worker: Any) -> None:
        """Prepare a new process, and give it the memory that both share."""
        # The first process answers meanwhile: a server does not start later for this.
        # If there is only one, its replacement starts at once, and compiles as it goes.
        if self._has_forked and self._options.workers > 1:
            self._compile_templates()
        self._has_forked = True

        worker.shared = mmap.mmap(-1, NOTE_BYTES)
        worker.row = self._counters.take_row()

    def _compile_templates(self) -> None:
        """Compile the templates of an open database, once for all later processes."""
        app = self._served.app
        if app is None or app is self._compiled_app:
            return
        compile_templates(self._served.datasette)
        exclude_from_collection()
        self._compiled_app = app

    def _after_fork(self, worker: Any) -> None:
        """Begin to answer, in the new process."""
        limit_process()
        self._counters.use_row(worker.row)

        # SIGPROF ends a statement whose time is over, and that SQLite cannot interrupt
        # (`site.sql.overtime`). It has to reach the main thread, which handles signals
        # and waits for the thread of the event loop. That one inherits that the signal
        # is blocked.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
        self._application.join(Process(worker.notify, worker.shared))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})

        def end_stuck_process(number: int, frame: Any) -> None:
            self._application.is_stuck = True
            # This raises SystemExit, as for a request that takes too long.
            worker.handle_abort(number, frame)

        signal.signal(signal.SIGPROF, end_stuck_process)

    def _before_end(self, _: Any, __: Any) -> None:
        """Tell Datasette that its process ends, in that process."""
        self._application.leave()

    def _after_end(self, _: Any, worker: Any) -> None:
        """Write a line if a process has ended while it answered a request.

        gunicorn calls this in the parent.
        """
        note = read_note(worker.shared)
        worker.shared.close()
        self._counters.free_row(worker.row)
        if note.request:
            self._counters.count_ended()
            seconds = time.time() - note.began
            log(f"ended process {worker.pid} after {seconds:.1f} s: {note.request}")


class Log(Logger):  # type: ignore[misc]
    """gunicorn's log, on standard error, without lines that we write ourselves."""

    def setup(self, cfg: Any) -> None:
        """Write the access log to standard error as well."""
        super().setup(cfg)
        for handler in self.access_log.handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stderr)

    def exception(self, message: str, *arguments: Any, **__: Any) -> None:
        """Write one line instead of a traceback.

        `_after_end` writes that of a process that took too long (SystemExit).
        """
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, SystemExit):
            log_error(message % arguments if arguments else message, error)

    def critical(self, *_: Any, **__: Any) -> None:
        """Write nothing: gunicorn calls this for a process that took too long, which
        `_after_end` logs with its request.
        """


def exclude_from_collection() -> None:
    """Free the objects that are not used any more; exclude all others from Python's
    search for such objects.

    The processes keep these others, and a search through them takes longer than most
    pages.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def limit_process() -> None:
    """Apply the limits of this process, as far as the system allows it."""
    for name, limit in BOUNDS.items():
        with suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (limit, limit))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
