"""The documents are true: commands are typed in a reader's order, every example has its rows."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.server import free_port, wait_until_up
from spack_cache_db.site import spec_functions
from tests.documents import Fence, Typed, fences, typed
from tests.paths import ROOT

READ = ("README.md", "docs/site.md", "docs/spec-language.md")
"""The documents in the order in which they are read."""

NOT_TYPED = {
    "docs/performance.md": "each of its commands takes minutes, and all of the machine",
    "docs/deploy.md": "typed in tests/deploy, beside the servers that it sets up",
    "CONTRIBUTING.md": "its commands are those that run this test",
}
SERVER = re.compile(r"^(make run|spack-cache-db serve|datasette) ?")
"""Commands that end only when they are interrupted."""

STUBS = {
    "apt-get": "exit 0",
    "nginx": "exit 0",
    # Units are Debian's to start; what they start is started here, as the units say.
    "systemctl": """
for unit; do case $unit in spack-cache@*)
    port=${unit#spack-cache@}
    [ ! -f "$STATE/$port" ] || kill "$(cat "$STATE/$port")"
    spack-cache-db serve "$SPACK_CACHE_FOLDER/current.db" --no-sql --port "$port" >/dev/null 2>&1 &
    echo $! > "$STATE/$port"
esac; done
""",
}
"""What would change the machine, and stands in for it."""


class Reader:
    """Somebody at a terminal in a fresh checkout: one shell, at most one server in front of it."""

    def __init__(self, folder: Path) -> None:
        """Begin in `folder/checkout`; the machine's own folders are beside it."""
        self.folder = folder
        self.checkout = folder / "checkout"
        self.ports = {"8001": str(free_port()), "8002": str(free_port())}
        self._log = (folder / "log").open("wb")
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.checkout,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._server = False
        # Each program in the background is a group of its own, and can be ended with its children.
        self._say("set -m")

    def type(self, each: Typed) -> str:
        """Type a command, see that it succeeds, and return what it printed."""
        command = self._here(each.command)
        if SERVER.match(command):
            self._serve(command)
            return ""
        printed, status = self._say(command)
        errors = (self.folder / "log").read_text(encoding="utf-8")[-2000:]
        assert status == 0, f"{each.place}: {command}: status {status}\n{printed}\n{errors}"
        return printed

    def leave(self) -> None:
        """End everything that was started."""
        self._interrupt()
        for pid in (self.folder / "state").iterdir():
            self._say(f"kill $(cat {pid})")
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(timeout=20)
        self._log.close()

    def _serve(self, command: str) -> None:
        self._interrupt()
        port = free_port()
        self.ports["8001"] = str(port)
        words = command.partition("#")[0]
        option = f"PORT={port}" if words.startswith("make") else f"--port {port}"
        self._say(f"{words} {option} >&2 &")
        self._server = True
        wait_until_up(port, self._shell, within=300)

    def _interrupt(self) -> None:
        if self._server:
            self._say("kill -INT -- -$! && wait $! || true")
        self._server = False

    def _say(self, command: str) -> tuple[str, int]:
        """Send a line to the shell; return the output and the exit status."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\nprintf '\\n%s %s\\n' DONE $?\n")
        self._shell.stdin.flush()
        lines = iter(self._shell.stdout.readline, "")
        printed: list[str] = []
        for line in lines:
            if re.fullmatch(r"DONE \d+\n", line):
                return "".join(printed)[:-1], int(line.split()[1])
            printed.append(line)
        raise AssertionError(f"the shell ended: {command}")

    def _here(self, command: str) -> str:
        """Put the machine's folders and ports in the place of what a document names."""
        command = command.replace("/opt/spack-cache-db", str(self.checkout))
        command = re.sub(r"(?<![\w/.])/(etc|srv)/", rf"{self.folder}/\1/", command)
        for named, free in self.ports.items():
            command = re.sub(rf"\b{named}\b", free, command)
        return command

    def _environment(self) -> dict[str, str]:
        """Return what a login gives, with the stubs before everything else."""
        kept = {
            key: os.environ[key] for key in os.environ if key.startswith(("PIP_", "SSL_", "HOME"))
        }
        return {
            **kept,
            "PATH": f"{self.folder}/stubs:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PIP_NO_COMPILE": "1",  # It takes longer than to import what the commands import.
            "PYTHON": getattr(sys, "_base_executable", sys.executable),
            "STATE": f"{self.folder}/state",
            "SPACK_CACHE_FOLDER": f"{self.folder}/srv/spack-cache",
            "SPACK_CACHE_PORTS": f"{self.ports['8001']} {self.ports['8002']}",
        }


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader on a machine of Debian's, with a checkout and some pages."""
    shutil.copytree(ROOT, tmp_path / "checkout", ignore=_not_in_a_checkout)
    shutil.copytree(ROOT / "pages", tmp_path / "srv" / "spack-cache" / "pages")
    for name in ("systemd/system", "nginx/sites-available", "nginx/sites-enabled"):
        (tmp_path / "etc" / name).mkdir(parents=True)
    (tmp_path / "etc/nginx/sites-enabled/default").touch()
    (tmp_path / "state").mkdir()
    (tmp_path / "stubs").mkdir()
    for name, script in STUBS.items():
        stub = tmp_path / "stubs" / name
        stub.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        stub.chmod(0o755)
    somebody = Reader(tmp_path)
    yield somebody
    somebody.leave()


def _not_in_a_checkout(folder: str, names: list[str]) -> set[str]:
    """Name what git does not keep, or what no command of the documents reads."""
    if Path(folder) != ROOT:
        return {name for name in names if name == "__pycache__"}
    return {name for name in names if name.startswith(".") or name in {"dist", "build", "tests"}}


@pytest.mark.slow
def test_every_command_does_what_the_documents_say(reader: Reader) -> None:
    """Typed in order on a fresh machine, each command succeeds and prints what is shown for it."""
    for name in READ:
        for fence in fences(ROOT / name):
            for each in typed(fence):
                printed = reader.type(each)
                if each.shown is not None:
                    assert printed == each.shown, each.place
    assert (reader.checkout / "spack-cache.db").read_bytes()[:15] == b"SQLite format 3"


def test_every_document_is_read() -> None:
    """A document with commands is among those that are typed, or it is said why not."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    with_commands = {
        path.relative_to(ROOT).as_posix()
        for path in documents
        if any(fence.language in {"sh", "console"} for fence in fences(path))
    }
    assert with_commands == {*READ, *NOT_TYPED}


def _all(language: str) -> list[Fence]:
    documents = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    return [fence for path in documents for fence in fences(path) if fence.language == language]


def test_fences_name_their_language() -> None:
    """No block escapes these tests because it does not say what it is."""
    known = {"sh", "console", "sql", "python", ""}
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    assert {fence.language for path in documents for fence in fences(path)} <= known


@pytest.mark.parametrize("fence", _all("sql"), ids=lambda fence: fence.place)
def test_sql_finds_rows(fence: Fence, samples: sqlite3.Connection) -> None:
    """Each statement of the documents has an answer in the shipped pages."""
    spec_functions.register(samples)
    assert samples.execute(fence.text).fetchall() != []


@pytest.mark.parametrize("fence", _all("python"), ids=lambda fence: fence.place)
def test_python_is_true(
    fence: Fence, samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python answers in the documents, it answers."""
    (tmp_path / "dist").mkdir()
    shutil.copy(samples_file, tmp_path / "dist" / "spack-cache.db")
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(fence.text, {}, fence.place, None, 0)
    said: list[str] = []
    outcome = doctest.DocTestRunner().run(example, out=said.append)
    assert outcome.attempted > 0
    assert outcome.failed == 0, "".join(said)
