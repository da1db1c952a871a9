"""Reads the environments of `cover` and `retention`, and asks the database for them.

An environment is a file, standard input (`-`), or each environment in a folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spack_cache_db.cli.forms import fail

if TYPE_CHECKING:
    from spack_cache_db.query.answers.cover import Baseline
    from spack_cache_db.query.answers.covered import Cover
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.open.lookups import Lookups
    from spack_cache_db.spack.machine import Machine

STANDARD_INPUT = "-"
"""The path that means standard input."""


class Covered(NamedTuple):
    """The answers for one environment.

    Attributes:
        path: its path, as it is printed.
        cover: the answers; None if the environment cannot be read.
        error: why it cannot be read, with a line for each fault.
    """

    path: str
    cover: Cover | None
    error: str = ""


def environment_paths(environment: str) -> tuple[bool, list[str]]:
    """Return whether a path is a folder, and the environments in it, or the path.

    A folder without an environment ends the command with an error.
    """
    from spack_cache_db.environment_files import environments_in
    from spack_cache_db.environments.model import UnreadableEnvironment

    is_folder = os.path.isdir(environment)  # noqa: PTH112 - any text may be a path
    if environment == STANDARD_INPUT or not is_folder:
        return False, [environment]
    try:
        paths = environments_in(Path(environment))
    except UnreadableEnvironment as error:
        fail(str(error))
    return True, [str(path) for path in paths]


def read_cover(
    lookups: Lookups,
    path: str,
    scope: Scope,
    options: Mapping[str, Any],
    older: Baseline | None = None,
) -> Covered:
    """Return the answers for one environment, or the error if it cannot be read.

    Args:
        lookups: the database.
        path: the environment.
        scope: the part of the database that counts, and the machine of the environment.
        options: `spack`, the version for which specs are written or None, and `strict`,
            whether an included file that is missing is a fault.
        older: the database of `--baseline`.
    """
    from spack_cache_db.environment_files import read_environment_file, surroundings
    from spack_cache_db.environments.model import UnreadableEnvironment
    from spack_cache_db.environments.reading import MAX_BYTES, read_environment
    from spack_cache_db.query.answers.cover import cover_environment
    from spack_cache_db.query.names.known import known_names
    from spack_cache_db.spack.legacy import parser_of

    machine = _machine(scope)
    parser = parser_of(options["spack"])
    known = known_names(lookups)
    is_strict = options["strict"]
    try:
        if path == STANDARD_INPUT:
            around = surroundings(Path(), machine, parser, known, is_strict=is_strict)
            # One byte more than allowed, so that the reader refuses longer texts.
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
            environment = read_environment(data, "standard input", surroundings=around)
        else:
            environment = read_environment_file(
                Path(path), machine, parser, known, is_strict=is_strict
            )
    except UnreadableEnvironment as error:
        return Covered(path, None, str(error))
    conditions = scope.conditions(lookups)
    return Covered(path, cover_environment(lookups, environment, conditions, older))


def _machine(scope: Scope) -> Machine:
    """Return the machine to which conditions in an environment refer (`when:`).

    It is this one, except for what the scope names. If a host cannot have the platform
    of this machine, its platform is unknown unless it is a Mac, and so is its operating
    system.
    """
    from spack_cache_db.spack.machine import this_machine
    from spack_cache_db.spack.targets import MAC, has_platform, is_mac

    machine = this_machine()
    if scope.host is not None and not has_platform(scope.host, machine.platform or ""):
        platform = MAC if is_mac(scope.host) else None
        machine = replace(machine, os=None, platform=platform)
    return replace(
        machine,
        target=scope.host or machine.target,
        os=scope.os or machine.os,
        platform=scope.platform or machine.platform,
    )
