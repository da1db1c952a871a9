"""Databases that are built once for all processes of a run of the tests."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def built_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """Return a folder of the run; the first process that needs it fills it with
    `make`.
    """
    base = factory.getbasetemp()
    # The folder of a worker of xdist is in that of the run.
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = run / f"shared-{name}"
    done = run / f"shared-{name}.done"
    with (run / f"shared-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
