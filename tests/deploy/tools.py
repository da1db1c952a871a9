"""The programs that these tests run, and what is done where one is missing."""

from __future__ import annotations

import os
import shutil

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
