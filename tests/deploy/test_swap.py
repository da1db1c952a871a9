"""`deploy/swap.sh` publishes a database whole, whatever happens to it on the way."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.deploy.fleet import BROKEN, Fleet, fleet
from tests.deploy.tools import PATH, write_command
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

pytestmark = pytest.mark.slow

SWAP = ROOT / "deploy" / "swap.sh"
COUNTED = (
    *("cat", "chmod", "cp", "curl", "cut", "find", "flock", "ln", "ls", "mkdir", "mv", "readlink"),
    *("rm", "sha256sum", "sync", "tail", "touch", "zstd"),
)
"""The commands of the script in whose place it can be killed."""

KEPT_PAGE = "0123456789abcdef0123456789abcdef"


class Site:
    """A folder of databases, the servers that show them, and nginx's cache."""

    def __init__(self, folder: Path, servers: Fleet) -> None:
        self.folder = folder
        self.servers = servers
        self.commands = folder / "commands"
        self.commands.mkdir()
        write_command(self.commands, "sleep", "exit 0")
        self.cache = folder / "cache" / "a" / "b"
        self.cache.mkdir(parents=True)

    def database(self, data: bytes, name: str = "next") -> Path:
        """Write a database and its inspect file, as `build` does."""
        file = self.folder / "build" / f"{name}.db"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        (file.parent / f"{name}.inspect.json").write_text(json.dumps({"of": data.decode()}))
        return file

    def swap(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the script to its end."""
        return completed(
            [SWAP, *map(str, arguments)],
            start_new_session=True,
            env={
                "PATH": f"{self.commands}:{PATH}",
                "SPACK_CACHE_FOLDER": str(self.folder / "srv"),
                "SPACK_CACHE_PORTS": " ".join(map(str, self.servers.ports)),
                "SPACK_CACHE_RESTART": f"curl -fsS http://127.0.0.1:{self.servers.control}/",
                "SPACK_CACHE_RUN": str(self.folder / "srv" / "run"),
                "SPACK_CACHE_PROXY_CACHE": str(self.folder / "cache"),
                "SPACK_CACHE_PATIENCE": "1",
            },
        )

    def publish(self, data: bytes) -> None:
        """Swap a database in that the servers can show."""
        done = self.swap(self.database(data))
        assert done.returncode == 0, done.stderr

    def published(self) -> bytes:
        """Return the database that `current` leads to."""
        return (self.folder / "srv" / "current" / "spack-cache.db").read_bytes()

    def is_served(self, data: bytes) -> bool:
        """Whether these bytes are published, shown by every server, and nothing is half done."""
        files = {each.name for each in (self.folder / "srv").iterdir()}
        folders = {each.name for each in (self.folder / "srv" / "files").iterdir()} - {".lock"}
        return (
            self.published() == data
            and set(self.servers.shown.values()) == {data}
            and files == {"current", "files", "run", "served"}
            and not list((self.folder / "srv" / "run").iterdir())
            and all(len(each) == 16 for each in folders)
        )

    def kill_at(self, number: int) -> None:
        """Let the script be killed in place of its so-manieth command."""
        counter = self.folder / "counter"
        counter.write_text("")
        for name in COUNTED:
            self._counted(name, counter, number)

    def spare(self) -> None:
        """Let the script live."""
        for name in COUNTED:
            (self.commands / name).unlink()

    def _counted(self, name: str, counter: Path, number: int) -> None:
        real, flock = (shutil.which(each, path=PATH) for each in (name, "flock"))
        write_command(
            self.commands,
            name,
            f"exec 8>>{counter}.lock; {flock} 8; echo >>{counter}; n=$(wc -l <{counter})\n"
            f'[ "$n" != {number} ] || kill -9 0\n'
            f'exec {real} "$@" 8>&-',
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site of two servers on which nothing is published yet."""
    needed("zstd", "zstd")
    needed("curl", "curl")
    (tmp_path / "srv").mkdir()
    with fleet(tmp_path / "srv") as servers:
        yield Site(tmp_path, servers)


def test_a_database_is_published(site: Site) -> None:
    """Every server shows it; beside it are its inspect file and its packed form."""
    given = site.database(b"one")
    done = site.swap(given)
    assert done.returncode == 0
    assert done.stderr == ""
    assert site.is_served(b"one")
    folder = site.folder / "srv" / "current"
    assert folder.resolve().name == hashlib.sha256(b"one").hexdigest()[:16]
    assert (folder / "spack-cache.inspect.json").read_text() == '{"of": "one"}'
    packed = completed(["zstd", "-dc", folder / "spack-cache.db.zst"], check=True)
    assert packed.stdout == "one"
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o644}
    assert given.read_bytes() == b"one"
    # The next build found nothing new, and noted when it looked.
    given.with_name("next.inspect.json").write_text('{"of": "later"}')
    assert site.swap(given).returncode == 0
    inspected = folder / "spack-cache.inspect.json"
    assert inspected.read_text() == '{"of": "later"}'
    assert inspected.stat().st_mode & 0o777 == 0o644


def test_servers_restart_one_after_the_other(site: Site) -> None:
    """Nginx gives a server no requests meanwhile; then kept pages go, not half-written ones."""
    site.publish(b"one")
    site.servers.restarts.clear()
    (site.cache / KEPT_PAGE).touch()
    (site.cache / f"{KEPT_PAGE}.0000000001").touch()
    site.publish(b"two")
    assert site.servers.restarts == [(port, (str(port),)) for port in site.servers.ports]
    assert [each.name for each in site.cache.iterdir()] == [f"{KEPT_PAGE}.0000000001"]

    # What is served already changes nothing.
    site.servers.restarts.clear()
    (site.cache / KEPT_PAGE).touch()
    before = sorted(site.folder.rglob("*"))
    done = site.swap(site.database(b"two"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "served already" in done.stdout
    assert sorted(site.folder.rglob("*")) == before
    assert site.servers.restarts == []


def test_killed_at_any_command_it_ends_the_next_time(site: Site) -> None:
    """Old or new database are whole meanwhile; the next run leaves the new one and no litter."""
    site.publish(b"old")
    number, returncode = 0, 1
    while returncode != 0:
        number += 1
        new = f"new {number}".encode()
        before = site.published()
        site.kill_at(number)
        returncode = site.swap(site.database(new)).returncode
        assert returncode in (0, -9)
        assert site.published() in (before, new)
        site.spare()
        done = site.swap(site.folder / "build" / "next.db")
        assert (done.returncode, done.stderr) == (0, ""), number
        assert site.is_served(new), number
    assert number > 30


def test_a_database_that_no_server_shows_is_taken_back(site: Site) -> None:
    """The servers show the old one again, and the script says so and fails."""
    site.publish(b"old")
    done = site.swap(site.database(BROKEN))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the server on port")
    assert "going back to" in done.stderr
    assert site.is_served(b"old")


def test_killed_with_a_bad_database_it_goes_back_the_next_time(site: Site) -> None:
    """What was last served is known, though `current` leads to the bad one."""
    site.publish(b"old")
    number = 0
    while site.published() != BROKEN:
        number += 1
        site.kill_at(number)
        assert site.swap(site.database(BROKEN)).returncode == -9
    site.spare()
    assert site.swap(site.database(BROKEN)).returncode == 1
    assert site.is_served(b"old")


def test_a_first_database_that_no_server_shows(site: Site) -> None:
    """There is nothing to go back to; with a good one all is well."""
    done = site.swap(site.database(BROKEN))
    assert done.returncode == 1
    assert "nothing to go back to" in done.stderr
    site.publish(b"one")
    assert site.is_served(b"one")


def test_three_databases_are_kept(site: Site) -> None:
    """The newest; an older one can be published again, and is not in the way of that."""
    for data in (b"one", b"two", b"three", b"four"):
        site.publish(data)
    files = site.folder / "srv" / "files"
    kept = {each.read_bytes(): each for each in files.glob("*/spack-cache.db")}
    assert kept.keys() == {b"two", b"three", b"four"}
    assert site.swap(kept[b"two"]).returncode == 0
    assert site.is_served(b"two")
    site.publish(b"five")
    assert {each.read_bytes() for each in files.glob("*/spack-cache.db")} == {
        b"two",
        b"four",
        b"five",
    }


def test_two_at_once_wait_for_each_other(site: Site) -> None:
    """Each is published whole; the last one stays."""
    given = [site.database(name.encode(), name) for name in ("one", "two", "three")]
    with ThreadPoolExecutor(3) as crowd:
        done = list(crowd.map(site.swap, given))
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    assert site.is_served(site.published())


def test_only_a_database_is_published(site: Site) -> None:
    """One line says why, and what is served stays."""
    site.publish(b"old")
    file, linked = site.database(b"new"), site.database(b"new", "linked")
    link = file.with_name("link.db")
    link.symlink_to(file)
    linked.with_name("linked.inspect.json").unlink()
    linked.with_name("linked.inspect.json").symlink_to("/etc/passwd")
    site.servers.restarts.clear()
    missing = file.with_name("other.db")
    for given in ([], [file, file], [missing], [file.parent], [link], [linked]):
        done = site.swap(*given)
        assert done.returncode == 1, given
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
    assert site.is_served(b"old")
    assert site.servers.restarts == []


def test_a_signal_ends_it_without_a_trace(site: Site) -> None:
    """Told to end while it waits for a server, it lets nginx give that server requests again."""
    site.publish(b"old")
    write_command(site.commands, "sleep", f'kill -TERM "$PPID"; {shutil.which("sleep")} 0.1')
    assert site.swap(site.database(b"new")).returncode == 1
    assert not (site.folder / "srv" / "run" / "draining").exists()
