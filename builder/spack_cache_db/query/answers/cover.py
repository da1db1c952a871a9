"""Answers an environment: a binary for each spec or node of a lockfile, or why there is
none.

`cover_specs` answers the specs of a `spack.yaml` or of a list, and `cover_lockfile` the
nodes of a lockfile. This module puts their answers together, and adds where each binary
is, what Spack downloads, and what was lost since an older database (the baseline).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import NamedTuple

from spack_cache_db.arguments import checked
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments.model import Environment, UserSpec
from spack_cache_db.environments.reading import user_specs
from spack_cache_db.environments.rules import ALL
from spack_cache_db.query.answers.cover_lockfile import lockfile_answers
from spack_cache_db.query.answers.cover_specs import SpecAnswers
from spack_cache_db.query.answers.covered import (
    AVAILABLE,
    LOST,
    Cover,
    CoveredSpec,
    Download,
)
from spack_cache_db.query.answers.toolchains import Toolchain
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    Verdict,
    condition_value,
    only,
)
from spack_cache_db.query.match.candidates import Candidates
from spack_cache_db.query.match.question import respelled
from spack_cache_db.query.names.known import known_names
from spack_cache_db.query.names.scope import Scope, UnknownNameError
from spack_cache_db.query.open.lookups import (
    Database,
    Lookups,
    has_records,
    name_of,
    opened,
)
from spack_cache_db.query.open.sql import json_pieces, select, select_ids
from spack_cache_db.query.stored.binary import HASHES_AT_ONCE
from spack_cache_db.query.stored.mirrors import NOWHERE, first_places
from spack_cache_db.schema.sizes import is_size, size_in_bytes
from spack_cache_db.spack.legacy import parser_of

CURRENT = "SELECT id FROM specs WHERE is_current"
"""The specs that a branch, a release or an installation lists, not only a snapshot."""
SIZES = f"""
SELECT specs.hash, max(CASE
  WHEN {is_size("listings.size")}
  THEN {size_in_bytes("listings.size")} END)
FROM json_each(:hashes) AS wanted
CROSS JOIN specs ON specs.hash = wanted.value
CROSS JOIN releases
CROSS JOIN listings ON listings.release_id = releases.id AND listings.spec_id = specs.id
GROUP BY specs.hash
"""
"""The largest size of each binary in any release; NULL if none is known."""
# Notes on an answer.
UNCHECKED = (
    "checked for the specs, not for what they link: the database has no dependency data"
)
ALL_OLD = (
    "all binaries of this database are from before Spack 1.0: Spack 1.2 and newer install them by "
    "hash, but do not reuse them by themselves"
)


@checked
def cover(
    db: Database,
    environment: AnyPath | Iterable[str],
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    spack: str | None = None,
    baseline: Database | None = None,
) -> Cover:
    """Return for each spec of an environment its binary in a database, or the nearest
    one.

    `release`, `stack`, `host`, `os` and `platform` narrow the answer: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        environment: the path of a `spack.yaml`, a `spack.lock` or a list of specs; or
            specs.
        spack: the version of Spack for which the specs are written, such as `0.23`;
            None for 1.0 and later.
        baseline: an older database: specs that had a binary in it and have none now are
            `lost`.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnreadableEnvironment: the environment cannot be read.
        UnknownNameError: a database has no such release or stack, archspec no such
            host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    # Check the arguments before a database is opened.
    scope = Scope(release=release, stack=stack, host=host, os=os, platform=platform)
    parse = parser_of(spack)
    with opened(db) as lookups, opened_baseline(baseline, scope) as older:
        # A path is text or a path; anything else are the specs themselves.
        if isinstance(environment, str | PathLike):
            path = checked_file("environment", environment, "an environment")
            specs = read_environment_file(path, parse=parse, known=known_names(lookups))
        else:
            specs = user_specs(list(environment), parse)
        conditions = scope.conditions(lookups)
        return cover_environment(lookups, specs, conditions, older=older)


class Baseline(NamedTuple):
    """An older database, and the scope of its answers.

    The ids of releases and stacks in its scope are its own, so they differ from those
    of the newer database.
    """

    path: str
    lookups: Lookups
    scope: Conditions


@contextmanager
def opened_baseline(db: Database | None, scope: Scope) -> Iterator[Baseline | None]:
    """Open the baseline of `cover`, if there is one.

    Raises UnknownNameError, with the path, if this database has no such name.
    """
    if db is None:
        yield None
        return
    with opened(db) as lookups:
        # The message tells the two databases apart.
        path = name_of(db)
        try:
            conditions = scope.conditions(lookups)
        except UnknownNameError as error:
            raise UnknownNameError(f"{path}: {error}") from None
        yield Baseline(path, lookups, conditions)


def cover_environment(
    lookups: Lookups,
    environment: Environment,
    scope: Conditions = (),
    older: Baseline | None = None,
) -> Cover:
    """Return the answers for an environment.

    Args:
        lookups: the database.
        environment: its specs, and the nodes of its lockfiles.
        scope: the part of the database in which binaries count.
        older: the baseline. Then snapshots do not count in both databases, because they
            list lost binaries.
    """
    return answered_environment(lookups, environment, scope, older).cover


@dataclass(frozen=True, slots=True)
class AnsweredEnvironment:
    """The answers for an environment, and what was read for them.

    Attributes:
        cover: the answers, with the binaries of all toolchains.
        specs: the specs, with names as the database spells them.
        candidates: the database and the scope of the answers.
    """

    cover: Cover
    specs: Sequence[UserSpec]
    candidates: Candidates
    _answers: SpecAnswers

    def within_toolchain(self, toolchain: Toolchain) -> Cover:
        """Return the answers with the binaries of one toolchain alone."""
        # An answer stays if no toolchain has a binary, or if the binary is of this one:
        # the best of all binaries is also the best of some.
        answers = list(self.cover.specs)
        asked_again = []
        for number, answer in enumerate(self.cover.specs):
            has_binary = any(toolchain.takes(other) for other in answer.toolchains)
            if has_binary and not _is_binary_of(answer, toolchain):
                asked_again.append(number)
            elif answer.toolchains and not has_binary:
                answers[number] = replace(answer, status="near", missing=())

        # This toolchain may have other binaries for the rest.
        lookups = self.candidates.lookups
        specs = [self.specs[number] for number in asked_again]
        other_answers = self._answers.answers(specs, toolchain)
        placed = _with_places(lookups, other_answers, self.candidates.scope)
        for number, answer in zip(asked_again, placed, strict=True):
            answers[number] = answer
        download = _download(lookups, answers)
        return replace(self.cover, specs=tuple(answers), download=download)


def answered_environment(
    lookups: Lookups,
    environment: Environment,
    scope: Conditions = (),
    older: Baseline | None = None,
) -> AnsweredEnvironment:
    """Return the answers for an environment, which can also answer within one of its
    toolchains; the arguments are those of `cover_environment`.
    """
    if older is not None:
        scope = _without_snapshots(lookups, scope)
        older = older._replace(scope=_without_snapshots(older.lookups, older.scope))
    respelled_specs = _respelled(lookups, environment)
    specs = respelled_specs.specs
    notes = [*environment.notes, *respelled_specs.notes]
    notes += _notes(lookups, environment, specs, scope)

    # First the specs of the environment, then the nodes of its lockfiles.
    candidates = Candidates(lookups, scope)
    roots = frozenset(spec.query.name or "" for spec in specs if spec.query)
    spec_answers = SpecAnswers(candidates, roots)
    answers = spec_answers.answers(specs)
    if specs and spec_answers.is_old:
        notes.append(ALL_OLD)
    if environment.locked:
        answers += lockfile_answers(candidates, environment.locked)
    if not answers:
        notes.append("the environment has no specs")

    # Then where each binary is, and what an older database had.
    answers = _with_places(lookups, answers, scope)
    download = _download(lookups, answers)
    if older is not None:
        before = cover_environment(older.lookups, environment, older.scope)
        pairs = zip(answers, before.specs, strict=True)
        answers = [_with_loss(answer, answer_before) for answer, answer_before in pairs]
    answer = Cover(
        tuple(answers),
        environment.is_lock,
        tuple(notes),
        is_of_trees=lookups.is_installed,
        others=environment.others,
        baseline="" if older is None else older.path,
        download=download,
        release=condition_value(scope, "release"),
    )
    return AnsweredEnvironment(answer, specs, candidates, spec_answers)


def _is_binary_of(answer: CoveredSpec, toolchain: Toolchain) -> bool:
    """Return whether an answer is a binary that belongs to a toolchain."""
    if answer.status != "binary" or answer.configuration is None:
        return False
    return toolchain.takes(Toolchain.of(answer.configuration))


def _without_snapshots(lookups: Lookups, scope: Conditions) -> Conditions:
    """Return a scope without snapshots, which list binaries that a mirror has lost.

    It is unchanged if it names a release or the database has only snapshots.
    """
    releases = lookups.releases.values()
    has_only_snapshots = all(release.date for release in releases)
    if condition_value(scope, "release") is not None or has_only_snapshots:
        return scope
    verdict = lookups.once(CURRENT, lambda: Verdict(select_ids(lookups.conn, CURRENT)))
    return (*scope, Condition("specs", "current release", verdict))


class _RespelledSpecs(NamedTuple):
    """Specs with the names of a database, and a note on each name that was replaced."""

    specs: list[UserSpec]
    notes: tuple[str, ...]


def _respelled(lookups: Lookups, environment: Environment) -> _RespelledSpecs:
    """Return the specs of an environment with names as the database spells them."""
    specs = []
    # The keys of a dictionary: each note once, in order.
    all_notes: dict[str, None] = {}
    for spec in environment.specs:
        respelled_spec = spec
        if spec.query is not None:
            query, notes = respelled(lookups, spec.query)
            if notes:
                # The same names are in the spec as Spack before 1.0 reads it.
                legacy = spec.legacy and respelled(lookups, spec.legacy).spec
                respelled_spec = replace(spec, query=query, legacy=legacy)
                all_notes |= dict.fromkeys(notes)
        specs.append(respelled_spec)
    return _RespelledSpecs(specs, tuple(all_notes))


def _notes(
    lookups: Lookups,
    environment: Environment,
    specs: Sequence[UserSpec],
    scope: Conditions,
) -> Iterator[str]:
    """Yield notes on what is not looked at."""
    if environment.is_lock and only(scope, "host", "os", "platform", "target"):
        yield "a lockfile names its binaries: the machine is not looked at"
    if has_records(lookups.conn):
        return
    # Without dependencies, the rules of `packages:` are checked for the specs only.
    roots = {spec.query.name or "" for spec in specs if spec.query}
    packages: set[str] = set()
    for spec in specs:
        packages.update(spec.rules.required, spec.rules.conflicts, spec.rules.preferred)
    unchecked = sorted(packages & {*roots, ALL})
    if unchecked:
        yield f"packages: {', '.join(unchecked)}: {UNCHECKED}"


def _with_places(
    lookups: Lookups, answers: Sequence[CoveredSpec], scope: Conditions
) -> list[CoveredSpec]:
    """Return the answers with the release and the mirror of the binary in each."""
    # A node without a binary has other binaries: the first of them is looked up.
    hashes = []
    for answer in answers:
        hashes.append(answer.others[0] if answer.others else answer.hash)
    known_hashes = {dag_hash for dag_hash in hashes if dag_hash}
    places = first_places(lookups, sorted(known_hashes), scope)
    placed = []
    for answer, dag_hash in zip(answers, hashes, strict=True):
        place = places.get(dag_hash or "", NOWHERE)
        placed.append(replace(answer, release=place.release, mirror=place.mirror))
    return placed


def _download(lookups: Lookups, answers: Sequence[CoveredSpec]) -> Download | None:
    """Return what Spack downloads for the specs that have a binary; None if it is not
    known.
    """
    # The sizes of binaries by their hashes: answers share many of them.
    sizes: dict[str, int | None] = {}
    nodes: list[str] = []
    for answer in answers:
        if answer.status != "binary":
            continue
        is_node = answer.is_root is not None
        if is_node and answer.hash is not None:
            # What it needs are other nodes of the lockfile.
            nodes.append(answer.hash)
        elif answer.closure is not None and answer.closure.is_known:
            # What a spec needs is in its closure.
            sizes |= {member.hash: member.size for member in answer.closure.binaries}
        else:
            return None
    for piece in json_pieces(nodes, HASHES_AT_ONCE):
        sizes |= dict(select(lookups.conn, SIZES, hashes=piece))
    if not sizes and not has_records(lookups.conn):
        return None

    known_sizes = [size for size in sizes.values() if size is not None]
    are_known = len(known_sizes) == len(sizes)
    return Download(len(sizes), sum(known_sizes) if are_known else None)


def _with_loss(now: CoveredSpec, before: CoveredSpec) -> CoveredSpec:
    """Return the answer for a spec, which is `lost` if it had a binary and has none."""
    if before.status not in AVAILABLE or now.status in (*AVAILABLE, "external"):
        return now
    is_node = now.is_root is not None
    if is_node or before.configuration is None:
        return replace(now, status=LOST)
    # The binary that a spec had is not in the new answer.
    release = f" in {before.release}" if before.release else ""
    was = f"was {before.configuration.summary} /{before.hash}{release}"
    return replace(now, status=LOST, reasons=(was, *now.reasons))
