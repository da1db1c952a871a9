"""How to install or load the build that a spec finds: the answer of
`find --install`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from spack_cache_db.arguments import checked
from spack_cache_db.model import Configuration
from spack_cache_db.query.choice.proposal import propose_among
from spack_cache_db.query.choice.proposed import build_words
from spack_cache_db.query.commands.install import (
    closures_in,
    commands_of_closure,
    mirror_names,
)
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.conditions.conditions import Condition, Word, condition_value
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import ResultSet, counted_part, matching
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Database, Lookups, Release, opened
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_in_scope
from spack_cache_db.query.stored.closure import Closure
from spack_cache_db.spack.legacy import parser_of

EXAMPLES = ("hdf5", "py-numpy", "zlib-ng", "zlib", "cmake")
"""Packages for a new user to install: the first that a release has."""
# A subquery, because before SQLite 3.39 a LEFT JOIN of json_each leaves out packages
# without a row.
EXAMPLE = """
SELECT packages.name, (SELECT key FROM json_each(:names) WHERE value = packages.name) AS wanted
FROM releases
JOIN release_packages ON release_packages.release_id = releases.id
JOIN packages ON packages.id = release_packages.package_id
WHERE releases.name = :release AND packages.spec_count > 0
ORDER BY wanted IS NULL, wanted, release_packages.configuration_count DESC, packages.name
LIMIT 1
"""


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
        build: the build in a few words.
        reason: why it was chosen; None if the mirrors have lost all builds.
    """

    build: str
    reason: str | None
    closure: Closure
    commands: Commands

    @property
    def plan(self) -> InstallPlan:
        """The same as plain values."""
        is_installed = self.commands.load is not None
        return _plan_of_installations(self) if is_installed else _plan_of_mirrors(self)


def _plan_of_installations(chosen: Chosen) -> InstallPlan:
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
    closure = chosen.closure
    commands = chosen.commands
    # The mirrors, with the names that the commands give them.
    mirrors = []
    for mirror, name in zip(
        closure.mirrors, mirror_names(closure.mirrors), strict=True
    ):
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


def chosen_build(lookups: Lookups, results: ResultSet) -> Chosen | None:
    """Return the build to install or load, of those that an answer has; None without
    any.

    The build is chosen by the rule of `choice.rule`.
    """
    proposal = propose_among(lookups, results)
    if proposal is None:
        return _lost(lookups, results)
    release = _release_name(lookups, results)
    return _chosen(lookups, proposal.spec, proposal.build, proposal.reason, release)


def choose_example(lookups: Lookups, release: Release) -> Chosen | None:
    """Return the build for a new user of a release, of a well-known package that it
    has.

    None if no mirror lists any of its binaries now.
    """
    names = json.dumps(EXAMPLES)
    rows = list(select(lookups.conn, EXAMPLE, release=release.name, names=names))
    if not rows:
        return None
    package, _ = rows[0]
    of_package = Condition("package", package, Word(package))
    of_release = Condition("release", release.name, release.id)
    chosen = chosen_build(lookups, matching(lookups, (of_package, of_release)))
    can_install = chosen is not None and chosen.commands.commands
    return chosen if can_install else None


def plan_of_spec(
    lookups: Lookups,
    spec: int,
    configuration: Configuration,
    release: str | None = None,
) -> InstallPlan | None:
    """Return how to install or load one spec, given by id; None if nothing ever listed
    it.
    """
    chosen = _chosen(lookups, spec, build_words(configuration), None, release)
    return None if chosen is None else chosen.plan


def _lost(lookups: Lookups, results: ResultSet) -> Chosen | None:
    """Return the first build of an answer, if the mirrors have lost all; it has no
    commands.

    None if the answer is empty.
    """
    rows = counted_part(lookups, results, slice(1))
    if not rows:
        return None
    row = rows[0]
    specs = specs_in_scope(lookups.conn, [row.id], results.conditions).get(row.id, ())
    if not specs:
        return None
    build = build_words(row.configuration)
    return _chosen(lookups, specs[0].id, build, None, _release_name(lookups, results))


def _chosen(
    lookups: Lookups, spec: int, build: str, reason: str | None, release: str | None
) -> Chosen | None:
    """Return a build with its commands, which load it where it is installed."""
    closure = closures_in(lookups, [spec], release)[spec]
    commands = commands_of_closure(lookups, closure, release)
    return None if commands is None else Chosen(build, reason, closure, commands)


def _release_name(lookups: Lookups, results: ResultSet) -> str | None:
    release = condition_value(results.conditions, "release")
    return None if release is None else lookups.releases[release].name


@checked
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
    """Return how to install or load the build that a spec finds; None if it finds
    nothing.

    `release`, `stack`, `host`, `os`, `platform` and `explicit` narrow the choice: see
    `Scope`. With a release, all of it is installed from the mirrors of this release, or
    loaded from this installation.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`.
        spack: the version of Spack for which the query is written; None for 1.0 and
            later.

    Raises:
        ArgumentError: an argument has a wrong type.
        QuerySyntaxError: the query is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such release or stack, archspec no such
            host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    scope = Scope(
        release=release,
        stack=stack,
        host=host,
        os=os,
        platform=platform,
        explicit=explicit,
    )
    parsed = parser_of(spack)(query)
    with opened(db) as lookups:
        question = Question(lookups, parsed, scope.conditions(lookups))
        chosen = chosen_build(lookups, question.results)
        return None if chosen is None else chosen.plan
