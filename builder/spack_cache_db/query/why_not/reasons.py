"""Why nothing satisfies a query: which conditions exclude everything, and what there is instead."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from spack_cache_db.query.asked import Conditions
from spack_cache_db.query.conditions import ANYWHERE, Scope, asked_of
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.why_not.candidates import PLACES, Candidates, Row
from spack_cache_db.query.why_not.instead import in_words, instead_of, label
from spack_cache_db.query.why_not.misplaced import corrected
from spack_cache_db.query.why_not.misses import Condition, Misses, misses_of
from spack_cache_db.query.why_not.uncounted import uncounted
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.versions import VersionRanges

MOST_LEFT_OUT = 2
"""So many conditions are left out together, where fewer do not do."""

MOST_CLOSE = 5
_MOST_MASKS = 200


@dataclass(frozen=True, slots=True)
class Without:
    """What is found once some conditions are left out.

    Attributes:
        left_out: the conditions.
        spec: the query without those that it asks itself.
        configurations: how many satisfy all the others.
        instead: what these have in place of what was asked, in words.
        nearest: the first of them, newest version first.
    """

    left_out: tuple[Condition, ...]
    spec: str
    configurations: int
    instead: tuple[str, ...]
    nearest: Configuration

    @property
    def is_of_query(self) -> bool:
        """Whether `spec` alone is what finds them: nothing that narrows the answer is left out."""
        return all(each.kind not in ("release", "stack", "host") for each in self.left_out)

    @property
    def sentence(self) -> str:
        """What is found, in one sentence."""
        names = " and ".join(label(each) for each in self.left_out)
        counted = f"{self.configurations:,} configuration{'' if self.configurations == 1 else 's'}"
        return "; ".join((f"without {names}: {counted}", *self.instead))


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a query has no answer.

    Attributes:
        unknown: the name that no package has, None where the package is known.
        close: packages with names like it.
        missing: conditions that no configuration of the package satisfies, with what there is.
        without: what is found without a condition, or without two where no single one suffices;
            most configurations first.
        nearest: where nothing is found so, the configuration that misses the fewest conditions,
            and their labels.
        corrected: the query with what stands behind a compiler moved before it.
        notes: what else there is to say.
    """

    unknown: str | None = None
    close: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    without: tuple[Without, ...] = ()
    nearest: tuple[Configuration, tuple[str, ...]] | None = None
    corrected: str | None = None
    notes: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """Return all of it in sentences, without what should be typed instead."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.unknown is not None:
            hint = f"; close: {', '.join(self.close)}" if self.close else ""
            yield f"no package here is called {self.unknown!r}{hint}"
        yield from self.missing
        yield from (each.sentence for each in self.without)
        yield from self.last_sentences

    @property
    def last_sentences(self) -> tuple[str, ...]:
        """What is said where nothing is found without two conditions, and the notes."""
        if self.nearest is None:
            return self.notes
        configuration, missed = self.nearest
        said = f"nearest is {in_words(configuration)}, which misses {', '.join(missed)}"
        return (said, *self.notes)


def why_not(
    conn: sqlite3.Connection,
    lookups: Lookups,
    query: SpecQuery,
    scope: Scope = ANYWHERE,
    candidates: Candidates | None = None,
    asked: Conditions | None = None,
) -> WhyNot:
    """Return why nothing satisfies a query.

    Args:
        conn: a connection to the file.
        lookups: its small tables.
        query: a query without an answer.
        scope: what narrows it.
        candidates: configurations that were read already.
        asked: what the query asks, where it is known.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
    """
    asked = asked or asked_of(conn, query)
    candidates = candidates or Candidates(conn, lookups)
    if asked.name is not None and asked.name not in candidates.packages:
        return WhyNot(unknown=asked.name, close=close_names(asked.name, candidates.packages))
    misses = misses_of(candidates, asked, scope)
    without = tuple(_without(misses, query))
    release = [at for at, each in enumerate(misses.conditions) if each.kind == "release"]
    is_uncounted = 0 in misses.missed and not misses.fitting(release)
    return WhyNot(
        missing=tuple(_missing(misses, asked.name)),
        without=without,
        nearest=None if without else _nearest(misses),
        corrected=corrected(conn, query),
        notes=uncounted(conn, lookups, asked, scope) if is_uncounted else (),
    )


def close_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return names like one that is not known: those that have it as a part, then similar ones."""
    names = [*known]
    parts = [each for each in names if name in each] if len(name) > 2 else []
    similar = difflib.get_close_matches(name, names, MOST_CLOSE, cutoff=0.7)
    return tuple(dict.fromkeys((*similar, *sorted(parts, key=len))))[:MOST_CLOSE]


def _without(misses: Misses, query: SpecQuery) -> list[Without]:
    """Return what is found without one condition, or else without two."""
    for size in range(1, MOST_LEFT_OUT + 1):
        found = []
        for places in _left_out(misses, size):
            fitting = misses.fitting(places)
            if fitting:
                found.append(_found_without(misses, query, places, [*fitting]))
        if found:
            return sorted(found, key=lambda each: -each.configurations)
    return []


def _left_out(misses: Misses, size: int) -> list[tuple[int, ...]]:
    """Return the sets of so many conditions that are all that some configuration misses."""
    places = [at for at, each in enumerate(misses.conditions) if each.kind in PLACES]
    found: dict[tuple[int, ...], None] = {}
    few = {missed for missed in misses.missed if missed.bit_count() <= size}
    for missed in sorted(few)[:_MOST_MASKS]:
        words = [at for at in range(len(misses.conditions)) if missed >> at & 1]
        for more in combinations(places, size - len(words)):
            found[tuple(sorted((*words, *more)))] = None
    return [*found]


def _found_without(
    misses: Misses, query: SpecQuery, places: Sequence[int], rows: list[Row]
) -> Without:
    left_out = tuple(misses.conditions[place] for place in places)
    # Of a version that no configuration has, `missing` says what there is.
    instead = (
        instead_of(misses.candidates, each, rows)
        for place, each in zip(places, left_out, strict=True)
        if each.kind != "version" or not (query.name is None or misses.all_miss(place))
    )
    return Without(
        left_out,
        spec_text(_reduced(query, left_out)),
        sum(row.configurations for row in rows),
        tuple(each for each in instead if each),
        misses.candidates.configuration(rows[0]),
    )


def _reduced(query: SpecQuery, left_out: tuple[Condition, ...]) -> SpecQuery:
    """Return a query without some of its own conditions."""
    kinds = {each.kind for each in left_out}
    texts = {each.text for each in left_out}
    named = {each.asked.name for each in left_out if each.kind in ("variant", "compiler")}
    if "specs" in kinds:
        own = tuple(each for each in query.variants if not each.propagate)
        query = replace(query, namespace=None, variants=own, flags=(), dependencies=())
    return replace(
        query,
        versions=None if "version" in kinds else query.versions,
        variants=tuple(each for each in query.variants if each.name not in named),
        os=None if f"os={query.os}" in texts else query.os,
        platform=None if f"platform={query.platform}" in texts else query.platform,
        target=None if f"target={query.target}" in texts else query.target,
        hash=None if "hash" in kinds else query.hash,
        dependencies=tuple(
            edge for edge in query.dependencies if edge.node.name not in named or not edge.direct
        ),
    )


def _missing(misses: Misses, package: str | None) -> Iterator[str]:
    """Yield what no configuration of a package is or has, where that is so of a version."""
    if package is None or not misses.rows:
        return
    for place, condition in enumerate(misses.conditions):
        if condition.kind == "version" and misses.all_miss(place):
            versions: VersionRanges = condition.asked
            newest = misses.candidates.lookups.words["version"][misses.rows[0].version]
            yield f"no version {versions.text} of {package}: newest {newest}"


def _nearest(misses: Misses) -> tuple[Configuration, tuple[str, ...]] | None:
    """Return the configuration that misses the fewest conditions by its words, and their labels."""
    if not misses.by_count or not misses.by_count[0][0]:
        return None
    missed, row = misses.by_count[0]
    names = (label(each) for at, each in enumerate(misses.conditions) if missed >> at & 1)
    return misses.candidates.configuration(row), tuple(names)
