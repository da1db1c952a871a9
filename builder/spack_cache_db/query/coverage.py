"""Which specs of an environment have a binary, and what comes closest for the others.

Of a node of a lockfile, a binary of another hash does the same if both have one configuration and
need the same packages in the same versions to run. What a file built from pages alone knows is the
configuration.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    LockedSpec,
    UserSpec,
)
from spack_cache_db.environments.formats import user_specs
from spack_cache_db.query.catalogue import HASHES_AT_ONCE, IN_STACK, Spec, specs_in_scope
from spack_cache_db.query.conditions import (
    ANYWHERE,
    Condition,
    Conditions,
    UnsupportedQuery,
    Verdict,
    asked,
    is_of_specs,
    without,
)
from spack_cache_db.query.connection import Database, Lookups, json_pieces, opened, select
from spack_cache_db.query.coverage_output import Cover, CoveredNode, CoveredSpec
from spack_cache_db.query.dependency_graph import (
    Edge,
    Needs,
    Reach,
    read_nodes,
    read_run_time,
    told_of,
)
from spack_cache_db.query.explanation import WhyNot, explained
from spack_cache_db.query.installation import foremost_places
from spack_cache_db.query.known_names import known_names
from spack_cache_db.query.look_alikes import Change
from spack_cache_db.query.questions import read_query, scope_of
from spack_cache_db.query.selection import (
    Candidate,
    Candidates,
    chosen_machine,
    configuration_ids,
    misses_of,
)
from spack_cache_db.query.spec_records import SpecRecords
from spack_cache_db.records import Configuration
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
BINARIES = f"""
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
WHERE specs.release_count > 0 AND {IN_STACK.format("specs")}
"""
LISTED_BINARIES = f"""
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}
"""
MOST_OTHERS = 5
A_NODE = "it is another node of this lockfile"
_Found = dict[Candidate, tuple[int, Conditions]]
"""What satisfies a spec: how many specs of each configuration, and what was asked of these."""


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
    with opened(db) as lookups:
        if isinstance(given, Path):
            read = read_environment_file(given, parse=parse, known=known_names(lookups))
        else:
            read = user_specs(given, parse)
        scope = scope_of(lookups, release, stack, host, os, platform)
        return cover_environment(lookups, read, scope)


def cover_environment(
    lookups: Lookups,
    environment: Environment,
    scope: Conditions = ANYWHERE,
    after_each: Callable[[], None] = lambda: None,
) -> Cover:
    """Return the answers for an environment that was read.

    Args:
        lookups: the small tables of the file.
        environment: what was read.
        scope: what narrows the answers.
        after_each: called after each spec; what it raises ends the work.
    """
    candidates, notes = Candidates(lookups, scope), environment.notes
    if environment.is_lock and without(scope, "release", "stack"):
        notes = (*notes, "a lockfile names its binaries: the machine is not looked at")
    specs = _Specs(candidates, scope).answers(environment, after_each)
    nodes = cover_lock(candidates, environment.locked, scope) if environment.locked else ()
    answers = _placed(lookups.conn, (*specs, *nodes), scope)
    return Cover(
        answers,
        environment.is_lock,
        notes,
        is_of_trees=lookups.is_installed,
        others=environment.others,
    )


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
        self._conn = candidates.lookups.conn
        self._candidates = candidates
        self._scope = scope
        self._records = SpecRecords(candidates.lookups).at(scope)
        self._unknown = 0
        self._known: dict[tuple[tuple[Alternative, ...], ...], CoveredSpec] = {}

    def answers(
        self, environment: Environment, after_each: Callable[[], None]
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
        found: _Found = {}
        refused: UnsupportedQuery | None = None
        for each in alternatives:
            try:
                asks, rows = self._rows(each)
            except UnsupportedQuery as error:
                refused = error
                continue
            found |= {row: (count, asks) for row, count in rows.items()}
        if found:
            return self._binary(alternatives[0].query, found)
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

    def _binary(self, query: SpecQuery, found: _Found) -> CoveredSpec:
        package = self._candidates.lookups.words["package"][next(iter(found)).key("package")]
        rows = [row for row in self._candidates.rows(package) if row in found]
        _, asks = found[rows[0]]
        if chosen_machine(asks) != chosen_machine(self._scope):
            order = configuration_ids(self._candidates.lookups, asks, every=True)
            places = {key: place for place, key in enumerate(order)}
            rows.sort(key=lambda row: places.get(row.id, len(places)))
        status, newest, current = "binary", rows[0], None
        if installed := self._installed(rows, found):
            status, (newest, current) = "installed", installed
        else:
            current = next(self._specs([newest], found[newest][1], limit=1), None)
        return CoveredSpec(
            "",
            status,
            0,
            query.text,
            len(found),
            sum(count for count, _ in found.values()),
            self._candidates.configuration(newest),
            current.hash if current else None,
        )

    def _installed(self, rows: list[Candidate], found: _Found) -> tuple[Candidate, Spec] | None:
        """Return the first of some configurations that a tree has, and its spec."""
        trees = self._candidates.lookups.trees(asked(self._scope, "release"))
        for tree in trees:
            for asks in dict.fromkeys(found[row][1] for row in rows):
                within = (Condition("release", "", tree), *without(asks, "release"))
                ids = [row.id for row in rows if found[row][1] == asks]
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
        conditions = self._records.decided((*self._asked(query), *self._scope))
        found = misses_of(self._candidates, conditions).fitting()
        for each in alternative.without:
            unwanted = self._records.decided(self._asked(replace(each, name=query.name)))
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
        return read_query(self._records, query).conditions

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
        if named.name not in self._candidates.lookups.packages:
            self._unknown += 1
            if self._unknown > MOST_UNKNOWN:
                return WhyNot(unknown=named.name)
        conditions = (*self._asked(named), *self._scope)
        return explained(self._candidates, named, conditions, self._records)


def cover_lock(
    candidates: Candidates, locked: tuple[LockedSpec, ...], scope: Conditions
) -> tuple[CoveredNode, ...]:
    """Return the answers for the nodes of a lockfile, in their order.

    Args:
        candidates: the configurations of the file.
        locked: the nodes.
        scope: a release and a stack that must have the binaries; a machine is not looked at.
    """
    hashes = [each.hash for each in locked]
    binaries = _binaries(candidates.lookups.conn, hashes, scope)
    installed = _installed(candidates, hashes, scope)
    rows = _rows(candidates, {each.configuration for each in locked if each.hash not in binaries})
    others = specs_in_scope(candidates.lookups.conn, {row.id for row in rows.values()}, scope)
    comparison = _Comparison(candidates, locked, [x for some in others.values() for x in some])
    found = []
    for each in locked:
        row = rows.get(each.configuration)
        if each.hash in installed:
            found.append(_covered(each, "installed"))
        elif each.hash in binaries:
            found.append(_covered(each, "binary"))
        elif row is None or row.id not in others:
            found.append(_covered(each, "missing"))
        else:
            found.append(comparison.answer(each, others[row.id]))
    return tuple(found)


def _covered(
    node: LockedSpec, status: str, others: Iterable[Spec] = (), differences: Iterable[str] = ()
) -> CoveredNode:
    hashes = [each.hash for each in others]
    words = node.configuration
    return CoveredNode(
        f"{words.package}@{words.version}",
        status,
        node.hash,
        node.is_root,
        words,
        tuple(hashes[:MOST_OTHERS]),
        len(hashes),
        tuple(differences),
    )


class _Comparison:
    """What nodes of a lockfile and specs of a file need to run, as sets of bits.

    A name with its version has one bit, whichever side says it.
    """

    def __init__(
        self, candidates: Candidates, locked: tuple[LockedSpec, ...], others: list[Spec]
    ) -> None:
        conn = candidates.lookups.conn
        self._places: dict[tuple[str, str], int] = {}
        self._told = {*told_of(conn, [each.id for each in others])}
        graph = read_run_time(candidates.lookups, self._told)
        nodes = read_nodes(conn, graph.edges)
        bits = {key: self._bit(each.package, each.version) for key, each in nodes.items()}
        self._recorded = Reach(graph, bits)
        self._numbers = {each.hash: number for number, each in enumerate(locked)}
        self._of_lock = Reach(self._graph(locked), dict(enumerate(self._bits(locked))))

    def answer(self, node: LockedSpec, others: list[Spec]) -> CoveredNode:
        """Return the answer for a node without a binary, given others of its configuration."""
        needs = self._of_lock.run_time(self._numbers[node.hash])
        apart = {each: self._differing(needs, each) for each in others}
        same = [each for each in others if not apart[each] and each.hash not in self._numbers]
        if same:
            return _covered(node, "rebuilt", same)
        others = sorted(
            others, key=lambda each: (each.hash in self._numbers, apart[each].bit_count())
        )
        nearest = others[0]
        changes = [str(each) for each in self._changes(needs, apart[nearest])]
        if nearest.hash in self._numbers:
            changes.append(A_NODE)
        return _covered(node, "alike", others, changes)

    def _differing(self, needs: int, other: Spec) -> int:
        """Return what only one of both needs; nothing where no index tells what is needed."""
        return needs ^ self._recorded.run_time(other.id) if other.id in self._told else 0

    def _changes(self, needs: int, apart: int) -> Iterator[Change]:
        """Yield what only the node needs, and what only the other spec does, by package."""
        sides: tuple[Mapping[str, list[str]], ...] = (defaultdict(list), defaultdict(list))
        for (name, version), place in self._places.items():
            if apart >> place & 1:
                sides[not needs >> place & 1][name].append(version)
        here, there = (
            {name: ", ".join(sorted(found)) for name, found in side.items()} for side in sides
        )
        for name in sorted({*here, *there}):
            yield Change(name, "", here.get(name), there.get(name))

    def _bit(self, name: str, version: str) -> int:
        return 1 << self._places.setdefault((name, version), len(self._places))

    def _bits(self, locked: tuple[LockedSpec, ...]) -> Iterator[int]:
        """Yield the bits of each node, those of the externals that it needs included."""
        for each in locked:
            found = self._bit(each.configuration.package, each.configuration.version)
            for external in each.externals:
                found |= self._bit(*external)
            yield found

    def _graph(self, locked: tuple[LockedSpec, ...]) -> Needs:
        numbers = self._numbers
        edges = {
            numbers[each.hash]: [
                Edge(numbers[needed], ("run",), ()) for needed in each.needs if needed in numbers
            ]
            for each in locked
        }
        return Needs(edges, frozenset())


def _installed(candidates: Candidates, hashes: list[str], scope: Conditions) -> set[str]:
    found: set[str] = set()
    for tree in candidates.lookups.trees(asked(scope, "release")):
        within = (Condition("release", "", tree), *without(scope, "release"))
        found |= _binaries(candidates.lookups.conn, hashes, within)
    return found


def _binaries(conn: sqlite3.Connection, hashes: list[str], scope: Conditions) -> set[str]:
    release, stack = asked(scope, "release"), asked(scope, "stack")
    sql = BINARIES if release is None else LISTED_BINARIES
    found: set[str] = set()
    for some in json_pieces(hashes, HASHES_AT_ONCE):
        rows = select(conn, sql, hashes=some, release=release, stack=stack)
        found.update(row[0] for row in rows)
    return found


def _rows(candidates: Candidates, wanted: set[Configuration]) -> dict[Configuration, Candidate]:
    """Return the configurations of the file that are the same as those wanted."""
    names = {each.package for each in wanted}
    candidates.prepare(names)
    rows = (row for name in names for row in candidates.rows(name))
    words = ((candidates.configuration(row), row) for row in rows)
    return {configuration: row for configuration, row in words if configuration in wanted}
