"""The units of `deploy/systemd`: valid, shut in, and what they start runs under their
filters.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from spack_cache_db.serve.server import BOUNDS, GRACE_SECONDS
from tests.deploy.sandbox import allowed_calls, call_number, read_unit
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
SERVICES = [path for path in UNITS if path.suffix == ".service"]
MOST_EXPOSED = 2.0
PROBE = """
import ctypes, errno, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in sys.argv[1:]:
    libc.syscall(int(number), *[0] * 6)
    print(number, errno.errorcode.get(ctypes.get_errno()))
for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_NETLINK):
    try:
        socket.socket(family, socket.SOCK_RAW if family.name == "AF_NETLINK" else 1)
        print(family.name, "open")
    except OSError as error:
        print(family.name, errno.errorcode[error.errno])
"""


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units in a folder of their own, with programs that are there."""
    (tmp_path / "mirrors").write_text("SPACK_CACHE_MIRRORS=http://127.0.0.1:1/v1.0\n")
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        text = text.replace("/etc/spack-cache/mirrors", str(tmp_path / "mirrors"))
        text = text.replace(
            "/opt/spack-cache-db/current/.venv/bin/python", sys.executable
        )
        text = text.replace("/opt/spack-cache-db/current", str(ROOT))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    return tmp_path


def sandboxed(unit: Path, *command: object) -> list[str]:
    """Return the command that runs another in the sandbox of a unit."""
    return [sys.executable, "-m", "tests.deploy.sandbox", str(unit), *map(str, command)]


def run(unit: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command in the sandbox of a unit."""
    return completed(sandboxed(unit, *command), cwd=ROOT)


@pytest.mark.parametrize("name", [each.name.replace("@", "@x") for each in UNITS])
def test_a_unit_is_valid(units: Path, name: str) -> None:
    """`systemd-analyze verify` has nothing to say about it."""
    program = needed("systemd-analyze", "systemd")
    done = completed([program, "verify", units / name])
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: str(unit.name))
def test_a_service_is_shut_in(unit: Path) -> None:
    """Its exposure, as `systemd-analyze security` counts it, is at most 2."""
    program = needed("systemd-analyze", "systemd")
    done = completed(
        [program, "security", "--offline=true", "--no-pager", unit], check=True
    )
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)

    assert found is not None
    assert float(found[1]) <= MOST_EXPOSED


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: str(unit.name))
def test_a_service_cannot_take_the_machine(unit: Path) -> None:
    """Memory, tasks and, where it does one thing and ends, time are bounded."""
    settings = read_unit(unit)
    assert {"MemoryMax", "TasksMax"} <= settings.keys()
    assert ("TimeoutStartSec" in settings) == (settings.get("Type") == ["oneshot"])


def test_the_memory_of_the_server_is_that_of_its_processes() -> None:
    """The unit's limit is the sum of the limits of all processes, with the one that
    starts them.
    """
    unit = read_unit(ROOT / "deploy/systemd/spack-cache.service")
    (limit,) = unit["MemoryMax"]
    count = int(re.findall(r"--workers (\d+)", unit["ExecStart"][0])[0])
    megabytes = (BOUNDS["RLIMIT_DATA"] >> 20) * count
    assert megabytes < int(limit.removesuffix("M")) <= megabytes + 300


def test_a_server_has_the_time_to_end_by_itself() -> None:
    """It is killed only where it did not end within the time that it gives itself."""
    (seconds,) = read_unit(ROOT / "deploy/systemd/spack-cache.service")[
        "TimeoutStopSec"
    ]
    assert 2 * GRACE_SECONDS <= float(seconds) <= 10


def test_pages_are_not_read_by_root() -> None:
    """What builds and what serves has another user; root runs the script alone."""
    users = {unit.name: read_unit(unit) for unit in SERVICES}
    assert users["spack-cache-build.service"]["User"] == ["spack-cache"]
    assert users["spack-cache-fetch.service"]["User"] == ["spack-cache"]
    assert users["spack-cache.service"]["DynamicUser"] == ["yes"]

    root = [
        name
        for name, unit in users.items()
        if not {"User", "DynamicUser"} & unit.keys()
    ]
    assert root == ["spack-cache-update.service"]
    (command,) = users[root[0]]["ExecStart"]
    assert command.split()[0].endswith("/deploy/publish.sh")


@pytest.mark.slow
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: str(unit.name))
def test_a_forbidden_call_fails_without_a_kill(units: Path, unit: Path) -> None:
    """`mbind`, which OpenBLAS tries, is refused; so are other families of addresses."""
    needed("systemd-analyze", "systemd")
    settings = read_unit(units / unit.name)

    assert not {"mbind", "setuid", "mount", "reboot"} & allowed_calls(settings)

    numbers = [call_number(name) for name in ("mbind", "setuid")]
    done = run(units / unit.name, sys.executable, "-c", PROBE, *numbers)
    assert done.returncode == 0, done.stderr

    found = dict(line.split() for line in done.stdout.splitlines())
    families = settings["RestrictAddressFamilies"][0].split()
    for name in ("AF_INET", "AF_UNIX", "AF_NETLINK"):
        assert found[name] == ("open" if name in families else "EAFNOSUPPORT")
    assert [found[str(number)] for number in numbers] == ["EPERM", "EPERM"]
