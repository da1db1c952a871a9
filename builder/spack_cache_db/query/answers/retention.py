"""Selects the binaries of a mirror that rules keep, with their run-time
dependencies.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from spack_cache_db.arguments import checked, texts
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.errors import ArgumentError, first_of
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.conditions.conditions import Conditions, condition_value
from spack_cache_db.query.names.known import known_names
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Database, Lookups, opened
from spack_cache_db.query.open.sql import select, select_in
from spack_cache_db.query.rows import Rows
from spack_cache_db.query.stored.binary import IN_STACK
from spack_cache_db.query.stored.closure import closures
from spack_cache_db.query.stored.graph import externals, read_nodes, with_run_time
from spack_cache_db.schema.sizes import is_size, size_in_bytes
from spack_cache_db.spack.versions import preference

HASH_LENGTH = 7
"""Characters of a hash in a sentence."""

MOST_NAMED = 3
"""Number of releases that a sentence lists."""

WITH_HASHES = (
    "SELECT id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"
)
HASHES = "SELECT id, hash FROM specs"
LISTED = f"""
SELECT spec_id, max(CASE
  WHEN {is_size("size")} THEN {size_in_bytes("size")}
END)
FROM listings JOIN specs ON specs.id = listings.spec_id
WHERE (release_id = :release OR (:release IS NULL AND NOT specs.is_gone))
  AND {IN_STACK.format("listings")}
  AND (:releases IS NULL OR release_id IN (SELECT value FROM json_each(:releases)))
GROUP BY spec_id
"""
# The releases that list a hash, those with mirrors of today first.
LISTED_IN = """
SELECT hash, packages.name, versions.name, releases.name
FROM specs
JOIN configurations ON configurations.id = specs.configuration_id
JOIN packages ON packages.id = configurations.package_id
JOIN versions ON versions.id = configurations.version_id
LEFT JOIN listings ON listings.spec_id = specs.id
LEFT JOIN releases ON releases.id = listings.release_id
WHERE hash IN (SELECT value FROM json_each(:hashes))
ORDER BY hash, releases.is_copy, releases.position
"""
# Spack installs a spliced spec from the binary of its build spec (Spack 1.2,
# `installer.py`).
BUILD_SPECS = """
SELECT DISTINCT build_spec_id FROM splices WHERE spec_id IN (SELECT value FROM json_each(:ids))
"""


class RetainedBinary(NamedTuple):
    """A binary of a mirror; `reason` is the first rule that keeps it, None if it can be
    pruned.
    """

    hash: str
    package: str
    version: str
    reason: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Retention:
    """The binaries of a mirror, by whether a rule keeps them.

    Attributes:
        binaries: all binaries, those of `prune` first, by package and version.
        keep: the hashes that a rule keeps, or that a kept binary needs at run time,
            sorted.
        prune: the other hashes, sorted.
        missing: the hashes without a binary that are locked, or needed at run time,
            sorted.
        incomplete: the binaries that a rule keeps and that lack a dependency, with what
            they lack, by package; Spack builds what is missing, or refuses the binary.
        unmet: the specs that neither a hash of `keep` nor an external satisfies, in
            order.
        notes: the parts of the environments that were ignored, with reasons.
        freed_bytes: the total size of the binaries of `prune` whose size is known.
        unknown_sizes: the number of binaries of `prune` without a known size.
    """

    binaries: tuple[RetainedBinary, ...]
    keep: tuple[str, ...]
    prune: tuple[str, ...]
    missing: tuple[str, ...]
    unmet: tuple[str, ...]
    notes: tuple[str, ...]
    freed_bytes: int
    unknown_sizes: int
    incomplete: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the lists and numbers as an object of JSON, without `binaries`."""
        values = asdict(self)
        del values["binaries"]
        return values

    @property
    def rows(self) -> Rows:
        """The binaries, as `retention --csv` prints them."""
        records = [binary._asdict() for binary in self.binaries]
        return Rows(RetainedBinary._fields, records)


@checked
def retention(
    db: Database,
    environments: Iterable[AnyPath] = (),
    *,
    release: str | None = None,
    stack: str | None = None,
    newest: int | None = None,
    newer_than: str | int | None = None,
    keep_stacks: Iterable[str] = (),
) -> Retention:
    """Return the binaries that a mirror must keep, and those that can be pruned.

    Every node of a `spack.lock` is kept. For a `spack.yaml` or a list, the binary that
    `cover` returns for each spec is kept. If the database has dependencies, the
    run-time dependencies of kept binaries are kept too. A binary is kept if any rule
    applies.

    Do not prune while `unmet` has specs: their binaries may be in `prune`.

    `release` and `stack` are those of the mirror, if the database has others: see
    `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        environments: the paths of environments.
        newest: keep the binaries of this number of newest versions of each package.
        newer_than: keep the binaries of snapshots since this day (`2026-11-25`), or
            since this number of days before the newest snapshot, and of all releases
            without a date.
        keep_stacks: keep the binaries in these stacks.

    Raises:
        ArgumentError: no rule is given, a path, a number or a day is not one, or the
            release is needed and missing.
        UnreadableEnvironment: an environment cannot be read.
        UnknownNameError: the database has no such release or stack.
        DatabaseError: the database was not made by this builder.
    """
    paths = [checked_file("environments", path) for path in environments]
    rules = Rules(newest, newer_than, tuple(texts("keep_stacks", keep_stacks)))
    scope = Scope(release=release, stack=stack)
    if not paths and rules == Rules():
        names = "environments, newest, newer_than and keep_stacks"
        raise ArgumentError(f"no rule keeps a binary: give one or more of {names}")
    with opened(db) as lookups:
        known = known_names(lookups)
        environments_read = [read_environment_file(path, known=known) for path in paths]
        conditions = scope.conditions(lookups)
        covers = []
        for environment in environments_read:
            covers.append(cover_environment(lookups, environment, conditions))
        return retained(lookups, covers, conditions, rules)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that keep binaries besides environments; see `retention`."""

    newest: int | None = None
    newer_than: str | int | None = None
    keep_stacks: tuple[str, ...] = ()


def retained(
    lookups: Lookups, covers: Sequence[Cover], scope: Conditions, rules: Rules
) -> Retention:
    """Return the binaries that the answers for environments, and rules, keep (see
    `retention`).
    """
    mirror = _Mirror(
        lookups, condition_value(scope, "release"), condition_value(scope, "stack")
    )
    if mirror.release is None and lookups.trees() and not lookups.is_installed:
        raise ArgumentError(
            "this database has installed trees beside build caches, and a spec that is installed "
            "keeps no binary of a mirror: give the mirror's release (--release, or release=)"
        )
    answers = [answer for cover in covers for answer in cover.specs]
    hashes_named = set()
    for answer in answers:
        if answer.hash and answer.status != "external":
            hashes_named.add(answer.hash)

    # The rules, then what the binaries that they keep need.
    sizes = mirror.sizes()
    reasons = _reasons_of_rules(mirror, sizes, hashes_named, rules)
    specs_of_rules = list(reasons)
    needed = with_run_time(lookups.conn, reasons)
    needed.update(spec for (spec,) in select_in(lookups.conn, BUILD_SPECS, needed))
    for spec in needed:
        reasons.setdefault(spec, "needed")

    # The binaries of the mirror, and the hashes that it should have.
    binaries = _binaries(lookups, sizes, reasons)
    keep = {binary.hash for binary in binaries if binary.reason}
    pruned = [binary for binary in binaries if not binary.reason]
    missing = hashes_named - {binary.hash for binary in binaries}
    not_listed = reasons.keys() - sizes.keys()
    for node in read_nodes(lookups.conn, not_listed).values():
        if node.kind != "external":
            missing.add(node.hash)

    # What the environments lack.
    unmet = [answer.title for answer in answers if not is_met(answer, keep)]
    notes: list[str] = []
    for cover in covers:
        unmet += cover.others
        notes += cover.notes
    # Nothing is incomplete if nothing is missing.
    incomplete: tuple[str, ...] = ()
    if missing:
        incomplete = _incomplete(lookups, specs_of_rules, mirror.release)
    return Retention(
        binaries=tuple(binaries),
        keep=tuple(sorted(keep)),
        prune=tuple(sorted(binary.hash for binary in pruned)),
        missing=tuple(sorted(missing)),
        unmet=tuple(unmet),
        notes=tuple(dict.fromkeys(notes)),
        freed_bytes=sum(binary.size or 0 for binary in pruned),
        unknown_sizes=sum(binary.size is None for binary in pruned),
        incomplete=incomplete,
    )


class _Mirror(NamedTuple):
    """The part of a database that is pruned; ids of its release and stack, None for
    any.
    """

    lookups: Lookups
    release: int | None
    stack: int | None

    def sizes(self) -> dict[int, int | None]:
        """Return the size in bytes of each binary, None if it is not known; without
        externals.
        """
        external_specs = externals(self.lookups)
        rows = self._listed(self.stack, releases=None)
        return {spec: size for spec, size in rows if spec not in external_specs}

    def specs_in_stack(self, stack: int | None) -> list[int]:
        """Return the listed specs of another stack."""
        return [spec for spec, _ in self._listed(stack, releases=None)]

    def specs_in_releases(self, releases: Sequence[int]) -> list[int]:
        """Return the specs that one of the releases lists."""
        return [spec for spec, _ in self._listed(self.stack, json.dumps(releases))]

    def _listed(
        self, stack: int | None, releases: str | None
    ) -> Iterable[tuple[int, int | None]]:
        return select(
            self.lookups.conn,
            LISTED,
            release=self.release,
            stack=stack,
            releases=releases,
        )


def _reasons_of_rules(
    mirror: _Mirror, sizes: Collection[int], hashes_named: Set[str], rules: Rules
) -> dict[int, str]:
    """Return the first rule that keeps each spec.

    Environments keep also specs that the mirror does not have; other rules only those
    in `sizes`.
    """
    lookups = mirror.lookups
    hashes = json.dumps(sorted(hashes_named))
    named = select(lookups.conn, WITH_HASHES, hashes=hashes)
    reasons = {spec: "environment" for (spec,) in named}

    def keep(reason: str, specs: Iterable[int]) -> None:
        for spec in specs:
            if spec in sizes:
                reasons.setdefault(spec, reason)

    for name in rules.keep_stacks:
        conditions = Scope(stack=name).conditions(lookups)
        keep("stack", mirror.specs_in_stack(condition_value(conditions, "stack")))
    if rules.newer_than is not None:
        first_day = _first_day(lookups, rules.newer_than)
        # Releases without a date are kept as well.
        recent = [
            key
            for key, release in lookups.releases.items()
            if release.date is None or release.date >= first_day
        ]
        keep("snapshot", mirror.specs_in_releases(recent))
    if rules.newest is not None:
        keep("newest", _of_newest(lookups, sizes, rules.newest))
    return reasons


def _binaries(
    lookups: Lookups, sizes: Mapping[int, int | None], reasons: Mapping[int, str]
) -> list[RetainedBinary]:
    """Return the binaries of a mirror: first those that can be pruned, then by package
    and version.
    """
    # Many binaries have the same package and version: sort these instead.
    specs_of = _by_package_and_version(lookups, sizes)
    packages = lookups.words["package"]
    versions = lookups.words["version"]
    named = []
    for (package, version), specs in specs_of.items():
        named.append((packages[package], versions[version], specs))
    named.sort()

    hashes = dict(select(lookups.conn, HASHES))
    pruned = []
    kept = []
    for package_name, version_name, specs in named:
        for spec in specs:
            reason = reasons.get(spec)
            binary = RetainedBinary(
                hashes[spec], package_name, version_name, reason, sizes[spec]
            )
            if reason is None:
                pruned.append(binary)
            else:
                kept.append(binary)
    return pruned + kept


def _by_package_and_version(
    lookups: Lookups, specs: Iterable[int]
) -> dict[tuple[int, int], list[int]]:
    """Return specs by their packages and versions, all by id; afterwards, `lookups` has
    the names of these versions.
    """
    configurations = lookups.column("specs", "configuration_id")
    packages = lookups.column("configurations", "package_id")
    versions = lookups.column("configurations", "version_id")
    specs_of: dict[tuple[int, int], list[int]] = defaultdict(list)
    for spec in specs:
        configuration = configurations[spec]
        specs_of[packages[configuration], versions[configuration]].append(spec)
    lookups.learn({version for _, version in specs_of}, set())
    return specs_of


def _incomplete(
    lookups: Lookups, specs: Iterable[int], release: int | None
) -> tuple[str, ...]:
    """Return the listed binaries among specs whose closure has a missing member, in
    words.
    """
    texts_of_binaries = []
    for closure in closures(lookups, specs, release).values():
        if not closure.is_listed or not closure.missing:
            continue
        names = [f"{member.package}@{member.version}" for member in closure.missing]
        binary = closure.binary
        name = f"{binary.package}@{binary.version}/{binary.hash[:HASH_LENGTH]}"
        texts_of_binaries.append(f"{name} lacks {first_of(names, MOST_NAMED)}")
    return tuple(sorted(texts_of_binaries))


def _of_newest(lookups: Lookups, specs: Iterable[int], count: int) -> Iterator[int]:
    """Yield the specs of the newest versions of each package."""
    specs_of = _by_package_and_version(lookups, specs)
    versions_of: dict[int, list[int]] = defaultdict(list)
    for package, version in specs_of:
        versions_of[package].append(version)
    names = lookups.words["version"]
    for package, versions in versions_of.items():
        versions.sort(key=lambda version: preference(names[version]))
        for version in versions[-count:]:
            yield from specs_of[package, version]


def _first_day(lookups: Lookups, newer_than: str | int) -> str:
    """Return the first day of the snapshots that are kept."""
    days = [release.date for release in lookups.releases.values() if release.date]
    try:
        if isinstance(newer_than, str):
            return date.fromisoformat(newer_than).isoformat()
        if days:
            return (date.fromisoformat(max(days)) - timedelta(newer_than)).isoformat()
        expected = (
            "a day such as 2026-11-25: the database has no snapshot to count days from"
        )
    except (ValueError, OverflowError):
        expected = "a day such as 2026-11-25, or days before the newest snapshot"
    raise ArgumentError(f"newer_than is {newer_than!r}, expected {expected}")


def missing_texts(
    lookups: Lookups, hashes: Iterable[str], scope: Conditions
) -> list[str]:
    """Return a sentence for each needed hash without a binary: its package, and where
    it is.
    """
    wanted = sorted(hashes)
    packages: dict[str, str] = {}
    releases: dict[str, list[str]] = defaultdict(list)
    for dag_hash, package, version, release in select(
        lookups.conn, LISTED_IN, hashes=json.dumps(wanted)
    ):
        packages[dag_hash] = f"{package}@{version}"
        if release is not None:
            releases[dag_hash].append(release)
    lacking = _lacking(lookups, scope)
    texts = []
    for dag_hash in wanted:
        name = f"{packages.get(dag_hash)}/{dag_hash[:HASH_LENGTH]}"
        if dag_hash not in packages:
            text = (
                f"no binary in this database has the hash {dag_hash}, which is needed"
            )
        elif not releases[dag_hash]:
            text = f"{name} is needed, and no release of this database has its binary"
        else:
            names = first_of(releases[dag_hash], MOST_NAMED)
            text = f"{name} is needed, and {lacking}: it is in {names}"
        texts.append(text)
    return texts


def _lacking(lookups: Lookups, scope: Conditions) -> str:
    """Return who does not have a binary that others have."""
    release = condition_value(scope, "release")
    stack = condition_value(scope, "stack")
    places = []
    if stack is not None:
        places.append(f"the stack {lookups.stacks[stack].name}")
    if release is not None:
        places.append(f"the release {lookups.releases[release].name}")
    if not places:
        return "the mirror has lost it"
    return f"{' of '.join(places)} does not have it"


def is_met(answer: CoveredSpec, kept_hashes: Set[str]) -> bool:
    """Return whether a kept hash or an external satisfies the spec of an answer."""
    is_external = answer.external != "" or answer.status == "external"
    return is_external or answer.hash in kept_hashes
