"""Ids of configurations and specs → their names, and the releases and stacks that have them.

A spec that no release lists is not a binary, and counts in no answer.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from spack_cache_db.query.conditions import PLACES, Conditions, asked
from spack_cache_db.query.connection import IDS_AT_ONCE, Lookups, json_pieces, select, select_in
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION

_CONFIGURATION = ", ".join(("id", *CONFIGURATION, "spec_count"))
OF_PACKAGE = f"SELECT {_CONFIGURATION} FROM configurations WHERE package = :package"
BY_ID = f"""
SELECT {_CONFIGURATION} FROM configurations WHERE id IN (SELECT value FROM json_each(:ids))
"""
# Many pairs: SQLite gives each configuration's as one text.
IN_PLACES = """
SELECT configuration, json_group_array({place}) FROM configuration_{place}s
WHERE configuration IN (SELECT value FROM json_each(:ids)) GROUP BY configuration
"""
COUNTED_IN = """
SELECT configuration, spec_count FROM configuration_{place}s
WHERE {place} = :{place} AND configuration IN (SELECT value FROM json_each(:ids))
"""
SEEN = """
SELECT id, first_seen, last_seen FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""
OF_BINARIES = """
SELECT configuration FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.id = wanted.value AND specs.is_binary
"""

HASH_BEGINS = "(:hash = '' OR (specs.hash >= :hash AND specs.hash < :hash || '{'))"
IN_STACK = """
(:stack IS NULL OR {}.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack))
"""
HASHES_AT_ONCE = 4_000
"""Number of hashes in a JSON text below 200 kB, the longest value that the site allows."""

_SPEC = "specs.id, specs.hash, specs.stacks, specs.first_seen, specs.last_seen"
_PLACES = {
    "file": "specs WHERE specs.is_binary",
    "release": f"""specs
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}""",
    "stack": f"specs WHERE {IN_STACK.format('specs')}",
}
"""The binaries of each place."""
OF_CONFIGURATIONS = """
SELECT id FROM specs WHERE configuration IN (SELECT value FROM json_each(:ids))
"""
# Only (release, spec) is a key of listings, and the specs of a configuration lie side by side.
SPEC_RELEASES = """
SELECT listings.spec, listings.release
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN listings
  ON listings.release = releases.id
  AND listings.spec BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
"""
BY_PREFIX = """
SELECT id, hash FROM specs
WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""


MOST_HASHES = 5
"""Number of hashes that an error about an ambiguous prefix names."""

# Where the two columns stand in these rows whose words are not all known beforehand.
_VERSION, _VARIANTS = (1 + [*CONFIGURATION].index(column) for column in ("version", "variants"))


class Counted(NamedTuple):
    """A configuration of a file, and how many specs count for whom it is found.

    `position` is that of its version in Spack's order within the package.
    """

    id: int
    configuration: Configuration
    position: int
    spec_count: int


class Spec(NamedTuple):
    """A spec of a file; `stacks` is the id of the set of stacks that have it in any release."""

    id: int
    hash: str
    stacks: int
    first_seen: str | None
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class Presence:
    """The places of something: releases in the file's order, stacks sorted, first and last day."""

    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class FoundSpec(Presence):
    """A spec that satisfies a query, and where it is in any release.

    Attributes:
        hash: its hash.
        differences: what tells it apart from the other specs found of its configuration, as
            `comparison.distinctions` says; empty unless asked for.
    """

    hash: str
    differences: tuple[str, ...] = ()


def configurations_of_package(lookups: Lookups, package: int) -> list[Counted]:
    """Return the configurations of a package, given its id; `spec_count` counts all specs."""
    return _in_words(lookups, [*select(lookups.conn, OF_PACKAGE, package=package)])


def releases_of(conn: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[int]]:
    """Return the ids of the releases that list each configuration, by its id."""
    found = _arrays(select_in(conn, IN_PLACES.format(place="release"), ids))
    return {key: found.get(key, []) for key in ids}


def configurations_by_id(lookups: Lookups, ids: Sequence[int]) -> list[Counted]:
    """Return configurations in the order of their ids here; `spec_count` counts all specs."""
    found = {each.id: each for each in _in_words(lookups, [*select_in(lookups.conn, BY_ID, ids)])}
    return [found[key] for key in ids]


def learn(lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the words of some rows, each an id and the columns of a configuration, once."""
    rows = [*rows]
    lookups.learn({row[_VERSION] for row in rows}, {row[_VARIANTS] for row in rows})


def configuration_of(lookups: Lookups, keys: Iterable[int]) -> Configuration:
    """Return the columns of such a row in words, which `learn` has read."""
    words = zip(CONFIGURATION, keys, strict=True)
    return Configuration._make(lookups.words[column][key] for column, key in words)


def _in_words(lookups: Lookups, rows: list[tuple[Any, ...]]) -> list[Counted]:
    learn(lookups, rows)
    # Column by column, which takes half as long as row by row.
    columns = [*zip(*rows, strict=True)] or [()] * (len(CONFIGURATION) + 2)
    words = (
        map(lookups.words[name].__getitem__, keys)
        for name, keys in zip(CONFIGURATION, columns[1:-1], strict=True)
    )
    configurations = map(Configuration._make, zip(*words, strict=True))
    positions = map(lookups.positions.__getitem__, columns[_VERSION])
    return [*map(Counted, columns[0], configurations, positions, columns[-1])]


def presence_of_configurations(lookups: Lookups, ids: Sequence[int]) -> dict[int, Presence]:
    """Return where configurations are, by their ids.

    They are in the releases that list them, and in the stacks that these releases have them in.
    """
    releases = releases_of(lookups.conn, ids)
    stacks = _arrays(select_in(lookups.conn, IN_PLACES.format(place="stack"), ids))
    # Very many configurations are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    return {
        key: Presence(
            names(tuple(releases[key])),
            lookups.stack_names(stacks.get(key, ())),
            first_seen,
            last_seen,
        )
        for key, first_seen, last_seen in select_in(lookups.conn, SEEN, ids)
    }


def configurations_of_binaries(conn: sqlite3.Connection, specs: Iterable[int]) -> set[int]:
    """Return the configurations of binaries, given the ids of specs."""
    return {row[0] for row in select_in(conn, OF_BINARIES, specs)}


def specs_in_scope(
    conn: sqlite3.Connection, ids: Iterable[int], conditions: Conditions, limit: int = -1
) -> dict[int, list[Spec]]:
    """Return the specs that count, by the id of the configuration that they count for.

    Args:
        ids: the configurations.
        conditions: a release, a stack, a hash and what specs depend on narrow them: a stack in that
            release, if both are asked for. Conditions on words are passed over.
        limit: at most so many, where one configuration is given; -1 for all.

    Returns:
        Of each configuration those first whose foremost release is first in the file's order, then
        by hash. Configurations without a spec in the scope are left out.
    """
    found: dict[int, list[Spec]] = {}
    for configuration, *spec in _in_scope(conn, ids, conditions, _SPEC, limit):
        found.setdefault(configuration, []).append(Spec._make(spec))
    return found


def counts_in_scope(lookups: Lookups, ids: Collection[int], conditions: Conditions) -> Counter[int]:
    """Return how many specs `specs_in_scope` gives for each configuration, without reading them."""
    specs = asked(conditions, "specs")
    places = {each.kind for each in conditions if each.kind in PLACES}
    if places in ({"release"}, {"stack"}):
        (place,) = places
        sql = COUNTED_IN.format(place=place)
        return Counter(dict(select_in(lookups.conn, sql, ids, **{place: asked(conditions, place)})))
    if specs is None or places != {"specs"} or _is_few(specs.holds, ids):
        return Counter(row[0] for row in _in_scope(lookups.conn, ids, conditions, "specs.id"))
    counts = Counter(map(own_configurations(lookups).__getitem__, specs.holds))
    for key in counts.keys() - {*ids}:
        del counts[key]
    return counts


def own_configurations(lookups: Lookups) -> array[int]:
    """Return the configuration for which each spec counts in the whole file, by its id; or 0."""
    return lookups.column("specs", "configuration * is_binary")


def _in_scope(
    conn: sqlite3.Connection,
    ids: Iterable[int],
    conditions: Conditions,
    columns: str,
    limit: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Return rows of the specs that count: a configuration, the spec's id, and what more is read.

    Args:
        ids: the configurations.
        conditions: those on places count.
        columns: what is read of each spec, first its id.
        limit: at most so many, in the order in which they count; None for all, in any order.
    """
    places = {kind: asked(conditions, kind) for kind in ("release", "stack", "hash")}
    place = next((kind for kind in ("release", "stack") if places[kind] is not None), "file")
    places["hash"] = places["hash"] or ""
    specs = asked(conditions, "specs")
    # The ids of a configuration's specs are in the order in which they count.
    ordered = "" if limit is None else "ORDER BY specs.id LIMIT :limit"
    known: Collection[int] = [*ids] if specs is None else {*ids}
    is_few = specs is not None and _is_few(specs.holds, known)
    sql = f"""
SELECT specs.configuration, {columns} FROM {_PLACES[place]}
  AND specs.{"id" if is_few else "configuration"} IN (SELECT value FROM json_each(:ids))
  AND {HASH_BEGINS} {ordered}
"""
    if specs is None:
        return select_in(conn, sql, known, limit=limit, **places)
    every = select_in(conn, sql, specs.holds if is_few else known, limit=-1, **places)
    fitting = (row for row in every if row[0] in known and row[1] in specs.holds)
    return islice(fitting, None if limit in (None, -1) else limit)


def _is_few(specs: Collection[int], configurations: Collection[int]) -> bool:
    """Return whether specs are found by their own ids, and not by those of configurations."""
    # More than one piece of specs would be out of order.
    return len(specs) <= min(len(configurations), IDS_AT_ONCE)


def found_specs(lookups: Lookups, specs: Iterable[Spec]) -> Iterator[FoundSpec]:
    """Yield the specs with all that there is to tell of them, in their order."""
    specs = [*specs]
    releases: dict[int, list[int]] = {spec.id: [] for spec in specs}
    # Very many specs are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    for runs in json_pieces(runs_of(sorted(releases)), IDS_AT_ONCE // 4):
        for spec, release in select(lookups.conn, SPEC_RELEASES, runs=runs):
            releases[spec].append(release)
    stack_sets = lookups.stack_sets()
    for spec in specs:
        yield FoundSpec(
            names(tuple(releases[spec.id])),
            stack_sets[spec.stacks],
            spec.first_seen,
            spec.last_seen,
            spec.hash,
        )


def joined(lookups: Lookups, parts: Iterable[Presence]) -> Presence:
    """Return where any of several things is."""
    parts = [*parts]
    releases = {name for part in parts for name in part.releases}
    return Presence(
        tuple(each.name for each in lookups.releases.values() if each.name in releases),
        tuple(sorted({name for part in parts for name in part.stacks})),
        min((part.first_seen for part in parts if part.first_seen), default=None),
        max((part.last_seen for part in parts if part.last_seen), default=None),
    )


def specs_beginning(conn: sqlite3.Connection, prefix: str, limit: int = -1) -> dict[int, str]:
    """Return the first specs whose hashes begin with `prefix`, listed or not: ids and hashes."""
    return dict(select(conn, BY_PREFIX, prefix=prefix, limit=limit))


def specs_of_configurations(conn: sqlite3.Connection, configurations: Collection[int]) -> set[int]:
    """Return the ids of the specs of some configurations."""
    return {row[0] for row in select_in(conn, OF_CONFIGURATIONS, configurations)}


def runs_of(ids: Iterable[int]) -> list[list[int]]:
    """Return first and last of the ids that follow each other; the ids are sorted."""
    runs: list[list[int]] = []
    for each in ids:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return runs


def _arrays(rows: Iterable[tuple[int, str]]) -> dict[int, list[int]]:
    """Return arrays of JSON by their keys; one text is read in a third of the time of many."""
    texts = dict(rows)
    return dict(zip(texts, json.loads(f"[{','.join(texts.values())}]"), strict=True))
