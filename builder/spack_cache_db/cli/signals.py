"""How a command ends if a signal stops it, or if its output cannot be written.

A stopped command removes its unfinished files, prints one line, and ends by the signal:
`Error: stopped by SIGTERM; no incomplete file is left`.
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
"""Signals that stop a command: Ctrl-C, the command `kill`, and a closed terminal."""

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of an output that takes no more: a full disk, a used-up quota, a file of the
largest size, and a device that fails.
"""

_STANDARD_ERROR = 2
"""The file descriptor of standard error."""

_cleanups: list[Callable[[], str]] = []
"""The cleanups of all contexts of `when_stopped` that are open, the innermost last."""


def heed_signals() -> None:
    """Have signals stop this process as the module describes.

    Signals that are ignored stay ignored: `nohup` starts a command that way.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    # A build starts worker processes, and Python a tracker, which removes their
    # semaphores if they are killed. It gets the warning options of this process, and
    # would warn of each semaphore.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


@contextmanager
def when_stopped(cleanup: Callable[[], str]) -> Iterator[None]:
    """Call `cleanup` if a signal stops the process within this context.

    Args:
        cleanup: returns a text for the printed line, or an empty one. It may interrupt
            the program anywhere, also in a print or an import, so it must do neither.
    """
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


def write_error(text: str) -> None:
    """Write to standard error without Python's buffer.

    Python refuses to write into a buffer from a signal handler that has interrupted
    another write.
    """
    with suppress(OSError):
        os.write(_STANDARD_ERROR, text.encode())


def end_full(error: OSError) -> None:
    """End the process with status 2 if standard output takes no more.

    Other errors return: those of files have a file name, and standard output has none.
    """
    if error.errno in _OUTPUT_ERRORS and error.filename is None:
        write_error(f"Error: the output cannot be written: {error.strerror}\n")
        # A usual exit would try to write the buffer again, and print a traceback.
        os._exit(2)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Clean up, print one line, and end by the signal."""
    # A second signal ends the process at once, without waiting for the cleanups.
    for other in SIGNALS:
        if signal.getsignal(other) is _stop:
            signal.signal(other, signal.SIG_DFL)

    # Clean up, the innermost context first.
    texts = [f"Error: stopped by {signal.Signals(number).name}"]
    for cleanup in reversed(_cleanups):
        text = cleanup()
        if text:
            texts.append(text)
    write_error("; ".join(texts) + "\n")

    # Send the signal again, now with its usual effect, so that a shell or a script sees
    # what ended the command (bash manual, 3.7.5).
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    # The first process of a container survives signals that it does not handle. Shells
    # use this status for a process that a signal ended.
    os._exit(128 + number)
