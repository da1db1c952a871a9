"""In place of systemd: what `systemctl` asks for, done with real processes in their
sandboxes.
"""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.deploy.sandbox import Unit, read_unit, template_of
from tests.deploy.tools import Quiet, listening
from tests.paths import ROOT
from tests.processes import PATIENCE, completed


class RefusedError(Exception):
    """What systemd would refuse or see fail."""


@dataclass
class Manager:
    """The units of a folder, their running processes, and what `systemctl` was asked to
    do.
    """

    units: Path
    runtime: Path
    nginx: list[str]
    path: str
    asked: list[str] = field(default_factory=list)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    nginx_runs: bool = False

    def do(self, arguments: list[str]) -> None:
        """Do what `systemctl` would do; raises RefusedError if a unit is unknown or
        fails.
        """
        self.asked.append(" ".join(arguments))
        verb, *names = arguments
        if verb == "daemon-reload":
            return
        is_now = "--now" in names
        for name in [each for each in names if not each.startswith("--")]:
            if name == "nginx" and verb == "reload":
                self._reload_nginx()
            elif verb in ("start", "restart") or is_now:
                self._start(name, is_new=verb == "restart")
            elif (
                verb not in ("enable", "stop")
                or not template_of(self._file(name)).exists()
            ):
                raise RefusedError(f"systemctl {verb} {name}")

    def close(self) -> None:
        """End all that runs."""
        if self.nginx_runs:
            self._stop_nginx()
        for name in list(self.running):
            self._stop(name)

    def _file(self, name: str) -> Path:
        return self.units / (
            name if name.endswith((".timer", ".service")) else f"{name}.service"
        )

    def _start(self, name: str, *, is_new: bool = False) -> None:
        running = self.running.get(name)
        is_running = running is not None and running.poll() is None
        if name.endswith(".timer") or (is_running and not is_new):
            return
        file = self._file(name)
        try:
            unit = read_unit(file)
        except FileNotFoundError:
            raise RefusedError(f"Unit {file.name} not found.") from None
        if not all(Path(each).exists() for each in unit.get("ConditionPathExists", ())):
            return
        for needed in " ".join(unit.get("Requires", ())).split():
            self._start(needed)
        for wanted in " ".join(unit.get("Wants", ())).split():
            if wanted.endswith(".service"):
                with suppress(RefusedError):
                    self._start(wanted)
        if unit.get("Type") == ["oneshot"]:
            self._run(file, unit)
        else:
            self._stop(name)
            (command,) = unit["ExecStart"]
            self.running[name] = subprocess.Popen(
                _sandboxed(file, command), cwd=ROOT, env={"PATH": self.path}
            )

    def _run(self, file: Path, unit: Unit) -> None:
        folders = [self.runtime / each for each in unit.get("RuntimeDirectory", ())]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        try:
            for command in unit["ExecStart"]:
                done = completed(
                    _sandboxed(file, command), cwd=ROOT, env={"PATH": self.path}
                )
                if done.returncode != 0:
                    raise RefusedError(f"{file.name}: {command} failed: {done.stderr}")
        finally:
            for folder in folders:
                shutil.rmtree(folder)

    def _stop(self, name: str) -> None:
        process = self.running.pop(name, None)
        if process is not None:
            process.terminate()
            process.wait(PATIENCE)

    def _reload_nginx(self) -> None:
        # Started without more, it returns when it listens; Debian starts it when it is
        # installed.
        signal = ["-s", "reload"] if self.nginx_runs else []
        completed([*self.nginx, *signal], check=True, stdout=None, stderr=None)
        self.nginx_runs = True

    def _stop_nginx(self) -> None:
        completed([*self.nginx, "-s", "quit"], check=True)
        deadline = time.monotonic() + PATIENCE
        while (self.runtime / "nginx.pid").exists():
            assert time.monotonic() < deadline, "nginx does not end"
            time.sleep(0.05)


def _sandboxed(file: Path, command: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.deploy.sandbox",
        str(file),
        *shlex.split(command),
    ]


@contextmanager
def asked(manager: Manager) -> Iterator[int]:
    """Let the manager be asked over HTTP while the context lasts; give the port."""

    class Call(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            words = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status = 200
            said = ""
            try:
                manager.do(words.split())
            except RefusedError as error:
                status = 500
                said = str(error)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(said.encode())

    with closing(manager), listening(Call) as port:
        yield port
