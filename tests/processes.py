"""Programs that tests run to their end, none of which may hang."""

import os
import pty
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

PATIENCE = 240
"""Seconds after which a program that a test waits for is killed, before pytest ends the
test.
"""


def completed(
    command: Sequence[object],
    *,
    check: bool = False,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    within: float = PATIENCE,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, at most so many seconds; `check` requires that it
    succeeds.
    """
    words = list(map(str, command))
    done = subprocess.run(  # noqa: TID251
        words,
        text=True,
        timeout=within,
        check=False,
        stdout=stdout,
        stderr=stderr,
        **options,
    )
    if check:
        assert done.returncode == 0, (
            f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


def on_a_terminal(command: Sequence[object], stream: str) -> bytes:
    """Run a program with its "stdout" or "stderr" on a terminal, and return what it
    wrote there.
    """
    parent, child = pty.openpty()
    with subprocess.Popen(list(map(str, command)), **{stream: child}) as running:  # type: ignore[call-overload]
        os.close(child)
        written = b""
        # Linux ends the reading of a terminal that nobody has open by an error.
        with suppress(OSError):
            while part := os.read(parent, 65536):
                written += part
    os.close(parent)
    assert running.returncode == 0
    return written
