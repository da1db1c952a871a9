"""The units of `deploy/systemd`: valid, shut in, and what they start runs under their filters."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from benchmarks.server import free_port, wait_until_up
from spack_cache_db.cli.server import GRACE_SECONDS
from tests.deploy.sandbox import allowed_calls, call_number, read_unit
from tests.paths import ROOT
from tests.processes import PATIENCE, completed
from tests.programs import needed

UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
SERVICES = [each for each in UNITS if each.suffix == ".service"]
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
        text = text.replace("/opt/spack-cache-db/.venv/bin/python", sys.executable)
        text = text.replace("/opt/spack-cache-db", str(ROOT))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    return tmp_path


def sandboxed(unit: Path, *command: object) -> list[str]:
    """Return the command that runs another in the sandbox of a unit."""
    return [sys.executable, "-m", "tests.deploy.sandbox", str(unit), *map(str, command)]


def run(unit: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command in the sandbox of a unit."""
    return completed(sandboxed(unit, *command), cwd=ROOT)


@pytest.mark.parametrize("name", [each.name.replace("@", "@8001") for each in UNITS])
def test_a_unit_is_valid(units: Path, name: str) -> None:
    """`systemd-analyze verify` has nothing to say about it."""
    program = needed("systemd-analyze", "systemd")
    done = completed([program, "verify", units / name])
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: str(unit.name))
def test_a_service_is_shut_in(unit: Path) -> None:
    """Its exposure, as `systemd-analyze security` counts it, is at most 2."""
    program = needed("systemd-analyze", "systemd")
    done = completed([program, "security", "--offline=true", "--no-pager", unit], check=True)
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) <= MOST_EXPOSED


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: str(unit.name))
def test_a_service_cannot_take_the_machine(unit: Path) -> None:
    """Memory, tasks and, where it does one thing and ends, time are bounded."""
    settings = read_unit(unit)
    assert {"MemoryMax", "TasksMax"} <= settings.keys()
    assert ("TimeoutStartSec" in settings) == (settings.get("Type") == ["oneshot"])


def test_a_server_has_the_time_to_end_by_itself() -> None:
    """It is killed only where it did not end within the time that it gives itself."""
    (seconds,) = read_unit(ROOT / "deploy/systemd/spack-cache@.service")["TimeoutStopSec"]
    assert 2 * GRACE_SECONDS <= float(seconds) <= 10


def test_pages_are_not_read_by_root() -> None:
    """What builds and what serves has another user; root runs the script alone."""
    users = {unit.name: read_unit(unit) for unit in SERVICES}
    assert users["spack-cache-build.service"]["User"] == ["spack-cache"]
    assert users["spack-cache-fetch.service"]["User"] == ["spack-cache"]
    assert users["spack-cache@.service"]["DynamicUser"] == ["yes"]
    root = [name for name, unit in users.items() if not {"User", "DynamicUser"} & unit.keys()]
    assert root == ["spack-cache-update.service"]
    (command,) = users[root[0]]["ExecStart"]
    assert command.split()[0].endswith("/deploy/swap.sh")


@pytest.mark.slow
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: str(unit.name))
def test_a_forbidden_call_fails_and_kills_nobody(units: Path, unit: Path) -> None:
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


@pytest.mark.slow
def test_a_build_runs_in_its_sandbox(units: Path, samples_file: Path, tmp_path: Path) -> None:
    """With the unit's own command it writes the same bytes as outside."""
    needed("systemd-analyze", "systemd")
    unit = units / "spack-cache-build.service"
    output = tmp_path / "build" / "next.db"
    output.parent.mkdir()
    text = unit.read_text(encoding="utf-8")
    text = text.replace("/srv/spack-cache/pages", str(ROOT / "pages"))
    unit.write_text(text.replace("/srv/spack-cache", str(tmp_path)), encoding="utf-8")
    (command,) = read_unit(unit)["ExecStart"]
    done = run(unit, *command.split())
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == samples_file.read_bytes()
    assert output.stat().st_mode & 0o777 == 0o644


@contextmanager
def served(units: Path, database: Path) -> Iterator[tuple[str, int]]:
    """Serve a database with the unit's own command; give address and process id."""
    port = free_port()
    template = units / "spack-cache@.service"
    text = template.read_text(encoding="utf-8")
    file = "/srv/spack-cache/current/spack-cache.db"
    template.write_text(text.replace(file, str(database)), encoding="utf-8")
    unit = units / f"spack-cache@{port}.service"
    (command,) = read_unit(unit)["ExecStart"]
    process = subprocess.Popen(
        sandboxed(unit, *command.split()),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_up(port, process)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.mark.slow
def test_a_server_runs_in_its_sandbox(units: Path, samples_file: Path) -> None:
    """With the unit's own command it answers pages of every kind, and SQL of visitors is off."""
    needed("systemd-analyze", "systemd")
    pages = ("/", "/package/py-mpi4py", "/find?q=%2Bshared", "/release/develop", "/stack/e4s")
    data = ("/spack-cache/builds", "/spack-cache/builds.json", "/spack-cache/packages.csv")
    with served(units, samples_file) as (address, _):
        for target in (*pages, *data, "/static/site.css"):
            assert (
                httpx.get(f"{address}{target}", verify=False, timeout=PATIENCE).status_code == 200
            ), target
        assert (
            httpx.get(f"{address}/spack-cache.db", verify=False, timeout=PATIENCE).content
            == samples_file.read_bytes()
        )
        assert (
            httpx.get(
                f"{address}/spack-cache?sql=select+1", verify=False, timeout=PATIENCE
            ).status_code
            == 403
        )


@pytest.mark.slow
def test_a_server_has_room_for_its_threads(units: Path, samples_file: Path) -> None:
    """Its processes' threads are at most half of `TasksMax`, after work of all its kinds."""
    needed("systemd-analyze", "systemd")
    (most,) = read_unit(units / "spack-cache@.service")["TasksMax"]
    with served(units, samples_file) as (address, pid):
        for target in ("/", "/package/py-mpi4py", "/spack-cache/builds.csv?_stream=on"):
            httpx.get(f"{address}{target}", verify=False, timeout=PATIENCE)
        assert threads(pid) <= int(most) // 2


def threads(pid: int) -> int:
    """Return how many threads a process and those below it have."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    own = len([*Path(f"/proc/{pid}/task").iterdir()])
    return own + sum(threads(int(each)) for each in children)
