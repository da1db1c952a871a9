"""Finds a binary for each spec of an environment, or else the nearest configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments import (
    ALL,
    NO_RULES,
    Environment,
    PackageRules,
    UserSpec,
    required_query,
    ways,
)
from spack_cache_db.environments.formats import user_specs
from spack_cache_db.errors import counted
from spack_cache_db.query import NotebookTable, Rows
from spack_cache_db.query.conditions import (
    ANYWHERE,
    Condition,
    Conditions,
    UnsupportedQuery,
    Verdict,
    asked,
    without,
)
from spack_cache_db.query.configurations import (
    Candidate,
    Candidates,
    chosen_machine,
    configuration_ids,
    misses_of,
)
from spack_cache_db.query.covered_spec import CoveredSpec
from spack_cache_db.query.database import Database, Lookups, opened, select
from spack_cache_db.query.explanation import WhyNot, explained
from spack_cache_db.query.graph import externals, read_nodes
from spack_cache_db.query.installation import first_places
from spack_cache_db.query.lockfiles import OF_NODES, cover_lock
from spack_cache_db.query.names import UnknownNameError, known_name, known_names, scope_of
from spack_cache_db.query.records import SpecRecords, has_records, read_query, respelled
from spack_cache_db.query.requirements import CheckedRules
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.parser import parser_of

STATUSES = ("unanswerable", "none", "near", "unknown", "external", "binary", "installed")
"""The statuses of specs, in the order in which they are shown."""
LOST = "lost"
"""The status of a spec without a binary that had one in the baseline; it is shown first."""
AVAILABLE = ("binary", "installed")

PACKAGE_OF_HASH = """
SELECT DISTINCT packages.name FROM specs
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
WHERE hash >= :hash AND hash < :hash || '{' LIMIT 2
"""
CURRENT = "SELECT id FROM specs WHERE is_current"
NOTHING = "nothing here satisfies it"
UNCHECKED = "checked for the specs, not for what they link: the database has no dependency data"

MOST_UNKNOWN = 20
"""Maximum of unknown packages whose answers list close names, which take milliseconds each."""


@dataclass(frozen=True, slots=True)
class Cover(NotebookTable):
    """The answers for all specs of an environment, in its order.

    Attributes:
        specs: the answers; those for lockfiles that a `spack.yaml` includes come last.
        is_lock: whether the environment is a lockfile.
        notes: the parts of it that were ignored, with reasons.
        is_of_trees: whether the database has only installations, and no build cache.
        others: the lines of a list that are not specs.
        baseline: the older database that it is compared with; empty for none.
    """

    specs: tuple[CoveredSpec, ...]
    is_lock: bool
    notes: tuple[str, ...] = ()
    is_of_trees: bool = False
    others: tuple[str, ...] = ()
    baseline: str = ""

    @property
    def binary(self) -> int:
        """The number of specs that have a binary and are not installed."""
        return self.counted("binary")

    @property
    def available(self) -> int:
        """The number of specs that are installed or have a binary."""
        return sum(map(self.counted, AVAILABLE))

    @property
    def total(self) -> int:
        """The number of specs without externals."""
        return len(self.specs) - self.counted("external")

    def counted(self, status: str) -> int:
        """Return the number of specs with a status."""
        return sum(spec.status == status for spec in self.specs)

    @property
    def share(self) -> str:
        """A phrase with the number of specs that are installed or have a binary."""
        one, more = "has a binary", "have a binary"
        if self.is_of_trees:
            one, more = "is installed", "are installed"
        elif self.counted("installed"):
            one, more = f"is installed or {one}", f"are installed or {more}"
        is_one = self.available == 1 or self.total == 1
        text = f"{self.available:,} of {counted(self.total, 'spec')} {one if is_one else more}"
        lost = f"; {self.counted(LOST):,} lost since {self.baseline}" if self.baseline else ""
        return text + lost

    @property
    def sentence(self) -> str:
        """`share` with installed specs and externals, and the percentage for a lockfile."""
        text, installed = self.share, self.counted("installed")
        if installed and not self.is_of_trees:
            text += f", {installed:,} of them installed"
        if externals := self.counted("external"):
            text += f"; {externals:,} more {'is' if externals == 1 else 'are'} external"
        if self.is_lock and self.total:
            text += f" ({self.available / self.total:.0%})"
        return text

    @property
    def statuses(self) -> str:
        """The number of specs by status, in words."""
        counts = [(status, self.counted(status)) for status in (LOST, *OF_NODES, *STATUSES)]
        return ", ".join(f"{status} {count}" for status, count in counts if count)

    @property
    def counts(self) -> tuple[str, ...]:
        """`statuses` if there are several, then `groups`."""
        return (*([self.statuses] if "," in self.statuses else []), *self.groups)

    @property
    def groups(self) -> tuple[str, ...]:
        """The totals of groups in words, if there are several groups."""
        texts = []
        specs = [spec for spec in self.specs if spec.is_root is None]
        groups = dict.fromkeys(spec.group for spec in specs)
        for group in groups if len(groups) > 1 else ():
            part = Cover(tuple(spec for spec in specs if spec.group == group), is_lock=False)
            texts.append(f"{group or 'no group'}: {part.available:,} of {part.total:,}")
        return tuple(texts)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints."""
        counts = {"binary": self.binary, "total": self.total}
        if self.is_lock:
            counts |= {status: self.counted(status) for status in reversed(OF_NODES)}
        else:
            counts |= {status: self.counted(status) for status in STATUSES if status != "binary"}
            nodes = {status: self.counted(status) for status in OF_NODES}
            counts |= {status: count for status, count in nodes.items() if count}
        if self.baseline:
            counts[LOST] = self.counted(LOST)
        return {"specs": [spec.as_dict() for spec in self.specs], **counts, "notes": [*self.notes]}

    @property
    def rows(self) -> Rows:
        """The rows that `cover --csv` prints: the records of the JSON, configurations as texts."""
        records = [
            spec.as_dict() | {"configuration": spec.configuration and spec.configuration.summary}
            for spec in self.specs
        ]
        columns = dict.fromkeys(name for record in records for name in record)
        return Rows([*columns] or ["spec", "status"], records)


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
    """Return for each spec of an environment its binary in a database, or the nearest one.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        environment: the path of a `spack.yaml`, a `spack.lock` or a list of specs; or specs.
        release: only binaries that this release lists.
        stack: only binaries in this stack; with `release`, in this stack of the release.
        host: only binaries that run on a machine of this CPU target, such as `zen3`.
        os: only binaries for this operating system, such as `ubuntu24.04`.
        platform: only binaries for this platform, such as `linux`.
        spack: the version of Spack for which the specs are written, such as `0.23`; None for 1.0
            and later.
        baseline: an older database: specs that had a binary in it and have none now are `lost`.

    Raises:
        ArgumentError: a path or limit has a wrong type.
        UnreadableEnvironment: the environment cannot be read.
        UnknownNameError: a database has no such release or stack, archspec no such host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    parse = parser_of(spack)
    names = {"release": release, "stack": stack, "host": host, "os": os, "platform": platform}
    with opened(db) as lookups, opened_baseline(baseline, names) as older:
        if isinstance(environment, str | PathLike):
            path = checked_file("environment", environment, "an environment")
            read = read_environment_file(path, parse=parse, known=known_names(lookups))
        else:
            read = user_specs([*environment], parse)
        return cover_environment(lookups, read, scope_of(lookups, **names), older=older)


class Baseline(NamedTuple):
    """An older database, its path, and the scope of its answers."""

    path: str
    lookups: Lookups
    scope: Conditions


@contextmanager
def opened_baseline(
    db: Database | None, names: Mapping[str, str | None]
) -> Iterator[Baseline | None]:
    """Open the baseline of `cover`, if there is one; `names` are those of `scope_of`.

    Raises:
        UnknownNameError: the baseline has no such release or stack.
    """
    with opened(db) if db is not None else nullcontext() as lookups:
        path = str(getattr(db, "path", db))
        try:
            scope = scope_of(lookups, **names) if lookups else ()
        except UnknownNameError as error:
            raise UnknownNameError(f"{path}: {error}") from None
        yield Baseline(path, lookups, scope) if lookups else None


def cover_environment(
    lookups: Lookups,
    environment: Environment,
    scope: Conditions = ANYWHERE,
    after_each: Callable[[], None] = lambda: None,
    older: Baseline | None = None,
) -> Cover:
    """Return the answers for an environment; with a baseline, snapshots are left out."""
    if older is not None:
        scope = _without_snapshots(lookups, scope)
        older = older._replace(scope=_without_snapshots(older.lookups, older.scope))
    asked_specs, spelled = _respelled(lookups, environment.specs)
    notes = (*environment.notes, *spelled)
    if environment.is_lock and without(scope, "release", "stack"):
        notes = (*notes, "a lockfile names its binaries: the machine is not looked at")
    roots = frozenset(spec.query.name or "" for spec in asked_specs if spec.query)
    unchecked = {
        name
        for spec in asked_specs
        for name in {*spec.rules.required, *spec.rules.conflicts}.intersection((*roots, ALL))
    }
    if unchecked and not has_records(lookups.conn):
        notes = (*notes, f"packages: {', '.join(sorted(unchecked))}: {UNCHECKED}")
    candidates = Candidates(lookups, scope)
    specs, answers = _Specs(candidates, scope, roots), list[CoveredSpec]()
    for spec in asked_specs:
        answers.append(specs.answer(spec))
        after_each()
    if environment.locked:
        answers += cover_lock(candidates, environment.locked, scope)
    if not answers:
        notes = (*notes, "the environment has no specs")
    # The hash of the binary in each answer.
    hashes = [(*answer.others, answer.hash or "")[0] for answer in answers]
    places = first_places(lookups.conn, sorted({*filter(None, hashes)}), scope)
    placed = (
        replace(answer, release=release, mirror=mirror)
        for answer, dag_hash in zip(answers, hashes, strict=True)
        for release, mirror in (places.get(dag_hash, (None, None)),)
    )
    covered = Cover(
        tuple(placed), environment.is_lock, notes, lookups.is_installed, environment.others
    )
    if older is None:
        return covered
    before = cover_environment(older.lookups, environment, older.scope)
    compared = tuple(map(_with_loss, covered.specs, before.specs))
    return replace(covered, specs=compared, baseline=older.path)


def _without_snapshots(lookups: Lookups, scope: Conditions) -> Conditions:
    """Return a scope without snapshots, unless it names a release or the database has no others.

    Snapshots list binaries that a mirror has lost.
    """
    if asked(scope, "release") is not None or all(row.date for row in lookups.releases.values()):
        return scope
    verdict = lookups.once(
        CURRENT, lambda: Verdict(frozenset(spec for (spec,) in select(lookups.conn, CURRENT)))
    )
    return (*scope, Condition("specs", "current release", verdict))


def _with_loss(now: CoveredSpec, before: CoveredSpec) -> CoveredSpec:
    """Return the answer for a spec, which is `lost` if it had a binary and has none."""
    if before.status not in AVAILABLE or now.status in (*AVAILABLE, "external"):
        return now
    if now.is_root is not None or before.configuration is None:
        return replace(now, status=LOST)
    release = f" in {before.release}" if before.release else ""
    was = f"was {before.configuration.summary} /{before.hash}{release}"
    return replace(now, status=LOST, reasons=(was, *now.reasons))


def _respelled(
    lookups: Lookups, specs: Iterable[UserSpec]
) -> tuple[list[UserSpec], dict[str, None]]:
    """Return specs with names as the database spells them, and notes on replaced names."""
    respelled_specs, notes = list[UserSpec](), dict[str, None]()
    for spec in specs:
        if spec.query is not None:
            query, changed = respelled(lookups, spec.query)
            legacy = spec.legacy and respelled(lookups, spec.legacy)[0]
            spec = replace(spec, query=query, legacy=legacy) if changed else spec
            notes |= dict.fromkeys(changed)
        respelled_specs.append(spec)
    return respelled_specs, notes


class _Match(NamedTuple):
    """The configurations that satisfy a query and its requirements, with their spec counts."""

    query: SpecQuery
    conditions: Conditions
    rows: Mapping[Candidate, int]


class _Specs:
    """Answers the specs of one environment; rows and records are read once."""

    def __init__(self, candidates: Candidates, scope: Conditions, roots: Set[str]) -> None:
        self._roots = roots
        self._candidates = candidates
        self._lookups = candidates.lookups
        self._scope = scope
        self._records = SpecRecords(candidates.lookups)
        self._unknown = 0

    def answer(self, spec: UserSpec) -> CoveredSpec:
        """Return the answer for one spec; equal queries are answered once."""
        if spec.external and not spec.is_buildable:
            covered = CoveredSpec("", "external", 0, "")
        elif spec.query is None:
            covered = CoveredSpec("", "unanswerable", 0, "", reasons=(spec.error or NOTHING,))
        else:
            asks = spec.query, spec.legacy, spec.rules
            covered = self._candidates.once(asks, lambda: self._covered(*asks))
        return replace(
            covered,
            spec=spec.text,
            line=spec.line,
            group=spec.group,
            external=spec.external or covered.external,
        )

    def _covered(
        self, query: SpecQuery, legacy: SpecQuery | None, rules: PackageRules
    ) -> CoveredSpec:
        """Return the answer for a query, without the fields that come from the environment."""
        # A virtual name is replaced by each of its required providers.
        matches, refused = list[_Match](), ""
        for way in [query] if query.name in self._lookups.packages else ways(query, rules):
            try:
                matches.append(self._match(way, rules))
            except UnsupportedQuery as error:
                refused = str(error)
        text = required_query(next((m.query for m in matches if m.rows), query), rules).text
        if any(match.rows for match in matches):
            return self._binary(text, matches)
        for match in matches:
            if (unknown := self._unknown_answer(text, match)) is not None:
                return unknown
        corrected, why = self._legacy_answer(legacy, rules)
        covered = CoveredSpec("", "none", 0, text, why=why, corrected=corrected)
        if refused:
            reasons = (refused, *(why.sentences() if why else ()))
            return replace(covered, status="unanswerable", reasons=reasons)
        why = why or self._why_not(matches[0])
        nearest = why.without[0].nearest if why.without else why.nearest and why.nearest[0]
        return replace(
            covered,
            status="near" if why.without else "none",
            configuration=nearest,
            why=why,
            reasons=why.sentences() or (NOTHING,),
        )

    def _match(self, query: SpecQuery, rules: PackageRules) -> _Match:
        """Return the configurations that satisfy a query.

        Raises:
            UnsupportedQuery: the database cannot answer it.
        """
        if query.name is None:
            query = replace(query, name=self._package_of(query.hash))
        asks = (*read_query(self._records, query).conditions, *self._scope)
        if rules is not NO_RULES:
            once, package = self._candidates.once, query.name
            checked = once(rules, lambda: CheckedRules(self._records, rules, self._roots))
            ids = self._ids_of(package)
            asks = (*asks, *once((rules, package), lambda: checked.conditions(ids)))
        return _Match(query, asks, misses_of(self._candidates, asks).fitting())

    def _ids_of(self, package: str | None) -> Set[int]:
        """Return the specs of a package in the scope."""
        specs = self._candidates.specs_of(self._scope, self._candidates.rows(package))
        return {spec.id for specs_of_row in specs.values() for spec in specs_of_row}

    def _unknown_answer(self, query: str, match: _Match) -> CoveredSpec | None:
        """Return the answer if binaries satisfy all conditions for which the database has data."""
        ids, unknown = self._ids_of(match.query.name), dict[str, Set[int]]()
        possible = []
        for condition in match.conditions:
            if isinstance(condition.asked, Verdict) and condition.asked.unknown & ids:
                unknown[condition.text] = condition.asked.unknown
                holds = (condition.asked.holds | condition.asked.unknown) & ids
                condition = replace(condition, asked=Verdict(holds))
            possible.append(condition)
        rows = [*misses_of(self._candidates, tuple(possible)).fitting()] if unknown else []
        if not rows:
            return None
        spec = self._candidates.specs_of(tuple(possible), rows[:1])[rows[0].id][0]
        texts = ", ".join(text for text, specs in unknown.items() if spec.id in specs)
        configuration = self._candidates.configuration(rows[0])
        reason = f"the database does not show whether it satisfies {texts}"
        reasons = (f"{configuration.summary} /{spec.hash}: {reason}",)
        return CoveredSpec("", "unknown", 0, query, configuration=configuration, reasons=reasons)

    def _legacy_answer(
        self, legacy: SpecQuery | None, rules: PackageRules
    ) -> tuple[str | None, WhyNot | None]:
        """Return a spec as Spack before 1.0 reads it, or why that spec has no binary either.

        Both are None if Spack before 1.0 reads it in the same way, or it cannot be answered.
        """
        if legacy is not None:
            with suppress(UnsupportedQuery):
                match = self._match(legacy, rules)
                if match.rows:
                    corrected = spec_text(required_query(match.query, rules))
                    return corrected, WhyNot(corrected=corrected)
                return None, replace(self._why_not(match), read_as=spec_text(legacy))
        return None, None

    def _binary(self, query: str, matches: Sequence[_Match]) -> CoveredSpec:
        """Return the answer for configurations that satisfy a query in one of several ways.

        The answer has the first installed spec, or else the first binary, or else an external of
        an installation.
        """
        asks = {row: match.conditions for match in matches for row in match.rows}
        counts = {row: count for match in matches for row, count in match.rows.items()}
        package = self._lookups.words["package"][next(iter(asks)).key("package")]
        rows = [row for row in self._candidates.rows(package) if row in asks]
        first = asks[rows[0]]
        if chosen_machine(first) != chosen_machine(self._scope):
            order = configuration_ids(self._lookups, first, every=True)
            places = {key: position for position, key in enumerate(order)}
            rows.sort(key=lambda row: places.get(row.id, len(places)))
        anywhere = [(row, asks[row]) for row in rows]
        installed = [
            (row, (Condition("release", "", tree), *without(within, "release")))
            for tree in self._lookups.trees(asked(self._scope, "release"))
            for row, within in anywhere
        ]
        provided = externals(self._lookups)
        status, row, spec = next(
            (status, row, spec)
            for status, places in (
                ("installed", installed),
                ("binary", anywhere),
                ("external", anywhere),
            )
            for row, within in places
            for spec in self._candidates.specs_of(within, [row]).get(row.id, ())
            if (spec.id in provided) == (status == "external")
        )
        external = read_nodes(self._lookups.conn, [spec.id])[spec.id].external
        return CoveredSpec(
            "",
            status,
            0,
            query,
            len(counts),
            sum(counts.values()),
            self._candidates.configuration(row),
            spec.hash,
            external=external or "",
        )

    def _package_of(self, dag_hash: str | None) -> str:
        """Return the only package with hashes that begin with `dag_hash`."""
        if dag_hash is None:
            raise UnsupportedQuery("names no package, and an environment asks for packages by name")
        names = [row[0] for row in select(self._lookups.conn, PACKAGE_OF_HASH, hash=dag_hash)]
        if len(names) != 1:
            number = "several packages" if names else "nothing here"
            raise UnsupportedQuery(f"/{dag_hash} stands for {number}: name the package")
        return str(names[0])

    def _why_not(self, match: _Match) -> WhyNot:
        name = str(match.query.name)
        if name not in self._lookups.packages:
            self._unknown += 1
            if self._unknown > MOST_UNKNOWN:
                return WhyNot(known=known_name(self._lookups, name, with_near=False))
        return explained(self._candidates, match.query, match.conditions)
