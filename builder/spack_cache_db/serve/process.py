"""What a server process shows its parent: that it is alive, and what it answers.

gunicorn, which is the parent, ends a process that shows no life for some seconds. The
request that a process answers is a note in memory that both share: if the process ends,
`server` logs it.
"""

from __future__ import annotations

import resource
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

REQUEST_CPU_SECONDS = 60
"""Longest processor time of one request, a stream of a whole table included."""

NOTE_BYTES = 1024
"""Size of the shared memory; a longer request is cut."""

_HEAD = struct.Struct("dH")
"""The beginning of a note: its time, and the length of the request that follows."""


class Process:
    """Shows the parent what this process does.

    Args:
        notify: shows gunicorn that this process is alive.
        shared: shared memory of `NOTE_BYTES` bytes.
    """

    def __init__(self, notify: Callable[[], None], shared: Any) -> None:
        self.notify = notify
        self._shared = shared

    def begin(self, environ: dict[str, Any]) -> None:
        """Note the request that is answered from now on, and give it its processor
        time.
        """
        self.notify()
        request = f"{environ['REQUEST_METHOD']} {environ.get('RAW_URI', '')}"
        write_note(self._shared, request.encode())

        # The system counts the time since the process began, so the limit is moved.
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime)
        _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
        limits = (used + REQUEST_CPU_SECONDS, hard_limit)
        # The shipped systemd unit forbids it.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CPU, limits)

    def end(self) -> None:
        """Note that no request is being answered."""
        write_note(self._shared, b"")

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Show the parent that this process is alive, as long as the context lasts.

        For work other than a request, such as opening a database, which takes longer.
        """
        is_done = threading.Event()

        def notify_every_second() -> None:
            while not is_done.wait(1):
                self.notify()

        thread = threading.Thread(target=notify_every_second, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()


class Note(NamedTuple):
    """The note of a process.

    Attributes:
        request: the request that it answers, such as `GET /package/zlib`; empty if it
            answers none.
        began: when it began to answer, in seconds since the epoch.
    """

    request: str
    began: float


def write_note(shared: Any, request: bytes) -> None:
    """Write the beginning of a request, and the time, into shared memory."""
    start = _HEAD.size
    text = request[: NOTE_BYTES - start]
    shared[:start] = _HEAD.pack(time.time(), len(text))
    shared[start : start + len(text)] = text


def read_note(shared: Any) -> Note:
    """Return the last note of a process."""
    start = _HEAD.size
    began, length = _HEAD.unpack(shared[:start])
    text = bytes(shared[start : start + length])
    return Note(text.decode("latin-1"), began)
