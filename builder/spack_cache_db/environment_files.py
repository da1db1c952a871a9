"""Reads environments from disk: a `spack.yaml` with the files that it includes.

The package `environments` understands the text. It knows no files: this module gives it
the bytes, a function that opens included files, and the values of this machine to which
an environment may refer.
"""

from __future__ import annotations

import getpass
import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from spack_cache_db.bounded_files import FileFault, read_file, unreadable
from spack_cache_db.environments.known_names import ANY_NAME, KnownNames
from spack_cache_db.environments.model import (
    SCOPE_FILES,
    Environment,
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import MAX_BYTES, read_environment
from spack_cache_db.errors import Fault, LineFault
from spack_cache_db.spack.machine import Machine, this_machine
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.targets import family

MAX_INCLUDED = 2**24
"""Maximum size of an included file, in bytes."""

ENVIRONMENT_FILES = ("spack.yaml", "spack.lock")
"""The files that make a folder an environment; the first one counts."""

MOST_FOLDERS = 10_000
"""Maximum of folders that are searched for environments."""


def read_environment_file(
    path: Path,
    machine: Machine | None = None,
    parse: Parser = parse_query,
    known: KnownNames = ANY_NAME,
    *,
    is_strict: bool = False,
) -> Environment:
    """Return the environment in a file, with its includes.

    Args:
        path: a `spack.yaml`, a `spack.lock`, or a list of specs.
        machine: the machine to which its conditions refer (`when:`), by default this
            one.
        parse: reads its specs, which may be in the syntax of an older Spack.
        known: the known packages and hashes, by which lines of a list are read.
        is_strict: missing includes are faults.

    Raises:
        UnreadableEnvironment: the file cannot be read, or has faults.
    """
    try:
        data = read_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        message = f"{unreadable(error)}; expected a spack.yaml, a spack.lock or a list"
        raise _unreadable(path, message) from None
    files_and_values = surroundings(
        path.parent, machine or this_machine(), parse, known, is_strict=is_strict
    )
    return read_environment(data, str(path), Limits(), files_and_values)


def environments_in(folder: Path) -> list[Path]:
    """Return the environments in a folder, at any depth, sorted.

    In each folder this is the `spack.yaml`, or else the `spack.lock`. Hidden folders
    are skipped; links are followed, to each folder once.

    Raises:
        UnreadableEnvironment: there is none, a folder cannot be read, or there are too
            many.
    """
    environments: list[Path] = []
    visited: set[str] = set()
    for path, folders, files in os.walk(folder, onerror=_raise, followlinks=True):
        # Links may lead in a circle, or to a folder twice.
        real_path = os.path.realpath(path)
        if real_path in visited:
            folders.clear()
            continue
        visited.add(real_path)
        # `os.walk` visits the folders that remain in this list.
        folders[:] = sorted(child for child in folders if not child.startswith("."))
        for name in ENVIRONMENT_FILES:
            if name in files:
                environments.append(Path(path, name))
                break
        if len(visited) > MOST_FOLDERS:
            raise _unreadable(folder, f"has more than {MOST_FOLDERS:,} folders")
    if not environments:
        expected = " or ".join(ENVIRONMENT_FILES)
        message = f"there is no environment in this folder, expected {expected}"
        raise _unreadable(folder, message)
    return sorted(environments)


def _raise(error: OSError) -> None:
    raise _unreadable(error.filename, unreadable(error))


def _unreadable(path: str | Path, message: str) -> UnreadableEnvironment:
    """Return an error with one fault of a whole file or folder."""
    return UnreadableEnvironment([Fault(str(path), 0, message)])


def surroundings(
    folder: Path,
    machine: Machine,
    parse: Parser = parse_query,
    known: KnownNames = ANY_NAME,
    *,
    is_strict: bool = False,
) -> Surroundings:
    """Return the files and values that an environment in a folder may refer to.

    The arguments are those of `read_environment_file`.
    """
    # The names in conditions. Spack prints an architecture as
    # `platform=linux os=rhel9 target=zen3`; a part that is not known is left out.
    parts = {"platform": machine.platform, "os": machine.os, "target": machine.target}
    known_parts = []
    for name, value in parts.items():
        if value is not None:
            known_parts.append(f"{name}={value}")
    arch = " ".join(known_parts)
    names = {
        **parts,
        "arch": arch,
        "architecture": arch,
        "arch_str": arch,
        "hostname": socket.gethostname(),
    }
    return Surroundings(
        open=open_include,
        names=names,
        env=os.environ,
        variables=_variables(folder, machine),
        is_strict=is_strict,
        parse=parse,
        known=known,
    )


def open_include(path: str) -> bytes | Mapping[str, bytes] | None:
    """Return an included file, or the files of a folder by name; None if there is none.

    Raises:
        LineFault: it is not a regular file, or too large.
    """
    try:
        # `os`, and not `Path`: the path may be any text of an environment.
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    if not is_folder:
        return _included(path)
    contents = {}
    for name in SCOPE_FILES:
        data = _included(os.path.join(path, name))  # noqa: PTH118
        if data is not None:
            contents[name] = data
    return contents


def _included(path: str) -> bytes | None:
    """Return the bytes of an included file; None if there is none."""
    try:
        return read_file(path, MAX_INCLUDED)
    except FileFault as fault:
        raise LineFault(0, unreadable(fault), path) from None
    except (OSError, ValueError):
        return None


def _variables(folder: Path, machine: Machine) -> dict[str, str]:
    """Return the variables in paths: environment variables, and those of Spack (Spack
    docs, "Config File Variables").

    Args:
        folder: the folder of the environment, which is `$env`.
        machine: the machine that `$platform`, `$os` and `$target` mean.
    """
    arch = f"{machine.platform}-{machine.os}-{machine.target}"
    variables = {
        "env": str(folder.resolve()),
        "spack": os.environ.get("SPACK_ROOT"),
        "user": _user(),
        "tempdir": _temporary_folder(),
        "date": date.today().isoformat(),
        "platform": machine.platform,
        "os": machine.os,
        "operating_system": machine.os,
        "target": machine.target,
        "target_family": family(machine.target),
        "architecture": arch,
        "arch": arch,
    }
    # A variable that is not known stays in a path as it is.
    known = {name: value for name, value in variables.items() if value is not None}
    return {**os.environ, **known}


def _user() -> str | None:
    """Return the name of the user; None if the system has no name for the id."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _temporary_folder() -> str | None:
    """Return the folder for temporary files; None if nothing can be written to it."""
    try:
        return tempfile.gettempdir()
    except OSError:
        # All disks are full. Most environments do not use the variable.
        return None
