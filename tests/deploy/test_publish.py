"""`deploy/publish.sh` publishes a database whole, whatever happens to it on the way."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.deploy.tools import PATH, Quiet, listening, write_command
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "deploy" / "publish.sh"
BROKEN = b"broken"
"""A database that the server refuses."""
COUNTED = (
    "chmod", "cp", "curl", "cut", "find", "flock", "grep", "ln", "ls", "mkdir", "mv",
    "rm", "sha256sum", "sync", "tail", "touch", "zstd",
)  # fmt: skip
"""The commands of the script in whose place it can be killed."""
KEPT_PAGE = "0123456789abcdef0123456789abcdef"


class Site:
    """A folder of databases, a server that shows what is published, and nginx's
    cache.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.srv = folder / "srv"
        self.file = self.srv / "published" / "spack-cache.db"
        self.shown = b""
        self.health = 0
        self.commands = folder / "commands"
        self.commands.mkdir()
        write_command(self.commands, "sleep", "exit 0")
        self.kept = folder / "cache" / "a" / "b" / KEPT_PAGE
        self.kept.parent.mkdir(parents=True)

    def look(self) -> str:
        """Open the published database as the server does, and return the hash of the
        open one.
        """
        data = self.file.read_bytes() if self.file.exists() else b""
        self.shown = self.shown if data == BROKEN else data
        return hashlib.sha256(self.shown).hexdigest()

    def database(self, data: bytes) -> Path:
        """Write a database and its inspect file, as `build` does."""
        file = self.folder / "next.db"
        file.write_bytes(data)
        file.with_suffix(".inspect.json").write_text(json.dumps({"of": data.decode()}))
        return file

    def publish(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the script to its end."""
        environment = {
            "PATH": f"{self.commands}:{PATH}",
            "SPACK_CACHE_FOLDER": str(self.srv),
            "SPACK_CACHE_HEALTH": f"http://127.0.0.1:{self.health}/-/health.json",
            "SPACK_CACHE_START": "true",
            "SPACK_CACHE_PROXY_CACHE": str(self.folder / "cache"),
            "SPACK_CACHE_PATIENCE": "1",
        }
        command = [SCRIPT, *map(str, arguments)]
        return completed(command, start_new_session=True, env=environment)

    def is_whole(self, *contents: bytes) -> bool:
        """Return whether one of these databases is published, with its own inspect
        file.
        """
        data = self.file.read_bytes()
        inspected = json.loads(self.file.with_suffix(".inspect.json").read_text())
        return data in contents and inspected == {"of": data.decode()}

    def kill_at(self, number: int) -> None:
        """Let the script be killed in place of its so-manieth command."""
        counter = self.folder / "counter"
        counter.write_text("")
        flock = shutil.which("flock", path=PATH)
        for name in COUNTED:
            write_command(
                self.commands,
                name,
                f"exec 8>>{counter}.lock; {flock} 8; echo >>{counter}; n=$(wc -l <{counter})\n"
                f'[ "$n" != {number} ] || kill -9 0\n'
                f'exec {shutil.which(name, path=PATH)} "$@" 8>&-',
            )

    def spare(self) -> None:
        """Let the script live."""
        for name in COUNTED:
            (self.commands / name).unlink(missing_ok=True)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site on which nothing is published yet."""
    needed("zstd", "zstd")
    needed("curl", "curl")
    made = Site(tmp_path)

    class Health(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f'{{\n  "sha256": "{made.look()}"\n}}'.encode())

    with listening(Health) as port:
        made.health = port
        yield made


def test_a_database_is_published_whole(site: Site) -> None:
    """With its inspect file and a compressed copy; nginx's cache is emptied, old ones
    are kept.
    """
    for number in range(5):
        site.kept.touch()
        done = site.publish(site.database(b"content %d" % number))
        assert done.returncode == 0, done.stderr
        assert site.shown == b"content %d" % number
        assert site.is_whole(site.shown)
        assert site.file.with_suffix(".db.zst").exists()
        assert not site.kept.exists()
    assert len(list((site.srv / "old").iterdir())) == 2
    assert {path.name for path in site.file.parent.iterdir()} == {
        "spack-cache.db",
        "spack-cache.inspect.json",
        "spack-cache.db.zst",
    }


def test_a_database_that_the_server_refuses_is_taken_back(site: Site) -> None:
    """The old one is published again, and the script says so."""
    assert site.publish(site.database(b"old")).returncode == 0
    done = site.publish(site.database(BROKEN))

    assert done.returncode == 1
    assert "the old database is published again" in done.stderr
    assert site.is_whole(b"old")
    assert site.shown == b"old"


def test_the_first_one_that_the_server_refuses_is_told(site: Site) -> None:
    """There is nothing to go back to."""
    done = site.publish(site.database(BROKEN))
    assert done.returncode == 1
    assert "nothing to go back to" in done.stderr


def test_only_a_file_is_published(site: Site) -> None:
    """Neither a missing one nor a link, which may lead to what only root may read."""
    secret = site.folder / "secret"
    secret.write_text("x")
    (site.folder / "link.db").symlink_to(secret)

    for arguments in ((), (site.folder / "missing.db",), (site.folder / "link.db",)):
        done = site.publish(*arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ")
    assert not site.file.exists()


@pytest.mark.parametrize("start", range(1, 25, 8))
def test_it_may_be_killed_at_any_moment(site: Site, start: int) -> None:
    """A whole database is published then, and the next run publishes the new one."""
    assert site.publish(site.database(b"old")).returncode == 0
    for number in range(start, start + 8):
        site.kill_at(number)
        site.publish(site.database(b"new"))
        site.spare()
        assert site.file.read_bytes() in (b"old", b"new")
        done = site.publish(site.database(b"new"))
        assert done.returncode == 0, done.stderr
        assert site.is_whole(b"new")
        assert site.publish(site.database(b"old")).returncode == 0
