"""Programs and limits of the machine that tests need."""

import os
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.processes import completed


def needed(name: str, package: str) -> str:
    """Return the path of a program; without it the test is skipped, or fails if
    CI=true.
    """
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is not None:
        return path
    message = f"no {name} here: apt-get install -y --no-install-recommends {package}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def open_files(number: int) -> Iterator[None]:
    """Allow this process so many files and connections: most systems begin with
    1,024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def install_plugins(folder: Path, *packages: str) -> None:
    """Install packages of plugins.lock into a folder, without dependencies; all unless
    named.
    """
    install_locked("plugins", folder, *packages)


def install_locked(name: str, folder: Path, *packages: str) -> None:
    """Install packages of a lock of `requirements/` into a folder; all unless named."""
    lock = str(ROOT / "requirements" / f"{name}.lock")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--require-hashes",
    ]
    wanted = [*packages, "-c", lock] if packages else ["-r", lock]
    completed([*pip, "--target", str(folder), *wanted], check=True)
