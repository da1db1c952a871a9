"""Clones of Spack and its packages, and instances that share nothing but these
clones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.processes import completed

PATIENCE = 900.0
"""Seconds after which a command is killed; the first one reads all packages."""
DETECTED = ("gcc", "cmake", "gmake", "perl")
"""Packages that Spack need not build, because this machine has them."""
OF_MIRRORS = ("indices",)
"""Folders of Spack's cache with what it has read from mirrors."""


class LiveSpackError(Exception):
    """The checkouts cannot be used, or a preparation failed."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command returned and printed.

    Attributes:
        status: its exit status.
        output: standard output and standard error, in the order in which they were
            written.
    """

    status: int
    output: str


@dataclass(frozen=True, slots=True)
class Clones:
    """Clones of Spack and of its packages.

    Attributes:
        spack: the folder with `bin/spack`.
        packages: the folder with the repository `builtin`.
        python: the Python that runs Spack; it has clingo, Spack's solver.
    """

    spack: Path
    packages: Path
    python: Path


def cloned(spack: Path, packages: Path, python: Path, folder: Path) -> Clones:
    """Clone two checkouts, without their configuration and without uncommitted changes.

    Args:
        spack: a Git checkout of Spack; it may be bare.
        packages: a Git checkout of spack-packages; it may be bare.
        python: the Python that is going to run Spack.
        folder: where the clones are written.

    Raises:
        LiveSpackError: one of them is not what its name says.
    """
    if completed([python, "-c", "import clingo"]).returncode != 0:
        raise LiveSpackError(
            f"{python} has no clingo: start this program by `make test-spack`"
        )
    builtin = Path("repos", "spack_repo", "builtin")
    spack_clone = _cloned(spack, folder / "spack", Path("bin", "spack"))
    packages_clone = _cloned(packages, folder / "packages", builtin / "repo.yaml")
    return Clones(spack=spack_clone, packages=packages_clone / builtin, python=python)


def _cloned(source: Path, target: Path, member: Path) -> Path:
    """Clone a checkout, which must have a file `member`, and return the clone."""
    command = ["git", "clone", "--quiet", "--shared", source.resolve(), target]
    done = completed(command, within=PATIENCE)
    if done.returncode != 0:
        raise LiveSpackError(f"{source}: Git cannot clone it: {done.stderr.strip()}")
    if not (target / member).is_file():
        raise LiveSpackError(f"{source}: the checkout has no {member}")
    return target


class Instance:
    """Spack with its own settings, caches, keys and installations.

    Settings of the user, of the system and of the checkout do not reach it. Of this
    machine, it knows the tools that `DETECTED` names.
    """

    def __init__(
        self,
        clones: Clones,
        folder: Path,
        *,
        certificate: Path | None = None,
        like: Instance | None = None,
    ) -> None:
        """Write the settings of a new instance.

        Args:
            clones: what it runs.
            folder: a folder that does not exist.
            certificate: a certificate that it accepts for HTTPS.
            like: an instance from which detected tools and the knowledge of packages
                are copied, because finding them out again takes a minute. Mirrors, keys
                and installations are not copied.
        """
        self.folder = folder
        self._program = clones.spack / "bin"
        self._python = str(clones.python)
        self._certificate = certificate

        # Folders of its own.
        self._settings = folder / "settings"
        self._system = folder / "system"
        self._caches = folder / "caches"
        self._keys = folder / "keys"
        self._settings.mkdir(parents=True)
        self._system.mkdir()
        # GnuPG refuses a folder that others can read.
        self._keys.mkdir(mode=0o700)
        self._write_system_settings(clones)

        # What it knows about this machine and about packages.
        if like is None:
            self.checked("external", "find", "--not-buildable", *DETECTED)
        else:
            shutil.copy(like._settings / "packages.yaml", self._settings)
            ignored = shutil.ignore_patterns(*OF_MIRRORS)
            shutil.copytree(like._caches, self._caches, ignore=ignored)

    def _write_system_settings(self, clones: Clones) -> None:
        """Write settings below those of the user, which the printed commands change."""
        # Spack's own setting is a mirror of sources on the web. The second colon
        # replaces it.
        write_yaml(self._system / "mirrors.yaml", {"mirrors:": {}})
        repos = {"builtin": str(clones.packages)}
        write_yaml(self._system / "repos.yaml", {"repos": repos})

        # Everything that it writes is in its folder.
        bootstrap = {"enable": True, "root": str(self.folder / "bootstrap")}
        write_yaml(self._system / "bootstrap.yaml", {"bootstrap": bootstrap})
        config = {
            "install_tree": {"root": str(self.folder / "tree")},
            "build_stage": [str(self.folder / "stage")],
            "test_stage": str(self.folder / "test"),
            "source_cache": str(self.folder / "sources"),
            "misc_cache": str(self._caches),
        }
        write_yaml(self._system / "config.yaml", {"config": config})

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of its commands."""
        # No setting of the user's Spack.
        variables = {}
        for name, value in os.environ.items():
            if not name.startswith("SPACK_"):
                variables[name] = value

        variables["HOME"] = str(self.folder)
        variables["PATH"] = f"{self._program}{os.pathsep}{os.environ['PATH']}"
        variables["SPACK_GNUPGHOME"] = str(self._keys)
        variables["SPACK_PYTHON"] = self._python
        variables["SPACK_SYSTEM_CONFIG_PATH"] = str(self._system)
        variables["SPACK_USER_CACHE_PATH"] = str(self.folder / "user")
        variables["SPACK_USER_CONFIG_PATH"] = str(self._settings)
        if self._certificate is not None:
            variables["SSL_CERT_FILE"] = str(self._certificate)
        return variables

    def run(self, *words: object) -> Result:
        """Run one command of Spack, given by its words."""
        return self._run(["spack", *words])

    def checked(self, *words: object) -> str:
        """Run one command of Spack that has to succeed, and return its output.

        Raises:
            LiveSpackError: it failed.
        """
        result = self.run(*words)
        if result.status != 0:
            typed = " ".join(map(str, words))
            raise LiveSpackError(f"spack {typed} failed:\n{result.output}")
        return result.output

    def paste(self, lines: Iterable[str]) -> Result:
        """Run lines as if they were pasted into a terminal, up to the first that fails.

        A command that asks a question reads the next line as the answer, as it does in
        a terminal.
        """
        typed = "".join(f"{line}\n" for line in lines)
        return self._run(["bash", "-e", "-s"], typed)

    def installed(self) -> dict[str, str]:
        """Return the name of each installed package by its hash, without externals."""
        records = json.loads(self.checked("find", "--json"))
        names = {}
        for record in records:
            if "external" not in record:
                names[record["hash"]] = record["name"]
        return names

    def close(self) -> None:
        """End the agent of GnuPG, which outlives the commands, and delete the
        folder.
        """
        completed(["gpgconf", "--homedir", self._keys, "--kill", "all"])
        shutil.rmtree(self.folder)

    def _run(self, words: Sequence[object], typed: str = "") -> Result:
        """Run a program with its settings, and type a text."""
        done = completed(
            words,
            stderr=subprocess.STDOUT,
            input=typed,
            within=PATIENCE,
            env=self.variables,
            cwd=self.folder,
        )
        return Result(status=done.returncode, output=done.stdout)


def write_yaml(path: Path, value: object) -> Path:
    """Write a file, with its folder, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return path
