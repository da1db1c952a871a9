"""How to install or load one build, as a record of plain values.

`find --install --json` and `install_plan` in Python return it: the commands, and the
facts behind them. For `hdf5 +mpi`, these are the mirrors to add, the dependencies that
Spack has to build, and what the machine must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from spack_cache_db.query.commands.install import mirror_names
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.stored.closure import Closure


@dataclass(frozen=True, slots=True)
class PlannedMirror:
    """A mirror to add; see `Mirror`. `name` is the one in the commands."""

    name: str
    release: str
    stack: str | None
    url: str | None
    is_signed: bool | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedPackage:
    """A dependency without a binary."""

    package: str
    version: str
    hash: str


@dataclass(frozen=True, slots=True)
class PlannedExternal:
    """An external that the machine must have; `prefix` is None if it is not known."""

    package: str
    version: str
    hash: str
    prefix: str | None
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """An installation that has the spec, and the commands that load it there."""

    release: str
    prefix: str | None
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """How to install or load one build.

    Attributes:
        package: the name of its package.
        version: its version.
        hash: its hash.
        build: the build in a few words, such as
            `hdf5@1.14.6 +mpi, gcc 13.2.0, rhel8, zen3`.
        reason: why it was chosen, such as
            `chosen for zen3: newest version, gcc 13.2.0`; None if the mirrors have lost
            all builds.
        commands: lines for a shell; none if nothing can be installed, and `notes` say
            why.
        complete: whether the commands build nothing from source; None if the database
            does not have the dependencies.
        mirrors: the mirrors that the commands add.
        missing: the dependencies without a binary, which Spack builds from source.
        externals: what the machine must have, besides the C library.
        package_count: how many binaries Spack downloads; None if not known.
        size: their size in bytes; None if not known.
        installations: the machines that have it; then nothing is installed.
        notes: what else to know, as sentences.
    """

    package: str
    version: str
    hash: str
    build: str
    reason: str | None
    commands: tuple[str, ...]
    complete: bool | None
    mirrors: tuple[PlannedMirror, ...] = ()
    missing: tuple[PlannedPackage, ...] = ()
    externals: tuple[PlannedExternal, ...] = ()
    package_count: int | None = None
    size: int | None = None
    installations: tuple[PlannedMachine, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the object `install` of `find --install --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The build that a spec finds, what installing it takes, and the commands.

    Attributes:
        build: the build in a few words, as in `InstallPlan`.
        reason: why it was chosen; None if the mirrors have lost all builds.
        closure: the binary and all that Spack installs with it.
        commands: the commands that install it, or load it where it is installed.
    """

    build: str
    reason: str | None
    closure: Closure
    commands: Commands

    @property
    def plan(self) -> InstallPlan:
        """The same as plain values."""
        # Only commands for installed specs have `load`.
        is_installed = self.commands.load is not None
        return _plan_of_installations(self) if is_installed else _plan_of_mirrors(self)


def _plan_of_installations(chosen: Chosen) -> InstallPlan:
    """Return how to load an installed build."""
    commands = chosen.commands
    # One installation has no list of machines.
    machines = commands.machines or (commands,)
    installations = [
        PlannedMachine(machine.release, machine.prefix, machine.commands)
        for machine in machines
    ]
    return replace(
        _plan_of_build(chosen),
        complete=True,
        installations=tuple(installations),
        notes=() if commands.note is None else (commands.note,),
    )


def _plan_of_mirrors(chosen: Chosen) -> InstallPlan:
    """Return how to install a build from mirrors."""
    closure = chosen.closure
    commands = chosen.commands
    # The mirrors, with the names that the commands give them.
    mirrors = []
    names = mirror_names(closure.mirrors)
    for mirror, name in zip(closure.mirrors, names, strict=True):
        planned = PlannedMirror(
            name=name,
            release=mirror.release,
            stack=mirror.stack,
            url=mirror.url,
            is_signed=mirror.is_signed,
            settings=dict(mirror.settings),
        )
        mirrors.append(planned)

    # What Spack builds, and what the machine must have.
    missing = [
        PlannedPackage(member.package, member.version, member.hash)
        for member in closure.missing
    ]
    externals = []
    for member in closure.externals:
        if member.external is not None:
            external = PlannedExternal(
                member.package,
                member.version,
                member.hash,
                prefix=member.external.prefix,
                modules=member.external.modules,
            )
            externals.append(external)

    # Without a mirror that lists the binary, there is nothing to add or to download.
    sentences = (commands.note, commands.advice, commands.missing, *commands.needs)
    return replace(
        _plan_of_build(chosen),
        mirrors=tuple(mirrors) if closure.is_listed else (),
        missing=tuple(missing),
        externals=tuple(externals),
        package_count=len(closure.binaries) if closure.is_known else None,
        size=closure.size if closure.is_listed else None,
        notes=tuple(sentence for sentence in sentences if sentence is not None),
    )


def _plan_of_build(chosen: Chosen) -> InstallPlan:
    """Return the plan without what it needs and where it comes from."""
    binary = chosen.closure.binary
    return InstallPlan(
        package=binary.package,
        version=binary.version,
        hash=binary.hash,
        build=chosen.build,
        reason=chosen.reason,
        commands=chosen.commands.commands,
        complete=chosen.commands.is_complete,
    )
