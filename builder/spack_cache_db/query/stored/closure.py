"""The closures of binaries: all that Spack installs with a binary, and the mirrors that
list it.

Spack installs a binary together with its link and run dependencies at any depth, but
without build dependencies (Spack 1.2 `new_installer.py`, `BuildGraph._base_deptypes`).
Externals need no binary. A spliced spec is installed from the binary of the spec that
it was built as (`install_from_buildcache`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.stored.graph import read_run_time
from spack_cache_db.query.stored.mirrors import (
    Mirror,
    first_mirrors,
    listing_mirrors,
    mirrored_release,
)
from spack_cache_db.query.stored.reach import Reach
from spack_cache_db.query.stored.smallest_cover import smallest_cover
from spack_cache_db.schema.sizes import is_size, size_in_bytes
from spack_cache_db.spack.facts import LIBC

SPECS = """
SELECT specs.id, specs.hash, packages.name, versions.name, specs.last_seen,
  EXISTS (SELECT 1 FROM record_ranges WHERE record_ranges.spec_id = specs.id),
  CASE WHEN specs.is_external AND NOT specs.is_binary THEN (
    SELECT max(nodes.external) FROM record_ranges AS records
    JOIN nodes ON nodes.id = records.node_id
    WHERE records.spec_id = specs.id) END
FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.id = wanted.value
JOIN configurations ON configurations.id = specs.configuration_id
LEFT JOIN packages ON packages.id = configurations.package_id
LEFT JOIN versions ON versions.id = configurations.version_id
"""
# One build spec for each spliced spec, even if indexes contradict each other.
BUILD_SPECS = """
SELECT splices.spec_id, max(splices.build_spec_id) FROM json_each(:ids) AS wanted
CROSS JOIN splices ON splices.spec_id = wanted.value
GROUP BY splices.spec_id
"""
# A text that is not a size is left out: the size is not known.
SIZES = f"""
SELECT listings.spec_id, releases.name, {size_in_bytes("listings.size")}
FROM json_each(:ids) AS wanted
CROSS JOIN json_each(:releases) AS used
CROSS JOIN releases ON releases.name = used.value
CROSS JOIN listings ON listings.release_id = releases.id AND listings.spec_id = wanted.value
WHERE {is_size("listings.size")}
"""


class External(NamedTuple):
    """Where the system has an external: the folder, and the modules to load, as far as
    known.
    """

    prefix: str | None
    modules: tuple[str, ...]


class Member(NamedTuple):
    """A spec of a closure.

    Attributes:
        spec: its id.
        release: the release of the mirror that lists its binary now; None if none does,
            and for externals.
        size: the size of its binary in that mirror, in bytes; None if it is not known.
        external: where the system provides it; None if it needs a binary.
    """

    spec: int
    hash: str
    package: str
    version: str
    release: str | None
    size: int | None
    external: External | None

    @property
    def name_and_version(self) -> str:
        """The package with its version, such as `zlib-ng@2.2.4`; an external may have
        none.
        """
        return f"{self.package}@{self.version}" if self.version else self.package

    @property
    def is_missing(self) -> bool:
        """Whether it needs a binary, and no mirror lists one."""
        return self.external is None and self.release is None


@dataclass(frozen=True, slots=True)
class Closure:
    """A binary and all that Spack installs with it.

    Attributes:
        members: the binary, and then its link and run dependencies by package and hash.
        mirrors: the fewest mirrors that list all members that any mirror lists. The
            mirror of the binary itself comes first.
        is_known: whether the database has the dependencies of each member. It has none
            of binaries that it knows from pages.
        last_seen: the day of the latest snapshot with the binary, if a snapshot has it.
    """

    members: tuple[Member, ...]
    mirrors: tuple[Mirror, ...]
    is_known: bool
    last_seen: str | None = None

    @property
    def binary(self) -> Member:
        """The binary itself."""
        return self.members[0]

    @property
    def binaries(self) -> tuple[Member, ...]:
        """The members that need a binary: all that are not external."""
        return tuple(member for member in self.members if member.external is None)

    @property
    def is_listed(self) -> bool:
        """Whether a mirror lists the binary itself now."""
        return self.binary.release is not None

    @property
    def missing(self) -> tuple[Member, ...]:
        """The members that need a binary, and that no mirror lists."""
        return tuple(member for member in self.members if member.is_missing)

    @property
    def is_complete(self) -> bool | None:
        """Whether mirrors list the whole closure; None if its dependencies are not
        known.
        """
        if self.missing:
            return False
        return True if self.is_known else None

    @property
    def externals(self) -> tuple[Member, ...]:
        """The members that the system must provide, without the C library."""
        return tuple(
            member
            for member in self.members
            if member.external is not None and member.package not in LIBC
        )

    @property
    def size(self) -> int | None:
        """The size of all binaries in bytes; None unless all sizes and dependencies are
        known.
        """
        sizes = [member.size for member in self.binaries]
        known = [size for size in sizes if size is not None]
        if not self.is_known or len(known) < len(sizes):
            return None
        return sum(known)


def closures(
    lookups: Lookups, specs: Iterable[int], release: int | None = None
) -> Mapping[int, Closure]:
    """Return what installing each spec takes, by the ids of the specs.

    Args:
        lookups: an open database.
        specs: ids of specs, with or without a binary.
        release: the id of a release whose mirrors must list everything; None for the
            mirrors of all releases. The mirrors of a copy are those of the release that
            it copies.
    """
    roots = list(dict.fromkeys(specs))
    # Read the closures as sets of bits, and what the database has about each of their
    # specs.
    graph = read_run_time(lookups, roots)
    reach = Reach(graph)
    facts = _read_facts(lookups, graph.edges)
    # Read which mirrors list these specs, and the build specs of spliced ones.
    binaries = {spec_facts.binary for spec_facts in facts.values()}
    wanted = binaries | facts.keys()
    only_release = None
    if release is not None:
        only_release = mirrored_release(lookups, lookups.releases[release])
    if only_release is None and not has_records(lookups.conn):
        # Without dependencies, each binary needs its own mirror alone.
        listed = first_mirrors(lookups, wanted)
    else:
        listed = listing_mirrors(lookups, wanted)
    # Choose the mirrors of each closure: first the binary, then the others by package
    # and hash.
    chosen: dict[int, MirrorChoice] = {}
    for root in roots:
        others = [
            facts[spec] for spec in reach.members(reach.run_time(root)) if spec != root
        ]
        others.sort(key=lambda spec_facts: (spec_facts.package, spec_facts.hash))
        members = [facts[root], *others]
        # The order of mirrors with one URL depends on the specs, so each closure has
        # sets of its own: a binary has the same mirrors alone and among others.
        sets = mirror_sets(_listed_of(members, listed), only_release)
        chosen[root] = choose_mirrors(members, sets)
    # Sizes are those in the chosen mirrors.
    releases = {
        mirror.release for choice in chosen.values() for mirror in choice.mirrors
    }
    sizes = _read_sizes(lookups, binaries, releases)
    # Closures share most members, so each is made once.
    made: dict[tuple[int, str | None], Member] = {}
    return {root: _closure(choice, sizes, made) for root, choice in chosen.items()}


def _listed_of(
    members: Iterable[SpecFacts], listed: Mapping[int, Sequence[Mirror]]
) -> dict[int, Sequence[Mirror]]:
    """Return the mirrors of the members of a closure and of their binaries."""
    own = {}
    for member in members:
        for spec in (member.spec, member.binary):
            if spec in listed:
                own[spec] = listed[spec]
    return own


class SpecFacts(NamedTuple):
    """The facts of a database about a spec, without the mirrors that list it.

    Attributes:
        spec: its id.
        binary: the id of the spec whose binary Spack downloads for it: its build spec
            if it is spliced, or else the spec itself.
        is_recorded: whether an index has its record, and therefore its dependencies.
    """

    spec: int
    hash: str
    package: str
    version: str
    last_seen: str | None
    is_recorded: bool
    external: External | None
    binary: int


@dataclass(frozen=True, slots=True)
class MirrorSets:
    """The mirrors of specs, the preferred mirror first.

    Attributes:
        mirrors: the mirrors by their numbers.
        of_spec: the mirrors that list each spec, as a set of bits: bit 0 is mirror 0. A
            spec that no mirror lists has no key.
    """

    mirrors: tuple[Mirror, ...]
    of_spec: Mapping[int, int]


def mirror_sets(
    listed: Mapping[int, Sequence[Mirror]], release: str | None = None
) -> MirrorSets:
    """Return the mirrors that list specs as sets, of one release or of all.

    Indexes with one URL are one mirror. A mirror without an address counts only for
    binaries that no mirror with an address lists.
    """
    every = {mirror for of_spec in listed.values() for mirror in of_spec}
    if release is not None:
        every = {mirror for mirror in every if mirror.release == release}
    # Number the mirrors in their order, the preferred one first. Mirrors of one URL
    # have the same number, and the first of them stands for all.
    mirrors: list[Mirror] = []
    number_of_url: dict[str, int] = {}
    bits: dict[Mirror, int] = {}
    with_address = 0
    for mirror in sorted(every, key=lambda mirror: (mirror.order, mirror.url or "")):
        number = len(mirrors)
        if mirror.url is not None:
            number = number_of_url.setdefault(mirror.url, number)
        if number == len(mirrors):
            mirrors.append(mirror)
        bits[mirror] = 1 << number
        if mirror.url is not None:
            with_address |= bits[mirror]
    # Collect the mirrors of each spec.
    of_spec: dict[int, int] = {}
    for spec, mirrors_of_spec in listed.items():
        union = 0
        for mirror in mirrors_of_spec:
            union |= bits.get(mirror, 0)
        if union & with_address:
            union &= with_address
        if union:
            of_spec[spec] = union
    return MirrorSets(tuple(mirrors), of_spec)


@dataclass(frozen=True, slots=True)
class MirrorChoice:
    """The mirrors for a closure.

    Attributes:
        facts: the facts about the closure's specs, the binary first.
        mirrors: the mirrors to add.
        releases: for each of `facts`, the release of its mirror; None for externals and
            for specs that no mirror lists.
    """

    facts: Sequence[SpecFacts]
    mirrors: tuple[Mirror, ...]
    releases: tuple[str | None, ...]


def choose_mirrors(facts: Sequence[SpecFacts], sets: MirrorSets) -> MirrorChoice:
    """Return the fewest mirrors that list the specs of a closure, the binary's own
    mirror first.

    Specs that no mirror lists are left out of the choice.
    """
    # For each spec, the sets of mirrors of which one must be added. Spack looks the
    # hash of the binary itself up in the indexes of the mirrors, so a spliced binary
    # has two sets: its own record, and the binary of its build spec.
    choices: list[int] = []
    is_listed: list[bool] = []
    for position, spec_facts in enumerate(facts):
        needed = [spec_facts.binary]
        if position == 0 and spec_facts.binary != spec_facts.spec:
            needed.append(spec_facts.spec)
        sets_of_spec = [sets.of_spec.get(spec, 0) for spec in needed]
        is_found = spec_facts.external is None and all(sets_of_spec)
        is_listed.append(is_found)
        if is_found:
            choices += sets_of_spec
    cover = smallest_cover(choices)
    # The first mirror of the cover that lists a spec is the one that Spack asks first.
    releases: list[str | None] = []
    for spec_facts, is_found in zip(facts, is_listed, strict=True):
        release = None
        if is_found:
            of_binary = sets.of_spec[spec_facts.binary]
            listing = [number for number in cover if of_binary >> number & 1]
            release = sets.mirrors[listing[0]].release
        releases.append(release)
    mirrors = tuple(sets.mirrors[number] for number in cover)
    return MirrorChoice(facts, mirrors, tuple(releases))


def _read_facts(lookups: Lookups, specs: Iterable[int]) -> dict[int, SpecFacts]:
    ids = list(specs)
    build_specs = dict(select_in(lookups.conn, BUILD_SPECS, ids))
    facts = {}
    for row in select_in(lookups.conn, SPECS, ids):
        spec, dag_hash, package, version, last_seen, is_recorded, external = row
        facts[spec] = SpecFacts(
            spec=spec,
            hash=dag_hash,
            package=package,
            version=version,
            last_seen=last_seen,
            is_recorded=bool(is_recorded),
            external=None if external is None else read_external(external),
            binary=build_specs.get(spec, spec),
        )
    return facts


def read_external(text: str) -> External:
    """Return an external from its JSON text in the table `nodes`."""
    values = stored_json(text)
    path = values.get("path")
    modules = values.get("module") or ()
    if isinstance(modules, str):
        modules = modules.split()
    return External(str(path) if path else None, tuple(modules))


def _read_sizes(
    lookups: Lookups, specs: Iterable[int], releases: Iterable[str]
) -> dict[tuple[int, str], int]:
    """Return the sizes of binaries in releases, by spec and release; unknown ones have
    no key.
    """
    names = json.dumps(sorted(releases))
    rows = select_in(lookups.conn, SIZES, specs, releases=names)
    return {(spec, release): size for spec, release, size in rows}


def _closure(
    choice: MirrorChoice,
    sizes: Mapping[tuple[int, str], int],
    members: dict[tuple[int, str | None], Member],
) -> Closure:
    """Return the closure of a choice; `members` caches the members that closures
    share.
    """
    of_closure = []
    for facts, release in zip(choice.facts, choice.releases, strict=True):
        member = members.get((facts.spec, release))
        if member is None:
            size = None if release is None else sizes.get((facts.binary, release))
            member = Member(
                spec=facts.spec,
                hash=facts.hash,
                package=facts.package,
                version=facts.version,
                release=release,
                size=size,
                external=facts.external,
            )
            members[facts.spec, release] = member
        of_closure.append(member)
    # Dependencies are not known of a binary without a record. A spec without a record
    # that no mirror lists is missing, which decides the verdict anyway.
    is_known = all(
        facts.is_recorded or release is None
        for facts, release in zip(choice.facts, choice.releases, strict=True)
    )
    return Closure(
        tuple(of_closure), choice.mirrors, is_known, choice.facts[0].last_seen
    )
