"""Environments on disk: opens a `spack.yaml` and the files that it includes."""

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
from spack_cache_db.environments import (
    SCOPE_FILES,
    Environment,
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.formats import MAX_BYTES, read_environment
from spack_cache_db.errors import Fault, LineFault
from spack_cache_db.machine import Machine, this_machine
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.pasted_specs import ANY_NAME, KnownNames
from spack_cache_db.spack.targets import family

MAX_INCLUDED = 2**24
"""Bytes of a file that is included."""

ENVIRONMENT_FILES = ("spack.yaml", "spack.lock")
MOST_FOLDERS = 10_000
"""Folders that are looked into for environments."""


def read_environment_file(
    path: Path,
    machine: Machine | None = None,
    parse: Parser = parse_query,
    known: KnownNames = ANY_NAME,
    *,
    is_strict: bool = False,
) -> Environment:
    """Return what the environment in a file asks for, with all that it includes.

    Args:
        path: a `spack.yaml`, a `spack.lock`, or a list of specs.
        machine: the machine that its conditions ask for; None for this one.
        parse: reads its specs.
        known: the packages and hashes that a line of a list may mean.
        is_strict: an include that is not here is a fault.

    Raises:
        UnreadableEnvironment: it cannot be read.
    """
    try:
        data = read_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        said = f"{unreadable(error)}; expected a spack.yaml, a spack.lock or a list"
        raise UnreadableEnvironment([Fault(str(path), 0, said)]) from None
    machine = machine or this_machine()
    around = surroundings(path.parent, machine, parse, known, is_strict=is_strict)
    return read_environment(data, str(path), Limits(), around)


def environments_in(folder: Path) -> list[Path]:
    """Return the environments in a folder, at any depth, sorted.

    Of each place it is the `spack.yaml`, or else the `spack.lock`. Hidden folders are left out;
    links are followed, to each folder once.

    Raises:
        UnreadableEnvironment: there is none, a folder cannot be read, or there are too many.
    """
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, onerror=_raise, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = sorted(each for each in folders if each[0] != "." and real not in seen)
        name = next((each for each in ENVIRONMENT_FILES if each in files), None)
        found += [Path(place, name)] if name and real not in seen else []
        seen.add(real)
        if len(seen) > MOST_FOLDERS:
            said = f"has more than {MOST_FOLDERS:,} folders"
            raise UnreadableEnvironment([Fault(str(folder), 0, said)])
    if not found:
        said = f"there is no environment in this folder, expected {' or '.join(ENVIRONMENT_FILES)}"
        raise UnreadableEnvironment([Fault(str(folder), 0, said)])
    return sorted(found)


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
    """Return what an environment in a folder may refer to.

    Args:
        folder: where the environment is.
        machine: the machine that its conditions ask for.
        parse: reads its specs.
        known: the packages and hashes that a line of a list may mean.
        is_strict: an include that is not here is a fault.
    """
    parts = {"platform": machine.platform, "os": machine.os, "target": machine.target}
    arch = " ".join(f"{name}={value}" for name, value in parts.items() if value is not None)
    names = {
        **parts,
        **dict.fromkeys(("arch", "architecture", "arch_str"), arch),
        "hostname": socket.gethostname(),
    }
    variables = _variables(folder, machine)
    return Surroundings(open_include, names, os.environ, variables, is_strict, parse, known)


def open_include(path: str) -> bytes | Mapping[str, bytes] | None:
    """Return an included file, or the files of a folder by name; None if there is none.

    Raises:
        LineFault: it is no regular file, or too large.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116 - any text may be a path
            found = {name: _included(os.path.join(path, name)) for name in SCOPE_FILES}  # noqa: PTH118
            return {name: data for name, data in found.items() if data is not None}
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
    """Return the variables of paths: the environment's, and Spack's own where they are known.

    Spack 1.1 documents them as "Config File Variables".
    """
    known = {
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
        "architecture": f"{machine.platform}-{machine.os}-{machine.target}",
        "arch": f"{machine.platform}-{machine.os}-{machine.target}",
    }
    return {**os.environ, **{name: value for name, value in known.items() if value is not None}}


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
