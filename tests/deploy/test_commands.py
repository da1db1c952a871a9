"""The commands of `docs/publish.md` and `docs/mirrors.md`, in order, on a machine in a
folder.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from benchmarks.processes import family
from benchmarks.server import free_port, wait_until_up
from tests.deploy.machine import Machine, checkout, machine
from tests.deploy.manager import asked
from tests.deploy.sandbox import read_unit
from tests.deploy.tools import QuietFiles, listening
from tests.indexes import index, node, record, write_layout3
from tests.pagetexts import SAMPLE_PAGES
from tests.paths import ROOT
from tests.processes import PATIENCE, completed
from tests.programs import needed

pytestmark = pytest.mark.slow

DOCUMENT = (
    (ROOT / "docs" / "publish.md")
    .read_text(encoding="utf-8")
    .partition("## nginx and")[2]
)
BLOCKS = re.findall(
    r"^### (.+?)$|^```sh\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL
)
NEW_RELEASE = "v0.23.1"
MIRRORS = (ROOT / "docs" / "mirrors.md").read_text(encoding="utf-8")
ONCE, NIGHTLY = re.findall(
    r"^```sh\n(.*?)^```",
    MIRRORS.partition("\n## Dependencies")[0],
    re.MULTILINE | re.DOTALL,
)
EXAMPLE = "https://cache.example.org/v1.0"


@dataclass
class Reader:
    """Somebody who types the document into a shell, and looks at the site."""

    machine: Machine
    systemctl: int
    folder: Path
    said: str = ""
    done: list[str] = field(default_factory=list)

    def type(self, commands: str) -> None:
        """Type a block."""
        self.said, self.folder = self.machine.run(commands, self.systemctl, self.folder)

    def get(self, target: str, port: str = "443") -> httpx.Response:
        """Ask nginx for a page, or the server that stands for another port."""
        scheme = "https" if port == "443" else "http"
        address = f"{scheme}://127.0.0.1:{self.machine.ports[port]}{target}"
        return httpx.get(address, verify=False, timeout=PATIENCE)

    @property
    def srv(self) -> Path:
        """What stands for /srv/spack-cache."""
        return self.machine.folder / "srv" / "spack-cache"

    def published(self) -> str:
        """Return the hash of the database that is published."""
        data = (self.srv / "published" / "spack-cache.db").read_bytes()
        return sha256(data).hexdigest()


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the section and the text of each block of commands, in order."""
    section = ""
    for heading, commands in BLOCKS:
        section = heading or section
        if commands:
            yield section, commands


@contextmanager
def reading() -> Iterator[Reader]:
    """Have a reader in a checkout, on a machine that has nothing but Debian's nginx."""
    for program in ("git", "make", "curl", "openssl", "zstd"):
        needed(program, program)
    needed("systemd-analyze", "systemd")
    with ExitStack() as stack:
        # Not in pytest's own folder: nginx's workers are another user, who may not
        # enter that.
        folder = Path(
            stack.enter_context(TemporaryDirectory(prefix="spack-cache-machine-"))
        )
        folder.chmod(0o755)
        made = machine(folder)
        port = stack.enter_context(asked(made.manager))
        yield Reader(made, port, checkout(made))


def has_a_program(reader: Reader) -> None:
    """The environment stands where the units look for it."""
    program = (
        reader.machine.folder / "opt/spack-cache-db/current/.venv/bin/spack-cache-db"
    )
    assert os.access(program, os.X_OK)


def has_servers(reader: Reader) -> None:
    """The server answers under the filters of its unit, without SQL; no litter is
    left.
    """
    (most,) = read_unit(ROOT / "deploy/systemd/spack-cache.service")["TasksMax"]
    for target in (
        "/package/py-mpi4py",
        "/find?q=%2Bshared",
        "/spack-cache/builds.csv",
    ):
        assert reader.get(target, "8001").status_code == 200
    assert reader.get("/spack-cache?sql=select+1", "8001").status_code == 403
    (server,) = [
        process
        for process in reader.machine.manager.running.values()
        if process.poll() is None
    ]
    assert threads(server.pid) <= int(most) // 2
    assert {path.name for path in reader.srv.iterdir()} == {
        ".lock",
        "build",
        "old",
        "pages",
        "published",
    }
    assert {each.name for each in (reader.srv / "build").iterdir()} == {
        "next.db",
        "next.inspect.json",
    }
    assert "enable spack-cache" in reader.machine.manager.asked
    assert "enable --now spack-cache-update.timer" in reader.machine.manager.asked


def threads(pid: int) -> int:
    """Return how many threads a process and those below it have."""
    count = 0
    for member in family(pid):
        count += len(list(Path(f"/proc/{member}/task").iterdir()))
    return count


def has_a_site(reader: Reader) -> None:
    """Nginx shows pages, gives the file that was built, and knows the site's name."""
    assert "the site is up" in reader.said
    assert reader.get("/").headers["x-cache-status"] in ("MISS", "HIT")
    built = (reader.srv / "build" / "next.db").read_bytes()
    assert reader.get("/spack-cache.db").content == built
    assert reader.get("/spack-cache.db.zst").status_code == 200
    listed = reader.get("/spack-cache/specs.json?_size=1").json()
    assert listed["next_url"].startswith(
        f"https://builds.example.com:{reader.machine.ports['443']}/spack-cache/specs.json?"
    )
    assert reader.get(f"/release/{NEW_RELEASE}").status_code == 404


def brings_new_pages(reader: Reader) -> None:
    """Put pages of another release beside the five, as a reader would."""
    page = reader.srv / "pages" / "new" / "specs.md"
    page.parent.mkdir()
    text = SAMPLE_PAGES[0].read_text(encoding="utf-8")
    named = re.sub(
        r"^categories: .*$", f"categories: [package, {NEW_RELEASE}]", text, flags=re.M
    )
    page.write_text(named, encoding="utf-8")
    reader.done.append(reader.published())


def shows_new_pages(reader: Reader) -> None:
    """Nginx shows the new release at once, though it kept that there is none."""
    assert reader.published() != reader.done[-1]
    assert reader.get(f"/release/{NEW_RELEASE}").status_code == 200


def shows_old_pages(reader: Reader) -> None:
    """The old database is back."""
    assert reader.published() == reader.done[-1]
    assert reader.get(f"/release/{NEW_RELEASE}").status_code == 404


def has_new_servers(reader: Reader) -> None:
    """The server was started again, and shows what was built last."""
    assert reader.machine.manager.asked.count("restart spack-cache") == 1
    assert reader.get(f"/release/{NEW_RELEASE}").status_code == 200


Look = Callable[[Reader], None]
STEPS: tuple[tuple[str, Look | None, Look], ...] = (
    ("1. The program", None, has_a_program),
    ("2. The pages and the database", None, has_servers),
    ("3. nginx", None, has_a_site),
    ("A new database", brings_new_pages, shows_new_pages),
    ("A new database", None, shows_old_pages),
    ("A new version of the program", None, has_new_servers),
)
"""The section of each block, what happens before it, and what must be true after it."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; give the address of what is `v1.0` in it."""
    with listening(partial(QuietFiles, directory=str(folder))) as port:
        yield f"http://127.0.0.1:{port}/v1.0"


def a_timer_brings_what_the_mirror_has(reader: Reader, mirror: Path) -> None:
    """Every night; with a mirror that is gone, what it gave last is built and stays
    published.
    """
    assert reader.get("/package/py-mpi4py", "8001").status_code == 200
    with served(mirror.parent) as address:
        # With few retries, because the mirror is gone later.
        reader.type(
            NIGHTLY.replace(EXAMPLE, address).replace("--retries 8", "--retries 1")
        )
        assert reader.get("/package/hdf5", "8001").status_code == 200
        assert reader.get("/package/py-mpi4py", "8001").status_code == 404
        first = reader.published()
        write_layout3(mirror, {None: index(record(node("hdf5")), record(node("zlib")))})
        reader.type("systemctl start spack-cache-update")
        assert reader.get("/package/zlib", "8001").status_code == 200
        second = reader.published()
    reader.type("systemctl start spack-cache-update")
    assert reader.published() == second
    assert second != first


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """The folder of a mirror of one package."""
    return write_layout3(
        tmp_path / "there" / "v1.0", {None: index(record(node("hdf5")))}
    )


def test_three_commands_make_a_site(tmp_path: Path, mirror: Path) -> None:
    """Typed in an empty folder; the last one serves what the mirror has."""
    *commands, serve = ONCE.splitlines()
    port = free_port()
    path = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
    }
    with served(mirror.parent) as address:
        for command in commands:
            completed(
                ["sh", "-euc", command.replace(EXAMPLE, address)],
                cwd=tmp_path,
                env=path,
                check=True,
            )
    process = subprocess.Popen(
        ["sh", "-c", f"exec {serve} --port {port}"],
        cwd=tmp_path,
        env=path,
        stderr=subprocess.DEVNULL,
    )

    try:
        wait_until_up(port, process)
        address = f"http://127.0.0.1:{port}/release/v1.0"
        assert "hdf5" in httpx.get(address, verify=False, timeout=PATIENCE).text
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_the_documents_do_what_they_say(mirror: Path) -> None:
    """From an empty machine to a site, its updates, a new version, and what a mirror
    has.
    """
    assert [section for section, _ in blocks()] == [section for section, _, _ in STEPS]
    with reading() as reader:
        for (_, commands), (_, before, after) in zip(blocks(), STEPS, strict=True):
            if before is not None:
                before(reader)
            reader.type(commands)
            after(reader)
        a_timer_brings_what_the_mirror_has(reader, mirror)
