"""Finds a binary for each spec of an environment or node of a lockfile, or else the nearest one."""

from __future__ import annotations

import shlex
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import chain
from operator import or_
from os import PathLike
from typing import Any, NamedTuple

from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments import (
    ALL,
    NO_RULES,
    Environment,
    LockedSpec,
    PackageRules,
    UserSpec,
    required_query,
    ways,
)
from spack_cache_db.environments.formats import user_specs
from spack_cache_db.errors import counted
from spack_cache_db.query import NotebookTable, Rows, graph
from spack_cache_db.query.commands import Commands, short_spec
from spack_cache_db.query.comparison import Change
from spack_cache_db.query.conditions import (
    Condition,
    Conditions,
    UnsupportedQuery,
    Verdict,
    asked,
    without,
)
from spack_cache_db.query.configurations import HASHES_AT_ONCE, Spec, specs_in_scope
from spack_cache_db.query.database import (
    Database,
    Lookups,
    check_time,
    has_records,
    json_pieces,
    opened,
    select,
    select_ids,
)
from spack_cache_db.query.explanation import WhyNot, explained
from spack_cache_db.query.install_commands import (
    CACHE_ONLY,
    INSTALL,
    NO_ADDRESS,
    PLACEHOLDER,
    TRUST_KEYS,
)
from spack_cache_db.query.load_commands import installations_of
from spack_cache_db.query.mirrors import first_places
from spack_cache_db.query.names import UnknownNameError, known_name, known_names, scope_of
from spack_cache_db.query.records import CheckedRules, SpecRecords, read_query, respelled
from spack_cache_db.query.selection import (
    Candidate,
    Candidates,
    chosen_machine,
    configuration_ids,
    misses_of,
)
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.parser import parser_of

STATUSES = ("unanswerable", "none", "near", "unknown", "external", "binary", "installed")
"""The statuses of specs, in the order in which they are shown."""
OF_NODES = ("missing", "alike", "rebuilt")
"""The statuses of nodes without a binary."""
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
OF_HASHES = """
SELECT DISTINCT configuration FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))
"""
NOTHING = "nothing here satisfies it"
UNCHECKED = "checked for the specs, not for what they link: the database has no dependency data"
A_NODE = "it is another node of this lockfile"
MOST_OTHERS = 5
MOST_UNKNOWN = 20
"""Maximum of unknown packages whose answers list close names, which take milliseconds each."""


@dataclass(frozen=True, slots=True)
class CoveredSpec:
    """The answer for one spec, or for one node of a lockfile.

    Attributes:
        spec: the spec as in the environment, or the name and version of the node.
        status: `installed` (in an installed tree), `binary`, or `lost` (neither, but a binary in
            the baseline). Specs also: `near` (binaries satisfy it without one or two conditions),
            `none`, `unknown` (binaries satisfy the conditions for which the database has data),
            `external` (Spack must use an external, or only an installation's external satisfies
            it), `unanswerable`. Nodes also: `rebuilt` (an equivalent binary exists, with one
            configuration and run-time dependencies of the same packages and versions), `alike`
            (only binaries of its configuration exist), `missing`.
        line: its line, counted from 1; 0 if it is not from a text.
        query: the spec with the environment's requirements, as a query for `find`.
        configurations: the number of configurations that satisfy it.
        spec_count: the number of specs of these.
        configuration: the newest of these, or the nearest if there is none; for a node, its own.
        hash: the current spec of the newest configuration that satisfies it; for a node, its own.
        why: why no binary satisfies it; None if one does, or the reason is unknown.
        reasons: `why` in sentences, or why it cannot be answered.
        corrected: the spec to type instead.
        group: its group of specs in the environment.
        external: the environment's external that satisfies it, or the path in an installation.
        release: the first release that has that spec, preferably an installed tree; for a node
            without a binary, the first release of the first of `others`.
        mirror: the URL of the mirror that has it; None if unknown or installed.
        is_root: whether a node is a root of the lockfile; None for a spec, which is not a node.
        others: the hashes of the first other binaries: current ones, or the most similar, first.
        other_count: the number of other binaries.
        differences: the differences between the node and the first of `others`.
    """

    spec: str
    status: str
    line: int = 0
    query: str = ""
    configurations: int = 0
    spec_count: int = 0
    configuration: Configuration | None = None
    hash: str | None = None
    why: WhyNot | None = None
    reasons: tuple[str, ...] = ()
    corrected: str | None = None
    group: str = ""
    external: str = ""
    release: str | None = None
    mirror: str | None = None
    is_root: bool | None = None
    others: tuple[str, ...] = ()
    other_count: int = 0
    differences: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether a binary, an installed spec or an external satisfies the spec."""
        return self.status in (*AVAILABLE, "external")

    @property
    def title(self) -> str:
        """The spec, with the hash of a node, because nodes may share a name and a version."""
        return self.spec if self.is_root is None else f"{self.spec}/{self.hash}"

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints for it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["why"]
        values["root"] = values.pop("is_root")
        lists = {name: [*values[name]] for name in ("reasons", "others", "differences")}
        empty = {name: values[name] or None for name in ("line", "query", "group", "external")}
        configuration = self.configuration and self.configuration._asdict()
        return values | lists | empty | {"configuration": configuration}


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
        nodes = {status: self.counted(status) for status in OF_NODES}
        counts = {"binary": self.binary, "total": self.total}
        if self.is_lock:
            counts |= dict(reversed(nodes.items()))
        else:
            counts |= {status: self.counted(status) for status in STATUSES if status != "binary"}
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
        return Rows([*records[0]] if records else ["spec", "status"], records)


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
            specs = read_environment_file(path, parse=parse, known=known_names(lookups))
        else:
            specs = user_specs([*environment], parse)
        return cover_environment(lookups, specs, scope_of(lookups, **names), older=older)


class Baseline(NamedTuple):
    """An older database, its path, and the scope of its answers."""

    path: str
    lookups: Lookups
    scope: Conditions


@contextmanager
def opened_baseline(
    db: Database | None, names: Mapping[str, str | None]
) -> Iterator[Baseline | None]:
    """Open the baseline of `cover`, if there is one; raises `UnknownNameError` as `scope_of`."""
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
    scope: Conditions = (),
    older: Baseline | None = None,
) -> Cover:
    """Return the answers for an environment; with a baseline, snapshots are left out."""
    if older is not None:
        scope = _without_snapshots(lookups, scope)
        older = older._replace(scope=_without_snapshots(older.lookups, older.scope))
    asked_specs, notes = _respelled(lookups, environment)
    if environment.is_lock and without(scope, "release", "stack"):
        notes.append("a lockfile names its binaries: the machine is not looked at")
    roots = frozenset(spec.query.name or "" for spec in asked_specs if spec.query)
    rules = (spec.rules for spec in asked_specs)
    owners = {owner for rule in rules for owner in (*rule.required, *rule.conflicts)}
    unchecked = ", ".join(sorted(owners & {*roots, ALL}))
    if unchecked and not has_records(lookups.conn):
        notes.append(f"packages: {unchecked}: {UNCHECKED}")
    candidates = Candidates(lookups, scope)
    specs, answers = _Specs(candidates, roots), list[CoveredSpec]()
    for spec in asked_specs:
        answers.append(specs.answer(spec))
        # An answer from memory runs no statement.
        check_time(lookups.conn)
    answers += _cover_lock(candidates, environment.locked) if environment.locked else ()
    if not answers:
        notes.append("the environment has no specs")
    # The hash of the binary in each answer.
    hashes = [(*answer.others, answer.hash or "")[0] for answer in answers]
    places = first_places(lookups, sorted({*filter(None, hashes)}), scope)
    for index, dag_hash in enumerate(hashes):
        release, mirror = places.get(dag_hash, (None, None))
        answers[index] = replace(answers[index], release=release, mirror=mirror)
    if older is not None:
        before = cover_environment(older.lookups, environment, older.scope)
        answers = [*map(_with_loss, answers, before.specs)]
    return Cover(
        tuple(answers),
        environment.is_lock,
        tuple(notes),
        lookups.is_installed,
        environment.others,
        older.path if older else "",
    )


def environment_commands(conn: sqlite3.Connection, cover: Cover) -> Commands | None:
    """Return the commands that install all binaries from their mirrors, and load installed specs.

    For a lockfile, they name only the roots, because Spack adds the dependencies.
    """
    met = [spec for spec in cover.specs if spec.is_met]
    mirrors: dict[str, str] = {}
    binaries, modules, loads = dict[str, None](), dict[str, None](), dict[str, None]()
    for spec in [spec for spec in met if spec.is_root is not False] or met:
        if spec.configuration is None or spec.hash is None:
            continue
        package = spec.configuration.package
        name = short_spec(conn, package, spec.hash)
        if spec.status == "binary":
            binaries[name] = None
            mirrors[spec.mirror or PLACEHOLDER] = spec.release or ""
            continue
        ways = installations_of(conn, package, spec.hash)
        way = next((way for way in ways if way.release == spec.release), None)
        if way and way.alternative:
            modules |= dict.fromkeys(way.commands)
        elif way:
            loads[name] = None
    names = Counter[str]()
    lines = []
    for url, release in mirrors.items():
        names[release] += 1
        name = f"{release}-{names[release]}" if names[release] > 1 else release
        lines.append(shlex.join(["spack", "mirror", "add", name, url]))
    lines += [TRUST_KEYS, shlex.join([*INSTALL, CACHE_ONLY, *binaries])] if binaries else []
    lines += [*modules, *([shlex.join(["spack", "load", *loads])] if loads else [])]
    note = NO_ADDRESS if PLACEHOLDER in mirrors else None
    return Commands(tuple(lines), note=note) if lines else None


def _without_snapshots(lookups: Lookups, scope: Conditions) -> Conditions:
    """Return a scope without snapshots, which list binaries that a mirror has lost.

    It is unchanged if it names a release or the database has only snapshots.
    """
    if asked(scope, "release") is not None or all(row.date for row in lookups.releases.values()):
        return scope
    verdict = lookups.once(CURRENT, lambda: Verdict(select_ids(lookups.conn, CURRENT)))
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


def _respelled(lookups: Lookups, environment: Environment) -> tuple[list[UserSpec], list[str]]:
    """Return specs with names as the database spells them, and the notes on an environment."""
    specs, notes = [*environment.specs], dict[str, None]()
    for index, spec in enumerate(specs):
        if spec.query is not None:
            query, changed = respelled(lookups, spec.query)
            if changed:
                legacy = spec.legacy and respelled(lookups, spec.legacy)[0]
                specs[index] = replace(spec, query=query, legacy=legacy)
                notes |= dict.fromkeys(changed)
    return specs, [*environment.notes, *notes]


class _Match(NamedTuple):
    """The configurations that satisfy a query and its requirements, with their spec counts."""

    query: SpecQuery
    conditions: Conditions
    rows: Mapping[Candidate, int]


class _Specs:
    """Answers the specs of one environment; rows and records are read once."""

    def __init__(self, candidates: Candidates, roots: Set[str]) -> None:
        self._candidates, self._lookups = candidates, candidates.lookups
        self._scope, self._roots = candidates.scope, roots
        self._records = SpecRecords(candidates.lookups)
        self._unknown = 0

    def answer(self, spec: UserSpec) -> CoveredSpec:
        """Return the answer for one spec; equal queries are answered once."""
        if spec.external and not spec.is_buildable:
            covered = CoveredSpec("", "external")
        elif spec.query is None:
            covered = CoveredSpec("", "unanswerable", reasons=(spec.error or NOTHING,))
        else:
            key = spec.query, spec.legacy, spec.rules
            covered = self._candidates.once(key, lambda: self._covered(*key))
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
        matches, refused = list[_Match](), ""
        # A virtual name is replaced by each of its required providers.
        for way in [query] if query.name in self._lookups.packages else ways(query, rules):
            try:
                matches.append(self._match(way, rules))
            except UnsupportedQuery as error:
                refused = str(error)
        satisfied = [match for match in matches if match.rows]
        text = required_query(satisfied[0].query if satisfied else query, rules).text
        if satisfied:
            return self._binary(text, satisfied)
        for match in matches:
            if (unknown := self._unknown_answer(text, match)) is not None:
                return unknown
        why = self._why_legacy(legacy, rules)
        if refused:
            reasons = (refused, *(why.sentences() if why else ()))
            covered = CoveredSpec("", "unanswerable", query=text, why=why, reasons=reasons)
            return replace(covered, corrected=why.corrected if why else None)
        why = why or self._why_not(matches[0])
        nearest = why.without[0].nearest if why.without else why.nearest and why.nearest[0]
        return CoveredSpec(
            "",
            "near" if why.without else "none",
            query=text,
            configuration=nearest,
            why=why,
            reasons=why.sentences() or (NOTHING,),
            corrected=why.corrected,
        )

    def _match(self, query: SpecQuery, rules: PackageRules) -> _Match:
        """Return the configurations that satisfy a query; raises `UnsupportedQuery`."""
        if query.name is None:
            query = replace(query, name=self._package_of(query.hash))
        spelled, _ = respelled(self._lookups, query)
        conditions = (*read_query(self._records, spelled).conditions, *self._scope)
        if rules is not NO_RULES:
            once, package = self._candidates.once, query.name
            checked = once(rules, lambda: CheckedRules(self._records, rules, self._roots))
            ids = self._ids_of(package)
            dropped = checked.dropped_for(spelled)
            key = (rules, package, dropped)
            conditions += once(key, lambda: checked.conditions(ids, dropped))
        return _Match(query, conditions, misses_of(self._candidates, conditions).fitting())

    def _ids_of(self, package: str | None) -> Set[int]:
        """Return the specs of a package in the scope."""
        specs = self._candidates.specs_of(self._scope, self._candidates.rows(package))
        return {spec.id for specs_of_row in specs.values() for spec in specs_of_row}

    def _unknown_answer(self, query: str, match: _Match) -> CoveredSpec | None:
        """Return the answer if binaries satisfy all conditions for which the database has data."""
        ids, unknown, possible = self._ids_of(match.query.name), dict[str, Set[int]](), []
        for condition in match.conditions:
            verdict = condition.asked
            if isinstance(verdict, Verdict) and verdict.unknown & ids:
                unknown[condition.text] = verdict.unknown
                holds = (verdict.holds | verdict.unknown) & ids
                condition = replace(condition, asked=Verdict(holds))
            possible.append(condition)
        conditions = tuple(possible)
        rows = [*misses_of(self._candidates, conditions).fitting()] if unknown else []
        if not rows:
            return None
        spec = self._candidates.specs_of(conditions, rows[:1])[rows[0].id][0]
        texts = ", ".join(text for text, specs in unknown.items() if spec.id in specs)
        configuration = self._candidates.configuration(rows[0])
        reason = f"the database does not show whether it satisfies {texts}"
        reasons = (f"{configuration.summary} /{spec.hash}: {reason}",)
        return CoveredSpec("", "unknown", query=query, configuration=configuration, reasons=reasons)

    def _why_legacy(self, legacy: SpecQuery | None, rules: PackageRules) -> WhyNot | None:
        """Return the spec that Spack before 1.0 reads, or why that has no binary either."""
        with suppress(UnsupportedQuery):
            match = self._match(legacy, rules) if legacy is not None else None
            if match and match.rows:
                return WhyNot(corrected=spec_text(required_query(match.query, rules)))
            if match and legacy:
                return replace(self._why_not(match), read_as=spec_text(legacy))
        return None

    def _binary(self, query: str, matches: Sequence[_Match]) -> CoveredSpec:
        """Return the answer for configurations that satisfy a query in one of several ways.

        The answer has the first installed spec, or else the first binary, or else an external of
        an installation.
        """
        conditions = {row: match.conditions for match in matches for row in match.rows}
        counts = {row: count for match in matches for row, count in match.rows.items()}
        package = self._lookups.words["package"][next(iter(counts)).key("package")]
        rows = [row for row in self._candidates.rows(package) if row in counts]
        first = conditions[rows[0]]
        if chosen_machine(first) != chosen_machine(self._scope):
            order = configuration_ids(self._lookups, first, every=True)
            positions = {key: position for position, key in enumerate(order)}
            rows.sort(key=lambda row: positions.get(row.id, len(positions)))
        anywhere = [(row, conditions[row]) for row in rows]
        installed = [
            (row, _in_release(within, tree))
            for tree in self._lookups.trees(asked(self._scope, "release"))
            for row, within in anywhere
        ]
        provided = graph.externals(self._lookups)
        places = (("installed", installed), ("binary", anywhere), ("external", anywhere))
        status, row, spec = next(
            (status, row, spec)
            for status, rows_and_conditions in places
            for row, within in rows_and_conditions
            for spec in self._candidates.specs_of(within, [row]).get(row.id, ())
            if (spec.id in provided) == (status == "external")
        )
        return CoveredSpec(
            "",
            status,
            query=query,
            configurations=len(counts),
            spec_count=sum(counts.values()),
            configuration=self._candidates.configuration(row),
            hash=spec.hash,
            external=graph.read_nodes(self._lookups.conn, [spec.id])[spec.id].external or "",
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


def _cover_lock(candidates: Candidates, locked: tuple[LockedSpec, ...]) -> Iterator[CoveredSpec]:
    """Yield the answers for the nodes of a lockfile, in their order."""
    lookups, scope, hashes = candidates.lookups, candidates.scope, [node.hash for node in locked]
    conn, provided, release = lookups.conn, graph.externals(lookups), asked(scope, "release")
    pieces = json_pieces(hashes, HASHES_AT_ONCE)
    rows = (select(conn, OF_HASHES, hashes=piece) for piece in pieces)
    ids = [key for (key,) in chain.from_iterable(rows)]

    def binaries_of(ids: Iterable[int], scope: Conditions) -> dict[int, list[Spec]]:
        return {
            key: [spec for spec in specs if spec.id not in provided]
            for key, specs in specs_in_scope(conn, ids, scope).items()
        }

    binaries, *installed = (
        {spec.hash for specs in binaries_of(ids, place).values() for spec in specs}
        for place in (scope, *(_in_release(scope, tree) for tree in lookups.trees(release)))
    )
    configurations = {node.configuration for node in locked if node.hash not in binaries}
    row_ids = {
        configuration: row.id
        for name in {configuration.package for configuration in configurations}
        for row in candidates.rows(name)
        if (configuration := candidates.configuration(row)) in configurations
    }
    similar = binaries_of(row_ids.values(), scope)
    every = [spec.id for specs in similar.values() for spec in specs]
    comparison = _Comparison(lookups, locked, every)
    for node in locked:
        if any(node.hash in tree for tree in installed):
            yield _of_node(node, "installed")
        elif node.hash in binaries:
            yield _of_node(node, "binary")
        elif others := similar.get(row_ids.get(node.configuration, 0)):
            yield comparison.answer(node, others)
        else:
            yield _of_node(node, "missing")


def _in_release(conditions: Conditions, release: int) -> Conditions:
    return (Condition("release", "", release), *without(conditions, "release"))


def _of_node(
    node: LockedSpec, status: str, others: Iterable[Spec] = (), differences: Iterable[str] = ()
) -> CoveredSpec:
    hashes = tuple(other.hash for other in others)
    return CoveredSpec(
        f"{node.configuration.package}@{node.configuration.version}",
        status,
        hash=node.hash,
        is_root=node.is_root,
        configuration=node.configuration,
        others=hashes[:MOST_OTHERS],
        other_count=len(hashes),
        differences=tuple(differences),
    )


class _Comparison:
    """Compares run-time dependencies of a lockfile's nodes and a database's specs, as bit sets.

    A name with its version has the same bit on both sides.
    """

    def __init__(self, lookups: Lookups, locked: tuple[LockedSpec, ...], others: list[int]) -> None:
        self._numbers_of_bits: dict[tuple[str, str], int] = {}
        self._recorded = {*graph.recorded_specs(lookups.conn, others)}
        needs = graph.read_run_time(lookups, self._recorded)
        nodes = graph.read_nodes(lookups.conn, needs.edges)
        bits = {key: self._bit((node.package, node.version)) for key, node in nodes.items()}
        self._of_specs = graph.Reach(needs, bits)
        numbers = self._numbers = {node.hash: number for number, node in enumerate(locked)}
        edges = {
            numbers[node.hash]: [
                graph.Edge(numbers[needed], ("run",), ())
                for needed in node.needs
                if needed in numbers
            ]
            for node in locked
        }
        # A node also has the bits of its externals.
        bits = {
            number: reduce(or_, map(self._bit, (node.configuration[:2], *node.externals)))
            for number, node in enumerate(locked)
        }
        self._of_nodes = graph.Reach(graph.Needs(edges, frozenset()), bits)

    def answer(self, node: LockedSpec, others: list[Spec]) -> CoveredSpec:
        """Return the answer for a node without a binary, given specs of its configuration."""
        needs = self._of_nodes.run_time(self._numbers[node.hash])
        # Specs without an index record count as equal.
        apart = {
            other: needs ^ self._of_specs.run_time(other.id) if other.id in self._recorded else 0
            for other in others
        }
        same = [other for other in others if not apart[other] and other.hash not in self._numbers]
        if same:
            return _of_node(node, "rebuilt", same)
        others = sorted(
            others, key=lambda other: (other.hash in self._numbers, apart[other].bit_count())
        )
        changes = [*map(str, self._changes(needs, apart[others[0]]))]
        if others[0].hash in self._numbers:
            changes.append(A_NODE)
        return _of_node(node, "alike", others, changes)

    def _changes(self, needs: int, apart: int) -> Iterator[Change]:
        """Yield the dependencies that only one of node and spec has, by package."""
        ours, theirs = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for (name, version), bit in self._numbers_of_bits.items():
            if apart >> bit & 1:
                (ours if needs >> bit & 1 else theirs)[name].append(version)
        for name in sorted({*ours, *theirs}):
            both = (", ".join(sorted(side.get(name, ()))) or None for side in (ours, theirs))
            yield Change(name, "", *both)

    def _bit(self, name_and_version: tuple[str, str]) -> int:
        return 1 << self._numbers_of_bits.setdefault(name_and_version, len(self._numbers_of_bits))
