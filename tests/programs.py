"""Programs and limits of the machine that tests need."""

import os
import re
import resource
import shutil
import sys
from collections.abc import Collection, Iterator
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
    lock = ROOT / "requirements" / f"{name}.lock"
    if packages:
        chosen = folder.with_name(f"{folder.name}.lock")
        chosen.write_text(locked(lock, packages), encoding="utf-8")
        lock = chosen
    # uv takes a twentieth of the time of pip.
    pip = [sys.executable, "-m", "uv", "pip", "install", "-q"]
    options = ["--no-deps", "--require-hashes", "--target", folder]
    completed([*pip, *options, "-r", lock], check=True)


def locked(lock: Path, packages: Collection[str]) -> str:
    """Return the entries of some packages in a lock, with their hashes."""
    entries = re.split(r"^(?=\w)", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0] in packages)
