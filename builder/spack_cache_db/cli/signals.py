"""What ends a command before its time: a signal, or an output that takes no more.

A signal ends the process where it stands: an exception thrown into whatever runs at that moment
could be lost there, or end in a traceback. Who has begun something says beforehand how to tidy up.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_begun: list[Callable[[], str]] = []


def heed_signals() -> None:
    """Let a signal end this process in good order, as long as it lives.

    Signals that whoever started it ignores (`nohup`) stay ignored.
    """
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _end)
    # Where processes are not forked, Python has another one that removes their semaphores after
    # them, and warns of each.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


@contextmanager
def when_stopped(tidy: Callable[[], str]) -> Iterator[None]:
    """Have `tidy` called if a signal ends what is begun here.

    Args:
        tidy: returns what is to be said, or nothing. It is called between any two steps of the
            program, maybe while something is printed: it prints and loads nothing itself.
    """
    _begun.append(tidy)
    try:
        yield
    finally:
        _begun.remove(tidy)


def write_error(text: str) -> None:
    """Write to standard error past what is being printed, if it takes anything at all."""
    # Where it was closed, its number may be that of a file by now.
    if sys.stderr is not None:
        with suppress(OSError):
            os.write(2, text.encode())


def end_full(error: OSError) -> None:
    """If an error is that of an output which takes no more, say so and end with status 2.

    Status 1 has a meaning of its own elsewhere. The errors of files name the file. What is left to
    be written is given up: Python would try again at its end, and complain.
    """
    if error.errno in _FULL and error.filename is None:
        write_error(f"Error: the output cannot be written: {error.strerror}\n")
        os._exit(2)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for each in SIGNALS:
        # A second one does not wait.
        if signal.getsignal(each) is _end:
            signal.signal(each, signal.SIG_DFL)
    said = [f"Error: stopped by {signal.Signals(number).name}"]
    said += filter(None, [tidy() for tidy in reversed(_begun)])
    write_error("; ".join(said) + "\n")
    # By the signal itself, so that whoever started it can tell (bash manual, 3.7.5).
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    # The first process of a container is not ended by signals that it does not handle.
    os._exit(128 + number)
