"""Commands for a shell, as records; and the short text of a spec in them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.closure import Closure

SHORTEST_HASH = 7
"""Characters of a hash that Spack prints."""
NEIGHBOURS = """
SELECT max(hash) FROM specs WHERE hash < :hash
UNION ALL
SELECT min(hash) FROM specs WHERE hash > :hash
"""
"""The hashes before and behind a hash, in their order; NULL at the ends."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands that install binaries from mirrors, or that load installed specs.

    Attributes:
        commands: lines for a shell; none if nothing can be installed.
        release: the release of the first mirror; for installed specs, the name of the
            first installation.
        note: why there are no commands, what may make them fail, or that the system
            provides the spec.
        advice: what to do if they fail, where a mirror does not say whether it is
            signed.
        is_known: whether the addresses of the mirrors are known; otherwise, the lines
            have `install.PLACEHOLDER` in place of an address.
        builds: what Spack builds from source, such as `builds zlib-ng from source`;
            None if it builds nothing.
        missing: how many dependencies have no binary, as a sentence; None if all have
            one.
        needs: a sentence for each external that the system must provide.
        size: how much Spack downloads, such as `14 packages, 212 MB`; None if not
            known.
        closures: what installing each binary takes; none for installed specs.
        load: the command of Spack that loads an installed spec; None for binaries of
            mirrors. `commands` may load a module instead.
        prefix: the folder in which it is installed, if it is known.
        is_explicit: whether it was installed explicitly, and not as a dependency only.
        installed_at: the time in UTC.
        is_external: whether the system provides it.
        machines: the commands for each installation, if several have the spec.
        setup_count: how many of the first lines a machine needs only once.
    """

    commands: tuple[str, ...]
    release: str = ""
    note: str | None = None
    advice: str | None = None
    is_known: bool = True
    builds: str | None = None
    missing: str | None = None
    needs: tuple[str, ...] = ()
    size: str | None = None
    closures: tuple[Closure, ...] = ()
    load: str | None = None
    prefix: str | None = None
    is_explicit: bool = False
    installed_at: str | None = None
    is_external: bool = False
    machines: tuple[Commands, ...] = ()
    setup_count: int = 0

    @property
    def setup(self) -> tuple[str, ...]:
        """The lines that a machine needs only once: they add mirrors and trust keys."""
        return self.commands[: self.setup_count]

    @property
    def steps(self) -> tuple[str, ...]:
        """The lines behind `setup`, which install the binaries."""
        return self.commands[self.setup_count :]

    @property
    def text(self) -> str:
        """The commands as lines, to be copied."""
        return "\n".join(self.commands)

    @property
    def alternative(self) -> str | None:
        """The command of Spack that does the same as those of a module; None without a
        module, and for binaries of mirrors.
        """
        # Without a module, `commands` is this command itself.
        return None if self.load in self.commands else self.load

    @property
    def is_complete(self) -> bool | None:
        """Whether nothing must be built from source; None if dependencies are not
        known.
        """
        if not self.commands:
            return False
        # Installed specs have no closures, and need nothing.
        are_complete = [closure.is_complete for closure in self.closures]
        if False in are_complete:
            return False
        return None if None in are_complete else True


NO_COMMANDS = Commands(())
"""The commands for nothing."""


def short_spec(conn: sqlite3.Connection, package: str, dag_hash: str) -> str:
    """Return the shortest text for a spec: its package, and at least 7 characters of
    its hash.
    """
    # Of all hashes, one of the two neighbours has the longest common beginning.
    rows = select(conn, NEIGHBOURS, hash=dag_hash)
    neighbours = [neighbour for (neighbour,) in rows if neighbour is not None]
    # Add characters until no neighbour begins so.
    length = SHORTEST_HASH
    while length < len(dag_hash):
        prefix = dag_hash[:length]
        if not any(neighbour.startswith(prefix) for neighbour in neighbours):
            break
        length += 1
    return f"{package}/{dag_hash[:length]}"
