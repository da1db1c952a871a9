"""Which specs of an environment have a binary, and what is nearest to those that have none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from spack_cache_db.arguments import (
    AnyPath,
    checked_environment,
    checked_texts,
)
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments import (
    Alternative,
    Environment,
    Lock,
    UserSpec,
    UserSpecs,
)
from spack_cache_db.environments.formats import user_specs
from spack_cache_db.query.answers import scope_of
from spack_cache_db.query.candidates import Candidate, Candidates, misses_of
from spack_cache_db.query.catalogue import Spec, specs_in_scope
from spack_cache_db.query.conditions import (
    ANYWHERE,
    Condition,
    Conditions,
    asked,
    is_of_specs,
    without,
)
from spack_cache_db.query.connection import select
from spack_cache_db.query.coverage_output import Cover, CoveredNode, CoveredSpec
from spack_cache_db.query.explanation import WhyNot, explained
from spack_cache_db.query.index_records import Verdict
from spack_cache_db.query.installation import foremost_places
from spack_cache_db.query.lockfile_coverage import cover_lock
from spack_cache_db.query.lookups import Database, Lookups, opened
from spack_cache_db.query.questions import SpecRecords, question_of
from spack_cache_db.query.refusals import UnsupportedQuery
from spack_cache_db.query.selection import chosen_machine, configuration_ids
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.parser import parser_of

PACKAGE_OF_HASH = """
SELECT DISTINCT packages.name FROM specs
LEFT JOIN listings AS listed
  ON listed.release = :release AND listed.spec = specs.id
JOIN configurations ON configurations.id = coalesce(listed.configuration, specs.configuration)
JOIN packages ON packages.id = configurations.package
WHERE hash >= :hash AND hash < :hash || '{' LIMIT 2
"""
REQUIRED = "what packages: requires excludes all that satisfies it"
NOTHING = "nothing here satisfies it"
MOST_EXPLAINED = 4
"""For so many ways to satisfy a spec it is said why nothing does."""

MOST_UNKNOWN = 20
"""For so many unknown packages close names are looked for: each is compared with all that exist."""


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
) -> Cover:
    """Return which specs of an environment have a binary in a built file, and what is nearest.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        environment: the path of a `spack.yaml`, a `spack.lock` or a list of specs; or specs.
        release: only what this release lists.
        stack: only what is in this stack; in that release, where one is given.
        host: only what runs on a machine of this CPU target, such as `zen3`.
        os: only what was built for this operating system, such as `ubuntu24.04`.
        platform: only what was built for this platform, such as `linux`.
        spack: the version of Spack for which the specs are written, such as `0.23`; None for 1.0
            and later.

    Raises:
        ArgumentError: an argument has a wrong type or value.
        UnreadableEnvironment: the environment cannot be read.
        UnknownNameError: the file has no such release or stack, archspec no such host.
        UnknownSpackVersion: `spack` is no version.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(release=release, stack=stack, host=host, os=os, platform=platform, spack=spack)
    given, parse = checked_environment(environment), parser_of(spack)
    if isinstance(given, Path):
        read = read_environment_file(given, parse=parse)
    else:
        read = user_specs(given, parse)
    with opened(db) as (conn, lookups):
        scope = scope_of(lookups, release, stack, host, os, platform)
        return cover_environment(conn, lookups, read, scope)


def cover_environment(
    conn: sqlite3.Connection,
    lookups: Lookups,
    environment: Environment,
    scope: Conditions = ANYWHERE,
    after_each: Callable[[], None] = lambda: None,
) -> Cover:
    """Return the answers for an environment that was read.

    Args:
        conn: a connection to the file.
        lookups: its small tables.
        environment: what was read.
        scope: what narrows the answers.
        after_each: called after each spec; what it raises ends the work.
    """
    candidates = Candidates(conn, lookups, scope)
    if isinstance(environment, Lock):
        notes = environment.notes
        if without(scope, "release", "stack"):
            notes = (*notes, "a lockfile names its binaries: the machine is not looked at")
        nodes = cover_lock(candidates, environment.specs, scope)
        return Cover(
            _placed(conn, nodes, scope), is_lock=True, notes=notes, is_of_trees=lookups.is_installed
        )
    specs = _Specs(candidates, scope).answers(environment, after_each)
    nodes = cover_lock(candidates, environment.locked, scope) if environment.locked else ()
    answers = _placed(conn, (*specs, *nodes), scope)
    return Cover(answers, is_lock=False, notes=environment.notes, is_of_trees=lookups.is_installed)


def _placed(
    conn: sqlite3.Connection, answers: Sequence[CoveredSpec | CoveredNode], scope: Conditions
) -> tuple[CoveredSpec | CoveredNode, ...]:
    """Return answers with the release and the mirror that has what each names."""
    named = [_named_hash(each) for each in answers]
    places = foremost_places(conn, sorted({*filter(None, named)}), scope)
    found = []
    for each, dag_hash in zip(answers, named, strict=True):
        release, mirror = places.get(dag_hash, (None, None))
        found.append(replace(each, release=release, mirror=mirror))
    return tuple(found)


def _named_hash(each: CoveredSpec | CoveredNode) -> str:
    """Return the hash of the binary that an answer names, or the empty text."""
    others = each.others if isinstance(each, CoveredNode) else ()
    return others[0] if others else each.hash or ""


class _Specs:
    """The specs of one environment, answered with the same rows and records in mind."""

    def __init__(self, candidates: Candidates, scope: Conditions) -> None:
        self._conn = candidates.conn
        self._candidates = candidates
        self._scope = scope
        self._records = SpecRecords(candidates.conn, candidates.lookups, scope)
        self._unknown = 0
        self._known: dict[tuple[tuple[Alternative, ...], ...], CoveredSpec] = {}

    def answers(
        self, environment: UserSpecs, after_each: Callable[[], None]
    ) -> tuple[CoveredSpec, ...]:
        queries = [each.query for spec in environment.specs for each in spec.alternatives]
        self._candidates.prepare(query.name for query in queries if query.name is not None)
        found = []
        for spec in environment.specs:
            found.append(self._answer(spec))
            after_each()
        return tuple(found)

    def _answer(self, spec: UserSpec) -> CoveredSpec:
        found = self._found(spec)
        return replace(
            found, spec=spec.text, line=spec.line, group=spec.group, external=spec.external
        )

    def _found(self, spec: UserSpec) -> CoveredSpec:
        if spec.external and not spec.is_buildable:
            return CoveredSpec("", "external", 0, "")
        if spec.error is not None:
            return CoveredSpec("", "unanswerable", 0, "", reasons=(spec.error,))
        asked = spec.alternatives, spec.legacy
        if asked not in self._known:
            self._known[asked] = self._satisfied(*asked)
        return self._known[asked]

    def _satisfied(
        self, alternatives: tuple[Alternative, ...], legacy: tuple[Alternative, ...]
    ) -> CoveredSpec:
        """Return the answer for what one of several alternatives satisfies.

        Args:
            alternatives: what is asked.
            legacy: the same as Spack before 1.0 reads it, which is what to ask if nothing is found.
        """
        found: dict[Candidate, int] = {}
        conditions: dict[Candidate, Conditions] = {}
        refused: UnsupportedQuery | None = None
        for each in alternatives:
            try:
                asks, rows = self._rows(each)
            except UnsupportedQuery as error:
                refused = error
                continue
            found |= rows
            conditions |= dict.fromkeys(rows, asks)
        if found:
            return self._binary(alternatives[0].query, found, conditions)
        corrected = self._first_found(legacy)
        whys = [] if corrected else [*self._legacy_whys(legacy)]
        if refused is None:
            whys = whys or [
                (each.query, self._why_not(each.query)) for each in alternatives[:MOST_EXPLAINED]
            ]
            return self._lacking(alternatives, whys, corrected)
        why = WhyNot(corrected=corrected) if corrected else whys[0][1] if whys else None
        reasons = (str(refused), *(why.sentences() if why else ()))
        return CoveredSpec(
            "",
            "unanswerable",
            0,
            alternatives[0].query.text,
            why=why,
            reasons=reasons,
            corrected=corrected,
        )

    def _first_found(self, alternatives: tuple[Alternative, ...]) -> str | None:
        """Return the first spec that finds something, None if none does."""
        for each in alternatives:
            with suppress(UnsupportedQuery):
                if self._rows(each)[1]:
                    return spec_text(self._named(each.query))
        return None

    def _legacy_whys(self, legacy: tuple[Alternative, ...]) -> Iterator[tuple[SpecQuery, WhyNot]]:
        """Yield why nothing satisfies a spec as Spack before 1.0 reads it, where that is known."""
        for each in legacy[:MOST_EXPLAINED]:
            with suppress(UnsupportedQuery):
                why = self._why_not(each.query)
                yield each.query, replace(why, read_as=spec_text(each.query))

    def _binary(
        self,
        query: SpecQuery,
        found: dict[Candidate, int],
        conditions: dict[Candidate, Conditions],
    ) -> CoveredSpec:
        package = self._candidates.lookups.words["package"][next(iter(found)).key("package")]
        rows = [row for row in self._candidates.rows(package) if row in found]
        asks = conditions[rows[0]]
        if chosen_machine(asks) != chosen_machine(self._scope):
            order = configuration_ids(self._conn, self._candidates.lookups, asks, every=True)
            places = {key: place for place, key in enumerate(order)}
            rows.sort(key=lambda row: places.get(row.id, len(places)))
        status, newest, current = "binary", rows[0], None
        if installed := self._installed(rows, conditions):
            status, (newest, current) = "installed", installed
        else:
            current = next(self._specs([newest], conditions[newest], limit=1), None)
        return CoveredSpec(
            "",
            status,
            0,
            query.text,
            len(found),
            sum(found.values()),
            self._candidates.configuration(newest),
            current.hash if current else None,
        )

    def _installed(
        self, rows: list[Candidate], conditions: dict[Candidate, Conditions]
    ) -> tuple[Candidate, Spec] | None:
        """Return the first of some configurations that a tree has, and its spec."""
        trees = self._candidates.lookups.trees(asked(self._scope, "release"))
        for tree in trees:
            for asks in dict.fromkeys(conditions[row] for row in rows):
                within = (Condition("release", "", tree), *without(asks, "release"))
                ids = [row.id for row in rows if conditions[row] == asks]
                specs = specs_in_scope(self._conn, ids, within)
                if (row := next((row for row in rows if row.id in specs), None)) is not None:
                    return row, specs[row.id][0]
        return None

    def _rows(self, alternative: Alternative) -> tuple[Conditions, dict[Candidate, int]]:
        """Return what an alternative asks, and the configurations that satisfy it.

        Raises:
            UnsupportedQuery: the file cannot answer it.
        """
        query = self._named(alternative.query)
        conditions = (*self._asked(query), *self._scope)
        found = misses_of(self._candidates, conditions).fitting()
        for each in alternative.without:
            unwanted = self._asked(replace(each, name=query.name))
            excluded = misses_of(self._candidates, unwanted).fitting()
            if not is_of_specs(unwanted):
                found = {row: count for row, count in found.items() if row not in excluded}
                continue
            gone = {spec.id for spec in self._specs(excluded, (*unwanted, *self._scope))}
            left = {spec.id for spec in self._specs(found, conditions)} - gone
            beyond = [one.text for one in conditions if one.kind == "specs"]
            verdict = Condition("specs", "".join(beyond) or "packages: requires", Verdict(left))
            conditions = (*without(conditions, "specs"), verdict)
            found = misses_of(self._candidates, conditions).fitting()
        return conditions, found

    def _asked(self, query: SpecQuery) -> Conditions:
        lookups = self._candidates.lookups
        return question_of(self._conn, lookups, query, self._scope, self._records).conditions

    def _specs(
        self, rows: Iterable[Candidate], conditions: Conditions, limit: int = -1
    ) -> Iterator[Spec]:
        """Yield the specs of configurations that satisfy conditions."""
        ids = [row.id for row in rows]
        return chain.from_iterable(specs_in_scope(self._conn, ids, conditions, limit).values())

    def _named(self, query: SpecQuery) -> SpecQuery:
        """Return a query with its package's name, which a hash may stand for."""
        if query.name is None and query.hash is not None:
            given = {"hash": query.hash, "release": asked(self._scope, "release")}
            names = [row[0] for row in select(self._conn, PACKAGE_OF_HASH, **given)]
            if len(names) != 1:
                said = "several packages" if names else "nothing here"
                raise UnsupportedQuery(f"/{query.hash} stands for {said}: name the package")
            return replace(query, name=names[0])
        if query.name is None:
            raise UnsupportedQuery("names no package, and an environment asks for packages by name")
        return query

    def _lacking(
        self,
        alternatives: tuple[Alternative, ...],
        whys: list[tuple[SpecQuery, WhyNot]],
        corrected: str | None,
    ) -> CoveredSpec:
        """Return the answer where nothing satisfies any alternative: what is nearest to one."""
        query, why = next((each for each in whys if each[1].without), whys[0])
        is_required = any(each.without for each in alternatives)
        reasons = why.sentences() or (REQUIRED if is_required else NOTHING,)
        nearest = why.without[0].nearest if why.without else why.nearest and why.nearest[0]
        status = "near" if why.without or reasons == (REQUIRED,) else "none"
        why = replace(why, corrected=corrected)
        return CoveredSpec("", status, 0, query.text, 0, 0, nearest, None, why, reasons, corrected)

    def _why_not(self, query: SpecQuery) -> WhyNot:
        named = self._named(query)
        if named.name not in self._candidates.packages:
            self._unknown += 1
            if self._unknown > MOST_UNKNOWN:
                return WhyNot(unknown=named.name)
        return explained(self._candidates, named, (*self._asked(named), *self._scope))
