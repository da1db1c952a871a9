"""A machine in a folder, in which the commands of `docs/publish.md` run.

Folders of `/opt`, `/srv`, `/etc`, `/run` and `/var/cache` are in that folder, and ports
are free ones; `apt-get` and `useradd` do nothing, and `systemctl` calls `manager.py`
instead of systemd.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server import free_port
from tests.deploy.manager import Manager
from tests.deploy.tools import PATH, write_command
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

_FOLDERS = (
    r"/(?:opt|srv|run)/spack-cache|/var/cache/nginx"
    r"|/etc/(?=nginx|systemd|spack-cache|ssl/spack-cache)"
)
_DEBIAN = r"/etc/nginx|/var/log/nginx|/run/nginx\.pid"


@dataclass
class Machine:
    """The machine: its folder, the ports that stand for 80, 443 and 8001, its
    systemd.
    """

    folder: Path
    ports: dict[str, str]
    manager: Manager

    def there(self, text: str) -> str:
        """Return a text of the documents or of `deploy/` as it reads on this
        machine.
        """
        text = re.sub(_FOLDERS, lambda found: f"{self.folder}{found[0]}", text)
        text = text.replace("8001", self.ports["8001"])
        text = re.sub(r" *listen \[::\].*\n", "", text)
        for port in ("80", "443"):
            text = re.sub(
                rf"listen {port}\b", f"listen 127.0.0.1:{self.ports[port]}", text
            )
        text = text.replace(
            "https://localhost/", f"https://127.0.0.1:{self.ports['443']}/"
        )
        return text.replace("-o spack-cache ", "")

    def run(self, commands: str, systemctl: int, folder: Path) -> tuple[str, Path]:
        """Run commands of a document; return their output and the last folder of the
        shell.
        """
        write_command(
            self.folder / "commands",
            "systemctl",
            f'exec curl -sS --fail-with-body http://127.0.0.1:{systemctl}/ -d "$*"',
        )
        path = self.folder / "pwd"
        environment = {
            name: value for name, value in os.environ.items() if name.startswith("PIP_")
        }
        environment["PATH"] = self.manager.path
        environment["HOME"] = str(self.folder)
        # It takes longer than to compile what the commands import.
        environment["PIP_NO_COMPILE"] = "1"
        done = completed(
            ["sh", "-eu", "-c", f"{self.there(commands)}\npwd > {path}"],
            cwd=folder,
            env=environment,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout, Path(path.read_text(encoding="utf-8").strip())


def machine(folder: Path) -> Machine:
    """Return a machine with Debian's nginx, and nothing else."""
    program = needed("nginx", "nginx-light")
    ports = {name: str(free_port()) for name in ("80", "443", "8001")}
    nginx = [
        program,
        "-c",
        f"{folder}/etc/nginx/nginx.conf",
        "-e",
        f"{folder}/error.log",
    ]
    for name in (
        "commands",
        "etc/systemd/system",
        "opt",
        "run",
        "srv",
        "var/cache",
        "var/log/nginx",
    ):
        (folder / name).mkdir(parents=True)
    shutil.copytree("/etc/nginx", folder / "etc" / "nginx", dirs_exist_ok=True)
    units = folder / "etc/systemd/system"
    path = f"{folder}/commands:{PATH}"
    made = Machine(folder, ports, Manager(units, folder / "run", nginx, path))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"\t{kind}_temp_path {folder}/run/{kind};\n" for kind in kinds)
    for file in (folder / "etc" / "nginx").rglob("*"):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            text = re.sub(_DEBIAN, lambda found: f"{folder}{found[0]}", text)
            file.write_text(
                text.replace("http {", f"http {{\n{temporary}", 1), encoding="utf-8"
            )
    write_command(folder / "commands", "apt-get", "exit 0")
    write_command(folder / "commands", "useradd", "exit 0")
    write_command(folder / "commands", "nginx", f'exec {" ".join(nginx)} "$@"')
    return made


def checkout(made: Machine) -> Path:
    """Return a checkout of this project as the machine reads it."""
    folder = made.folder / "checkout"
    git = [
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-C",
        str(folder),
    ]
    listed = completed(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for file in (folder / "deploy").rglob("*"):
        if file.is_file():
            file.write_text(
                made.there(file.read_text(encoding="utf-8")), encoding="utf-8"
            )
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "All"]):
        completed([*git, *command], check=True)
    return folder
