"""How to install or load the build that a spec finds: the answer of `find --install`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spack_cache_db.query.closure import Closure
from spack_cache_db.query.commands import Commands
from spack_cache_db.query.conditions import asked
from spack_cache_db.query.configurations import specs_in_scope
from spack_cache_db.query.database import Database, Lookups, opened
from spack_cache_db.query.install_commands import (
    MOST_TRIED,
    closures_in,
    first_installable,
    mirror_commands,
    mirror_names,
)
from spack_cache_db.query.load_commands import load_commands
from spack_cache_db.query.names import scope_of
from spack_cache_db.query.records import question_of
from spack_cache_db.query.selection import ResultSet, counted_part, matching
from spack_cache_db.spack.parser import parser_of


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
        commands: lines for a shell; none if nothing can be installed, and `notes` say why.
        complete: whether the commands build nothing from source; None if the database does not
            have the dependencies.
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
    """The build that a spec finds, what installing it takes, and the commands."""

    closure: Closure
    commands: Commands

    @property
    def plan(self) -> InstallPlan:
        """The same as plain values."""
        binary = self.closure.binary
        commands = self.commands
        machines = commands.machines
        if commands.load is not None and not machines:
            machines = (commands,)
        if machines:
            return InstallPlan(
                binary.package,
                binary.version,
                binary.hash,
                commands.commands,
                complete=True,
                installations=tuple(
                    PlannedMachine(each.release, each.prefix, each.commands) for each in machines
                ),
                notes=() if commands.note is None else (commands.note,),
            )
        return _plan_of_mirrors(self.closure, commands)


def _plan_of_mirrors(closure: Closure, commands: Commands) -> InstallPlan:
    binary = closure.binary
    size = closure.size if closure.is_listed else None
    names = mirror_names(closure.mirrors)
    mirrors = []
    for mirror, name in zip(closure.mirrors, names, strict=True):
        planned = PlannedMirror(
            name, mirror.release, mirror.stack, mirror.url, mirror.is_signed, dict(mirror.settings)
        )
        mirrors.append(planned)
    externals = []
    for member in closure.externals:
        if member.external is not None:
            external = PlannedExternal(
                member.package, member.version, member.hash, *member.external
            )
            externals.append(external)
    sentences = (commands.note, commands.advice, commands.missing, *commands.needs)
    return InstallPlan(
        binary.package,
        binary.version,
        binary.hash,
        commands.commands,
        complete=commands.is_complete,
        mirrors=tuple(mirrors) if closure.is_listed else (),
        missing=tuple(
            PlannedPackage(member.package, member.version, member.hash)
            for member in closure.missing
        ),
        externals=tuple(externals),
        package_count=len(closure.binaries) if closure.is_known else None,
        size=size,
        notes=tuple(sentence for sentence in sentences if sentence is not None),
    )


def choose(lookups: Lookups, results: ResultSet) -> Chosen | None:
    """Return the build to install or load, of those that an answer has; None without any."""
    release_id = asked(results.conditions, "release")
    release = None if release_id is None else lookups.releases[release_id].name
    closure = _chosen_closure(lookups, results, release)
    if closure is None:
        return None
    binary = closure.binary
    commands = load_commands(lookups.conn, binary.package, binary.hash, release)
    if commands is None:
        commands = mirror_commands(lookups, closure)
    return None if commands is None else Chosen(closure, commands)


def _chosen_closure(lookups: Lookups, results: ResultSet, release: str | None) -> Closure | None:
    # The binaries of the first package, the first configurations first.
    configurations = counted_part(lookups, results, slice(MOST_TRIED))
    if not configurations:
        return None
    package = configurations[0].configuration.package
    ids = [row.id for row in configurations if row.configuration.package == package]
    specs = specs_in_scope(lookups.conn, ids, results.conditions)
    candidates = [spec for key in ids for spec in specs.get(key, ())]
    if not candidates:
        return None
    closures = closures_in(lookups, [spec.id for spec in candidates[:MOST_TRIED]], release)
    # Installed specs come first, and need no mirror.
    first = closures[candidates[0].id]
    is_loaded = load_commands(lookups.conn, package, first.binary.hash, release) is not None
    return first if is_loaded else first_installable(closures.values())


def install_plan(
    db: Database,
    query: str,
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    spack: str | None = None,
    explicit: bool = False,
) -> InstallPlan | None:
    """Return how to install or load the build that a spec finds; None if it finds nothing.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`.
        release: install all of it from the mirrors of this release, or load it from this
            installation.
        stack: only a spec in this stack.
        host: only a spec that runs on a machine of this CPU target, such as `zen3`.
        os: only a spec built for this operating system, such as `ubuntu24.04`.
        platform: only a spec built for this platform, such as `linux`.
        spack: the version of Spack for which the query is written; None for 1.0 and later.
        explicit: only a spec that a user installed by name.

    Raises:
        QuerySyntaxError: the query is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such release or stack, archspec no such host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    parsed = parser_of(spack)(query)
    with opened(db) as lookups:
        names = {"release": release, "stack": stack, "host": host, "os": os, "platform": platform}
        question = question_of(lookups, parsed, scope_of(lookups, explicit, **names))
        chosen = choose(lookups, matching(lookups, question.conditions))
        return None if chosen is None else chosen.plan
