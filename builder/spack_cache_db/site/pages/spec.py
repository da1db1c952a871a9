"""The page of one spec: its configuration, dependencies, releases and similar binaries."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spack_cache_db.query.comparison import differences
from spack_cache_db.query.configurations import Spec, configurations_by_id
from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.graph import (
    Needs,
    Node,
    direct_dependents,
    read_needs,
    read_nodes,
    recorded_specs,
)
from spack_cache_db.query.installation import Commands, install_listed, installations_of
from spack_cache_db.records import INSTALLED, Configuration
from spack_cache_db.site.pages.configurations import MOST_NODES, LookAlike, look_alikes
from spack_cache_db.site.pages.dependency_tree import Trees, trees
from spack_cache_db.site.pages.filters import Pagination, paginated
from spack_cache_db.spack.normal_forms import NO_COMPILER

MOST_OTHERS = 100
"""Other specs of the configuration on one page."""
MOST_CANDIDATES = 50
MOST_DEPENDENTS = 50
"""Dependents on the page of a spec."""

OTHERS = """
SELECT id, hash, stacks, first_seen, last_seen FROM specs
WHERE configuration = :configuration AND hash != :hash AND release_count > 0
ORDER BY id LIMIT :limit OFFSET :offset
"""
OTHERWISE = """
SELECT source, message FROM problems WHERE hash = :hash AND code LIKE 'two_%' ORDER BY id
"""
CANDIDATES = """
SELECT hash, configuration FROM specs
WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""
SPEC = """
SELECT specs.id, specs.configuration, stack_sets.shown, specs.release_count, specs.first_seen,
  specs.last_seen
FROM specs JOIN stack_sets ON stack_sets.id = specs.stacks
WHERE specs.hash = :hash
"""
LISTINGS = """
SELECT releases.name, releases.kind, stack_sets.shown, build_listings.size,
  build_listings.tarball
FROM listings
JOIN releases ON releases.id = listings.release
JOIN stack_sets ON stack_sets.id = listings.stacks
JOIN build_listings ON build_listings.release = releases.name AND build_listings.hash = :hash
WHERE listings.spec = :spec
ORDER BY releases.position
"""
_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
_PREFIX = re.compile(r"[a-z2-7]{7,32}")


class Listing(NamedTuple):
    """A spec's presence in one release."""

    release: str
    kind: str
    stacks: tuple[str, ...]
    size: str
    tarball: str | None

    @property
    def has_link(self) -> bool:
        """Whether the tarball's address is a web address, not a script or a file."""
        return bool(self.tarball and _WEB.match(self.tarball))


class HashMatch(NamedTuple):
    """One of several specs that a short hash may mean."""

    hash: str
    configuration: Configuration


@dataclass(frozen=True, slots=True)
class SpecPage:
    """The content of the page of a spec.

    Attributes:
        node: its hash and its kind.
        otherwise: paths of pages and indexes that contradict the stored data, and their messages.
        trees: dependencies; None without a record in an index.
        needed_by: the first direct dependents, at most one more than `MOST_DEPENDENTS`.
        others: specs of the same configuration, current ones first.
        release: the release that the reader chose, if it lists the spec.
        install: install commands; None if no mirror lists the spec.
    """

    node: Node
    configuration: Configuration
    stacks: tuple[str, ...]
    release_count: int
    first_seen: str | None
    last_seen: str | None
    listings: tuple[Listing, ...]
    otherwise: tuple[tuple[str, str], ...]
    trees: Trees | None
    needed_by: tuple[Node, ...]
    other_count: int
    others: tuple[LookAlike, ...]
    window: Pagination
    release: str | None
    installed: tuple[Commands, ...]
    install: Commands | None

    @property
    def line(self) -> str:
        """The configuration as a spec on one line."""
        return spec_line(self.configuration)

    @property
    def entry(self) -> str:
        """The configuration as an entry of a spack.yaml."""
        return f"- {json.dumps(self.line)}"


def spec_line(configuration: Configuration) -> str:
    """Return a configuration as a spec on one line, which `find` and Spack read."""
    # A version such as `git.main=1.4` is exact already.
    exact = "" if "=" in configuration.version else "="
    words = [f"{configuration.package}@{exact}{configuration.version}", *configuration.variants]
    words += [f"{name}={getattr(configuration, name)}" for name in ("platform", "os", "target")]
    if configuration.compiler != NO_COMPILER:
        words.append(f"%{configuration.compiler.replace('@', '@=')}")
    return " ".join(words)


def is_hash_prefix(text: str) -> bool:
    """Return whether a text can be a hash or the start of one."""
    return _PREFIX.fullmatch(text) is not None


def load_candidates(lookups: Lookups, prefix: str) -> tuple[HashMatch, ...]:
    """Return the first specs whose hash has a prefix, at most one more than `MOST_CANDIDATES`."""
    rows = [*select(lookups.conn, CANDIDATES, prefix=prefix, limit=MOST_CANDIDATES + 1)]
    counted = configurations_by_id(lookups, [configuration for _, configuration in rows])
    pairs = zip(rows, counted, strict=True)
    return tuple(HashMatch(dag_hash, row.configuration) for (dag_hash, _), row in pairs)


def load_spec(
    lookups: Lookups, dag_hash: str, page: int = 1, release: str | None = None
) -> SpecPage | None:
    """Return the page of the spec with this full hash; None if there is none.

    Args:
        page: number of the page of other specs.
        release: release to install from; the first one that lists the spec, if this one does not.
    """
    conn, row = lookups.conn, next(select(lookups.conn, SPEC, hash=dag_hash), None)
    if row is None:
        return None
    spec, key, stacks, release_count, *days = row
    (counted,) = configurations_by_id(lookups, [key])
    configuration = counted.configuration
    listings = tuple(
        Listing(name, kind, tuple(json.loads(names)), *binary)
        for name, kind, names, *binary in select(conn, LISTINGS, spec=spec, hash=dag_hash)
    )
    releases = [listing.release for listing in listings if listing.kind != INSTALLED]
    chosen = release if release in releases else None
    other_count = counted.spec_count - bool(release_count)
    others = read_others(conn, key, dag_hash, page)
    roots = recorded_specs(conn, [spec, *(other.id for other in others)])
    graph = read_needs(lookups, roots, MOST_NODES)
    needing = read_nodes(conn, direct_dependents(conn, spec, MOST_DEPENDENTS + 1))
    return SpecPage(
        node=read_nodes(conn, [spec])[spec],
        configuration=configuration,
        stacks=tuple(json.loads(stacks)),
        release_count=release_count,
        first_seen=days[0],
        last_seen=days[1],
        listings=listings,
        otherwise=tuple(
            (path, message.replace(f" {dag_hash}", "", 1))
            for path, message in select(conn, OTHERWISE, hash=dag_hash)
        ),
        trees=_trees(lookups, graph, spec) if spec in graph.edges else None,
        needed_by=tuple(needing.values()),
        other_count=other_count,
        others=_compared(lookups, graph, spec, others),
        window=paginated(other_count, page, MOST_OTHERS),
        release=chosen,
        installed=installations_of(conn, configuration.package, dag_hash),
        install=install_listed(
            conn, configuration.package, dag_hash, [chosen] if chosen else releases
        ),
    )


def read_others(
    conn: sqlite3.Connection, configuration: int, dag_hash: str, page: int
) -> list[Spec]:
    """Return one page of the other binaries of a configuration, current ones first."""
    window = {"limit": MOST_OTHERS, "offset": (page - 1) * MOST_OTHERS}
    rows = select(conn, OTHERS, configuration=configuration, hash=dag_hash, **window)
    return [*map(Spec._make, rows)]


def _compared(
    lookups: Lookups, graph: Needs, spec: int, others: Sequence[Spec]
) -> tuple[LookAlike, ...]:
    """Return other specs with their differences from a spec, if the graph has both."""
    ids = [other.id for other in others if other.id in graph.edges] if spec in graph.edges else []
    differences_by_id = differences(lookups, graph, spec, ids)
    binaries = look_alikes(lookups, others, {})
    return tuple(
        replace(binary, differences=differences_by_id.get(other.id))
        for other, binary in zip(others, binaries, strict=True)
    )


def _trees(lookups: Lookups, graph: Needs, spec: int) -> Trees:
    """Return the dependency trees of a spec; only names of its dependencies are read."""
    needed, ahead = {spec}, [spec]
    while ahead:
        new = {edge.dependency for edge in graph.edges.get(ahead.pop(), ())} - needed
        needed |= new
        ahead += new
    return trees(graph, read_nodes(lookups.conn, needed), spec)
