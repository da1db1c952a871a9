"""Reads environments from disk: a `spack.yaml` with the files that it includes."""

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
        machine: the machine for its conditions, by default this one.
        parse: reads its specs.
        known: the known packages and hashes, by which lines of a list are read.
        is_strict: missing includes are faults.

    Raises:
        UnreadableEnvironment: it cannot be read.
    """
    try:
        data = read_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        message = f"{unreadable(error)}; expected a spack.yaml, a spack.lock or a list"
        raise UnreadableEnvironment([Fault(str(path), 0, message)]) from None
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
        # Links may lead in a circle.
        real_path = os.path.realpath(path)
        if real_path in visited:
            folders.clear()
            continue
        visited.add(real_path)
        folders[:] = sorted(child for child in folders if not child.startswith("."))
        for name in ENVIRONMENT_FILES:
            if name in files:
                environments.append(Path(path, name))
                break
        if len(visited) > MOST_FOLDERS:
            message = f"has more than {MOST_FOLDERS:,} folders"
            raise UnreadableEnvironment([Fault(str(folder), 0, message)])
    if not environments:
        expected = " or ".join(ENVIRONMENT_FILES)
        message = f"there is no environment in this folder, expected {expected}"
        raise UnreadableEnvironment([Fault(str(folder), 0, message)])
    return sorted(environments)


def _raise(error: OSError) -> None:
    raise UnreadableEnvironment([Fault(str(error.filename), 0, unreadable(error))])


def surroundings(
    folder: Path,
    machine: Machine,
    parse: Parser = parse_query,
    known: KnownNames = ANY_NAME,
    *,
    is_strict: bool = False,
) -> Surroundings:
    """Return the files and values that an environment in a folder may refer to."""
    parts = {"platform": machine.platform, "os": machine.os, "target": machine.target}
    known_parts = [
        f"{name}={value}" for name, value in parts.items() if value is not None
    ]
    arch = " ".join(known_parts)
    # The names in the conditions of an environment (`when:`).
    names = {
        **parts,
        "arch": arch,
        "architecture": arch,
        "arch_str": arch,
        "hostname": socket.gethostname(),
    }
    variables = _variables(folder, machine)
    return Surroundings(
        open_include, names, os.environ, variables, is_strict, parse, known
    )


def open_include(path: str) -> bytes | Mapping[str, bytes] | None:
    """Return an included file, or the files of a folder by name; None if there is none.

    Raises:
        LineFault: it is not a regular file, or too large.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116 - any text may be a path
            contents = {}
            for name in SCOPE_FILES:
                data = _included(os.path.join(path, name))  # noqa: PTH118
                if data is not None:
                    contents[name] = data
            return contents
        return _included(path)
    except (OSError, ValueError):
        return None


def _included(path: str) -> bytes | None:
    try:
        return read_file(path, MAX_INCLUDED)
    except FileFault as fault:
        raise LineFault(0, unreadable(fault), path) from None
    except (OSError, ValueError):
        return None


def _variables(folder: Path, machine: Machine) -> dict[str, str]:
    """Return the variables of paths: environment variables, and Spack's "Config File
    Variables".
    """
    arch = f"{machine.platform}-{machine.os}-{machine.target}"
    variables = {
        "env": str(folder.resolve()),
        "spack": os.environ.get("SPACK_ROOT"),
        "user": _user(),
        "tempdir": tempfile.gettempdir(),
        "date": date.today().isoformat(),
        "platform": machine.platform,
        "os": machine.os,
        "operating_system": machine.os,
        "target": machine.target,
        "target_family": family(machine.target),
        "architecture": arch,
        "arch": arch,
    }
    known = {name: value for name, value in variables.items() if value is not None}
    return {**os.environ, **known}


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
