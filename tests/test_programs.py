"""Programs that tests run: installed if they can be, and a missing one is reported."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.browser import COMMAND
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

APT = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in *chromium*) exit 100;; esac
"""

ONE = """def test_one(chromium):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "workers", "status"), [("", "0", 0), ("true", "1", 1)])
def test_a_missing_browser_is_never_passed_over(
    ci: str, workers: str, status: int, tmp_path: Path
) -> None:
    """Without Chromium its tests are skipped, the last line says so, and CI counts a failure."""
    (tmp_path / "test_one.py").write_text(ONE)
    ran = completed(
        [sys.executable, "-m", "pytest", "-p", "tests.browser", "-q", "-n", workers],
        cwd=tmp_path,
        env={**os.environ, "PATH": "/nowhere", "CI": ci, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == status, ran.stdout
    last = ran.stdout.rstrip().splitlines()[-1]
    assert last.startswith("NOT TESTED: ")
    assert last.endswith(COMMAND)


@pytest.mark.parametrize("allowed", [True, False])
def test_what_can_be_installed_is(tmp_path: Path, allowed: bool) -> None:
    """A package that is not to be had keeps no other from being installed; nor does it fail."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "openssl", "id", "find"):
        (programs / name).symlink_to(str(shutil.which("true" if name == "openssl" else name)))
    apt = programs / "apt-get"
    apt.write_text(APT if allowed else "#!/bin/sh\nexit 1\n")
    apt.chmod(0o755)
    make = [str(shutil.which("make")), "-C", str(ROOT), "--no-print-directory", "programs", "SUDO="]
    completed(make, env={"PATH": str(programs)}, check=True)

    log = programs / "apt-get.log"
    called = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    installed = [words[-1] for words in called if words[0] == "install"]
    wanted = ["chromium", "systemd", "docker-registry", "curl", "git", "zstd", "nodejs", "npm"]
    assert [name for name in installed if name != "nginx-light"] == (wanted if allowed else [])


INSTALL = "apt-get install -y --no-install-recommends nginx-light"


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the package that has it, and the test is left out."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(
        pytest.skip.Exception,
        match=f"no nginy here: {INSTALL}",
    ):
        needed("nginy", "nginx-light")


def test_a_missing_program_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, all that the tests need is installed."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=INSTALL):
        needed("nginy", "nginx-light")
