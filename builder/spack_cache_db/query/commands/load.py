"""The commands that load installed specs: `module load hdf5/1.14.6` for a spec with a
module, and `spack load hdf5/abcdefg` for others.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from spack_cache_db.model import INSTALLED
from spack_cache_db.query.commands.model import Commands, short_spec
from spack_cache_db.query.open.sql import select

PROVIDED = "provided by the system"
"""The note on an external."""
INSTALLATIONS = """
SELECT release, prefix, explicit, installed_at, is_external, module_load, module_tree
FROM installations
JOIN releases ON releases.name = installations.release
WHERE hash = :hash ORDER BY releases.position, prefix
"""
"""The installations that have a spec, in the order of releases."""
IS_INSTALLATION = "SELECT 1 FROM releases WHERE name = :release AND kind = :kind"
"""Whether a release is of a kind."""


class _Installation(NamedTuple):
    """A row of `INSTALLATIONS`.

    Attributes:
        release: the name of the installation.
        prefix: the folder in which the spec is installed; None if it is not known.
        is_explicit: 1 if a user asked for the spec by name.
        installed_at: the time in UTC; None if it is not known.
        is_external: 1 if the system provides the spec.
        modules: the modules that load the spec, separated by blanks; None for none.
        folder: the folder of modules to use first; None unless several folders have the
            module.
    """

    release: str
    prefix: str | None
    is_explicit: int | None
    installed_at: str | None
    is_external: int
    modules: str | None
    folder: str | None


def installations_of(
    conn: sqlite3.Connection, package: str, dag_hash: str
) -> tuple[Commands, ...]:
    """Return the commands that load a spec, for each installation that has it.

    Args:
        conn: a connection to the database.
        package: the package of the spec.
        dag_hash: the hash of the spec.
    """
    rows = list(select(conn, INSTALLATIONS, hash=dag_hash))
    if not rows:
        return ()
    load = spack_load(short_spec(conn, package, dag_hash))
    installations = []
    for row in rows:
        installation = _Installation._make(row)
        # An installation with modules is loaded by these, others by Spack.
        lines: tuple[str, ...] = (load,)
        if installation.modules:
            lines = module_commands(installation.modules, installation.folder)
        commands = Commands(
            lines,
            installation.release,
            note=PROVIDED if installation.is_external else None,
            load=load,
            prefix=installation.prefix,
            is_explicit=bool(installation.is_explicit),
            installed_at=installation.installed_at,
            is_external=bool(installation.is_external),
        )
        installations.append(commands)
    return tuple(installations)


def load_commands(
    conn: sqlite3.Connection, package: str, dag_hash: str, release: str | None = None
) -> Commands | None:
    """Return the commands that load a spec; None if no installation, or not this one,
    has it.

    If several installations have it, the lines are those of `lines_of_machines`.

    Args:
        conn: a connection to the database.
        package: the package of the spec.
        dag_hash: the hash of the spec.
        release: the installation to load from; None for all.
    """
    installations = installations_of(conn, package, dag_hash)
    if release is not None:
        installations = tuple(
            commands for commands in installations if commands.release == release
        )
    if not installations:
        return None
    if len(installations) == 1:
        return installations[0]
    # The prefix is another one in each installation.
    return replace(
        installations[0],
        commands=lines_of_machines(installations),
        prefix=None,
        machines=installations,
    )


def lines_of_machines(machines: Sequence[Commands]) -> tuple[str, ...]:
    """Return the lines of the commands for some installations, those of several below a
    comment with its name: `# on derecho`.
    """
    lines: list[str] = []
    for commands in machines:
        if len(machines) > 1:
            lines.append(f"# on {commands.release}")
        lines += commands.commands
    return tuple(lines)


def spack_load(*specs: str) -> str:
    """Return the command of Spack that loads specs."""
    return shlex.join(["spack", "load", *specs])


def module_commands(modules: str, folder: str | None) -> tuple[str, ...]:
    """Return the commands that load modules, such as `module load hdf5/1.14.6`.

    Args:
        modules: the modules, separated by blanks.
        folder: the folder of modules to use first; None if only one has the module.
    """
    load = shlex.join(["module", "load", *modules.split()])
    if folder is None:
        return (load,)
    return (shlex.join(["module", "use", folder]), load)


def is_installation(conn: sqlite3.Connection, release: str) -> bool:
    """Return whether a release is an installation."""
    return any(select(conn, IS_INSTALLATION, release=release, kind=INSTALLED))


def explicit_count(conn: sqlite3.Connection, release: str) -> int:
    """Return how many specs of an installation were asked for by name."""
    sql = "SELECT count(*) FROM installations WHERE release = :release AND explicit = 1"
    ((count,),) = select(conn, sql, release=release)
    return int(count)
