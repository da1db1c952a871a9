"""`make test`: what it installs does not run, and what failed is known also of an ended
run.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import RESULTS
from tests.paths import ROOT
from tests.processes import completed

APT = """\
#!/bin/sh
case "$*" in
*absent*) echo "E: no package called absent" >&2; exit 100 ;;
*update*) exit 0 ;;
esac
echo "noise of dpkg"
"$POLICY_RC_D" nginx start
echo "$* $?" >> "$CALLS"
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a machine with its own apt-get and sudo."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apt-get", APT), ("sudo", '#!/bin/sh\nshift\nexec "$@"\n')):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "POLICY_RC_D": str(tmp_path / "policy-rc.d"),
        "CALLS": str(tmp_path / "calls"),
    }


def test_services_of_installed_packages_do_not_start(
    machine: dict[str, str], tmp_path: Path
) -> None:
    """Debian is told so for the time of the call; noise is in a file; others are
    installed.
    """
    policy = tmp_path / "policy-rc.d"
    command = [
        ROOT / ".ci" / "install-packages",
        tmp_path / "log",
        "absent",
        "nginx-light",
    ]
    # One that a killed run left has no effect, and is replaced.
    policy.write_text("#!/bin/sh\n# made by the tests of spack-cache-db\nexit 0\n")
    done = completed(command, env=machine)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"absent cannot be installed, so tests that need it are skipped; see {tmp_path}/log\n"
    )

    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.endswith("nginx-light 101")
    assert "noise of dpkg" in (tmp_path / "log").read_text()
    assert not policy.exists()

    # The rule of an administrator stays.
    policy.write_text("#!/bin/sh\nexit 7\n")
    policy.chmod(0o755)
    completed([*command[:2], "nginx-light"], env=machine, check=True)

    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith("nginx-light 7")
    assert policy.read_text() == "#!/bin/sh\nexit 7\n"


def test_outcomes_are_written_as_they_come(tmp_path: Path) -> None:
    """A run that ends in the middle of a test has written those before it."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_some.py").write_text(
        "import os, signal\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "def test_killed(): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    results = tmp_path / "results.txt"
    environment = {**os.environ, RESULTS: str(results), "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_some.py",
    ]

    assert completed(command, cwd=tmp_path, env=environment).returncode == -9
    assert results.read_text().splitlines() == [
        "passed test_some.py::test_good",
        "failed test_some.py::test_bad",
    ]
