"""Reads from a database what the rules of `reuse` compare specs with.

A `Pool` is read once for the settings of an environment. Some rules need more about the
specs that binaries need, which is read for each group of binaries: `MemberFacts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from spack_cache_db.environments.reuse_rules import (
    DeclaredExternal,
    ReuseRules,
    ReuseSource,
    SpecFilter,
)
from spack_cache_db.query.choice.reuse_pool import (
    AppliedFilter,
    Compiler,
    FilteredMirror,
    KnownExternal,
    MemberFacts,
    NamedVerdict,
    Pool,
    PoolSource,
)
from spack_cache_db.query.match.question import verdict_on
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_ids
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import ids_of_hashes
from spack_cache_db.query.stored.closure import Closure
from spack_cache_db.query.stored.mirrors import listing_mirrors
from spack_cache_db.spack.facts import COMPILER_WRAPPER, DEV_PATH, LANGUAGES
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

BEFORE_1_0 = """
SELECT records.spec_id FROM record_ranges AS records
JOIN nodes ON nodes.id = records.node_id
GROUP BY records.spec_id HAVING min(nodes.is_before_1_0)
"""
"""The specs all of whose records are from before Spack 1.0; several indexes may have a
record of a spec.
"""
NEWER = """
SELECT EXISTS (SELECT 1 FROM record_ranges AS records JOIN nodes ON nodes.id = records.node_id
  WHERE NOT nodes.is_before_1_0)
"""
"""Whether any record is of Spack 1.0 or newer."""
DEVELOPED = f"""
SELECT specs.id FROM variants
JOIN variant_set_members ON variant_set_members.variant_id = variants.id
JOIN configurations ON configurations.variant_set_id = variant_set_members.variant_set_id
JOIN specs ON specs.configuration_id = configurations.id
WHERE variants.name = '{DEV_PATH}'
"""
"""The specs that were built from a folder of sources."""
WRAPPERS = f"""
SELECT specs.id FROM packages
JOIN configurations ON configurations.package_id = packages.id
JOIN specs ON specs.configuration_id = configurations.id
WHERE packages.name = '{COMPILER_WRAPPER}'
"""
"""The specs of `compiler-wrapper`."""
INSTALLED_SPECS = """
SELECT listings.spec_id FROM releases JOIN listings ON listings.release_id = releases.id
WHERE releases.kind = 'installed'
"""
"""The specs that an installation has."""
SPECS_OF_MIRRORS = """
SELECT listings.spec_id FROM releases JOIN listings ON listings.release_id = releases.id
WHERE releases.kind <> 'installed'
"""
"""The specs that a release of a mirror lists."""


def read_pool(records: SpecRecords, rules: ReuseRules) -> Pool:
    """Return what the solver takes from a database, under the rules of an
    environment.
    """
    lookups = records.lookups
    # Read the specs that no setting changes.
    before_1_0 = _cached(lookups, BEFORE_1_0)
    has_newer = lookups.once(NEWER, lambda: _has_newer(lookups))
    # Find the specs that the settings of the environment name.
    sources = [_source(records, source) for source in rules.sources]
    externals: dict[str, tuple[KnownExternal, ...]] = {}
    for package, declared in rules.externals.items():
        known = [_known_external(records, external) for external in declared]
        externals[package] = tuple(known)
    mirrors = []
    for mirror in rules.mirrors:
        applied_filter = _applied(records, mirror.filter)
        mirrors.append(FilteredMirror(mirror.name, mirror.url, applied_filter))
    return Pool(
        before_1_0=before_1_0,
        developed=_cached(lookups, DEVELOPED),
        wrappers=_cached(lookups, WRAPPERS),
        is_old=bool(before_1_0) and not has_newer,
        sources=tuple(sources),
        reuses_roots=rules.reuses_roots,
        setting=rules.setting,
        externals=externals,
        allowed_to_mix=rules.allowed_to_mix,
        mirrors=tuple(mirrors),
    )


def _cached(lookups: Lookups, sql: str) -> frozenset[int]:
    """Return the ids that a statement without parameters selects, read once for a
    database.
    """
    return lookups.once(sql, lambda: select_ids(lookups.conn, sql))


def _has_newer(lookups: Lookups) -> bool:
    """Return whether a spec of Spack 1.0 or newer has a record."""
    ((has_newer,),) = select(lookups.conn, NEWER)
    return bool(has_newer)


def _source(records: SpecRecords, source: ReuseSource) -> PoolSource:
    """Return a source with the specs of the database that are in it.

    Their ids stay None for a build cache in a database without installations, which has
    all of them, for externals, and for a lockfile that cannot be read.
    """
    lookups = records.lookups
    specs: Set[int] | None = None
    if source.kind == "local":
        specs = _cached(lookups, INSTALLED_SPECS)
    elif source.kind == "buildcache" and lookups.trees():
        specs = _cached(lookups, SPECS_OF_MIRRORS)
    elif source.kind == "environment" and source.hashes is not None:
        # Hashes that the database does not have are left out.
        id_of_hash = ids_of_hashes(lookups.conn, sorted(source.hashes))
        specs = frozenset(id_of_hash.values())
    return PoolSource(source.kind, _applied(records, source.filter), specs)


def _known_external(records: SpecRecords, external: DeclaredExternal) -> KnownExternal:
    """Return an external of `packages:` with the specs that satisfy its spec."""
    named = _named_verdict(records, external.written)
    return KnownExternal(
        named.text, external.prefix, external.modules, named.verdict.matching
    )


def _applied(records: SpecRecords, spec_filter: SpecFilter) -> AppliedFilter:
    """Return a filter with the specs of the database that satisfy its specs."""
    include = [_named_verdict(records, query) for query in spec_filter.include]
    exclude = [_named_verdict(records, query) for query in spec_filter.exclude]
    return AppliedFilter(tuple(include), tuple(exclude))


def _named_verdict(records: SpecRecords, query: SpecQuery) -> NamedVerdict:
    """Return the specs of the database that satisfy a query, and the query as text."""
    return NamedVerdict(spec_text(query), verdict_on(records, query))


def member_facts(
    lookups: Lookups, pool: Pool, closures: Iterable[Closure]
) -> MemberFacts:
    """Return what the rules of a pool need to know about the members of closures.

    Mirrors and compilers take time to read, and only some settings need them.
    """
    members: set[int] = set()
    for closure in closures:
        members.update(member.spec for member in closure.binaries)
    listed = listing_mirrors(lookups, members) if pool.mirrors else {}
    compilers = _compilers(lookups, members) if pool.allowed_to_mix is not None else {}
    return MemberFacts(listed, compilers)


def _compilers(
    lookups: Lookups, specs: Iterable[int]
) -> Mapping[int, Mapping[str, Compiler]]:
    """Return the compilers of specs by language, such as `{"c": gcc, "cxx": gcc}`.

    A compiler is a dependency that provides a language, which is a virtual package.
    """
    edges_of_spec = graph.Dependencies(lookups.conn).edges(specs)
    # Find the ids of the compilers in the dependencies of each spec.
    id_of_language: dict[int, dict[str, int]] = {}
    all_ids: set[int] = set()
    for spec, edges in edges_of_spec.items():
        id_of_language[spec] = _compiler_ids(edges)
        all_ids.update(id_of_language[spec].values())

    # Read the names of all compilers together.
    compiler_of_id = {}
    for compiler_id, node in graph.read_nodes(lookups.conn, all_ids).items():
        text = f"{node.package}@{node.version}"
        compiler_of_id[compiler_id] = Compiler(compiler_id, text)

    # Put the compilers in place of their ids.
    compilers: dict[int, Mapping[str, Compiler]] = {}
    for spec, ids in id_of_language.items():
        compilers[spec] = {
            language: compiler_of_id[compiler_id]
            for language, compiler_id in ids.items()
        }
    return compilers


def _compiler_ids(edges: Iterable[graph.Edge]) -> dict[str, int]:
    """Return the ids of the dependencies that provide languages, by language."""
    ids = {}
    for edge in edges:
        for virtual in edge.virtuals:
            if virtual in LANGUAGES:
                ids[virtual] = edge.dependency
    return ids
