"""The programs that these tests run, and what is done where one is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def needed(program: str, package: str) -> str:
    """Return the path of a program.

    Where it is missing the test is left out, and says which package of Debian has the program.
    With CI=true it fails: there, everything is installed.
    """
    found = shutil.which(program, path=PATH)
    if found is None:
        reason = f"no {program} here: apt-get install {package}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def write_command(folder: Path, name: str, text: str) -> None:
    """Write a shell script into a folder of commands that stand before the machine's own."""
    command = folder / name
    command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    command.chmod(0o755)
