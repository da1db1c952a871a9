"""Ends a process whose statement does not notice that its time is over.

SQLite looks at the time between two of its instructions (`limits.time_limit`). One
instruction can take seconds: `printf('%.*c', 900000000, 'x')` in SQLite 3.40, or
`json_patch` of two objects with thousands of keys. No other thread can interrupt it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

TIMES = 1.3
"""Processor time after which a process is ended, in multiples of a statement's limit.
"""


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Send SIGPROF to this process if a statement takes far more than its time.

    `serve` has a handler of this signal that ends the process, which gunicorn replaces.
    Without a handler nothing is sent: the default action would end a Datasette that
    nobody starts again.

    Args:
        seconds: the limit of the statement; `TIMES` as much processor time of this
            process is too much.
    """
    if not _is_handled():
        yield
        return
    # This timer counts the processor time of the whole process.
    signal.setitimer(signal.ITIMER_PROF, TIMES * seconds)
    try:
        yield
    finally:
        # Zero stops the timer.
        signal.setitimer(signal.ITIMER_PROF, 0)


def _is_handled() -> bool:
    """Return whether a function of this process handles SIGPROF."""
    # Windows has no such timer.
    if not hasattr(signal, "setitimer"):
        return False
    return callable(signal.getsignal(signal.SIGPROF))
