"""The mirrors from which binaries can be installed, and what each lists now.

A snapshot that `build --snapshot` made is not a mirror, and neither is an installation.
A release that is known from pages counts as a mirror.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.model import INSTALLED
from spack_cache_db.query.conditions.conditions import Conditions, condition_value
from spack_cache_db.query.open.lookups import Lookups, Release
from spack_cache_db.query.open.sql import json_pieces, select, select_ids, select_in
from spack_cache_db.query.stored.binary import HASHES_AT_ONCE, IN_STACK
from spack_cache_db.releases import is_public_mirror, public_mirror
from spack_cache_db.schema.tarballs import TARBALL_PATH

MIRRORS = f"""
SELECT mirrors.id, mirrors.release_id, stacks.name, stacks.is_root, mirrors.url, mirrors.is_signed,
  mirrors.settings
FROM mirrors
JOIN releases ON releases.id = mirrors.release_id
JOIN stacks ON stacks.id = mirrors.stack_id
WHERE releases.kind <> '{INSTALLED}' AND NOT releases.is_copy
ORDER BY releases.position, NOT stacks.is_root, mirrors.spec_count DESC, mirrors.id
"""
WITH_PAGES = f"""
SELECT id FROM releases
WHERE kind <> '{INSTALLED}' AND NOT is_copy
  AND EXISTS (SELECT 1 FROM pages WHERE pages.release_id = releases.id)
"""
COPIES = "SELECT id FROM releases WHERE is_copy"
POSITIONS = "SELECT id, position FROM mirrors"
# All rows of the view `records` would be many: one for each snapshot. CROSS JOIN makes
# SQLite start from the specs that are looked up.
LISTED_BY_INDEX = """
SELECT records.spec_id, records.first_mirror_id, records.last_mirror_id
FROM json_each(:ids) AS wanted
CROSS JOIN record_ranges AS records ON records.spec_id = wanted.value
WHERE records.is_listed
"""
# The specs of each release in turn, in the order of the table: for 3,000 specs, that
# takes a quarter of the time of the releases of each spec.
LISTED_BY_PAGE = """
SELECT listings.spec_id, listings.release_id, tarball_prefixes.url, tarball_prefixes.is_whole
FROM json_each(:releases) AS pages
CROSS JOIN listings ON listings.release_id = pages.value
  AND listings.spec_id IN (SELECT value FROM json_each(:ids))
LEFT JOIN tarball_prefixes ON tarball_prefixes.id = listings.tarball_prefix_id
"""

LISTED_FIRST_BY_PAGE = """
SELECT listings.spec_id, listings.release_id, tarball_prefixes.url, tarball_prefixes.is_whole
FROM json_each(:ids) AS wanted
CROSS JOIN listings ON listings.spec_id = wanted.value AND listings.release_id = (
  SELECT releases.id FROM releases
  CROSS JOIN listings AS earlier
    ON earlier.release_id = releases.id AND earlier.spec_id = wanted.value
  WHERE releases.id IN (SELECT value FROM json_each(:releases))
  ORDER BY releases.id LIMIT 1)
LEFT JOIN tarball_prefixes ON tarball_prefixes.id = listings.tarball_prefix_id
"""
"""The first of some releases that lists each spec, as `LISTED_BY_PAGE`."""

# The ids of releases are in order, and one of the first releases lists most specs. This
# is a part of `FIRST_RELEASE`, which has the table `specs`.
_FIRST = f"""
SELECT releases.id FROM releases
CROSS JOIN listings ON listings.release_id = releases.id AND listings.spec_id = specs.id
WHERE (:release IS NULL OR releases.id = :release) AND {IN_STACK.format("listings")}
"""
FIRST_RELEASE = f"""
SELECT specs.id, specs.hash, releases.id
FROM json_each(:hashes) AS wanted
CROSS JOIN specs ON specs.hash = wanted.value
JOIN releases ON releases.id = coalesce(
  ({_FIRST} AND releases.kind = '{INSTALLED}' ORDER BY releases.id LIMIT 1),
  ({_FIRST} ORDER BY releases.id LIMIT 1))
"""


@dataclass(frozen=True, slots=True)
class Mirror:
    """A mirror, and what Spack needs to know to add it.

    Attributes:
        release: the name of the release that it is.
        stack: the name of its stack; None for the index of all stacks, and for pages.
        url: its address; None if it is not known.
        is_signed: whether its binaries are signed; None if only some are, or if it is
            not known.
        settings: the properties of Spack's mirrors.yaml that a user needs, such as
            `{"endpoint_url": "https://s3.example.org"}`.
        order: the place of the release in the database, and of the mirror in its
            release. Mirrors that come first are preferred.
    """

    release: str
    stack: str | None
    url: str | None
    is_signed: bool | None = None
    # A dict has no hash, but mirrors are keys.
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    order: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class _Mirrors:
    """The mirrors of indexes by their ids, and the releases that have pages.

    Attributes:
        by_id: the mirrors, the preferred one first.
        of_release: the first mirror of each release that has indexes, by the release's
            id.
        with_pages: the releases that have pages.
        positions: the places of all mirrors by their ids, copies and installations
            included.
        ranges: the results of `between`.
    """

    by_id: dict[int, Mirror]
    of_release: dict[int, Mirror]
    with_pages: tuple[int, ...]
    positions: dict[int, int]
    ranges: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def between(self, first: int, last: int) -> list[int]:
        """Return the ids in `by_id` of the mirrors from one to another."""
        if (first, last) not in self.ranges:
            start = self.positions[first]
            end = self.positions[last]
            self.ranges[first, last] = [
                mirror_id
                for mirror_id in self.by_id
                if start <= self.positions[mirror_id] <= end
            ]
        return self.ranges[first, last]


def listing_mirrors(
    lookups: Lookups, specs: Iterable[int], releases: Set[int] | None = None
) -> dict[int, list[Mirror]]:
    """Return the mirrors that list each spec now; a spec that no mirror lists has no
    key.

    Of the releases that are known from pages, those with an id in `releases` are
    searched: all of them if it is None.

    If a page lists a binary that no index of its release lists, its mirror is where the
    page says that the tarball is, or else the first mirror of the release, or else the
    mirror of this release in Spack's public cache.
    """
    mirrors = lookups.once(MIRRORS, lambda: _read_mirrors(lookups))
    ids = list(specs)
    mirrors_of_spec: dict[int, list[int]] = defaultdict(list)
    for spec, first, last in select_in(lookups.conn, LISTED_BY_INDEX, ids):
        mirrors_of_spec[spec] += mirrors.between(first, last)
    found: dict[int, list[Mirror]] = defaultdict(list)
    for spec, mirror_ids in mirrors_of_spec.items():
        # In the order of ids; callers that prefer one mirror sort by `Mirror.order`.
        if mirror_ids:
            found[spec] = [mirrors.by_id[number] for number in sorted(mirror_ids)]
    searched = set(mirrors.with_pages)
    if releases is not None:
        searched &= releases
    if searched:
        pages = _listed_by_pages(lookups, mirrors, searched, ids, LISTED_BY_PAGE)
        for spec, mirror in pages:
            releases_of_indexes = {index_mirror.release for index_mirror in found[spec]}
            if mirror.release not in releases_of_indexes:
                found[spec].append(mirror)
    return found


def has_addresses(lookups: Lookups) -> bool:
    """Return whether the address of any mirror may be known: pages are of mirrors whose
    address is.
    """
    mirrors = lookups.once(MIRRORS, lambda: _read_mirrors(lookups))
    if mirrors.with_pages:
        return True
    return any(mirror.url is not None for mirror in mirrors.by_id.values())


def first_mirrors(lookups: Lookups, specs: Iterable[int]) -> dict[int, list[Mirror]]:
    """Return the first mirror that lists each spec; a spec that no mirror lists has no
    key. With indexes, others may follow, because the first may have no address.

    Looking all of them up, as `listing_mirrors` does, takes ten times as long: a spec
    is in many releases, and one of the first lists most specs.
    """
    mirrors = lookups.once(MIRRORS, lambda: _read_mirrors(lookups))
    if mirrors.by_id:
        return listing_mirrors(lookups, specs)
    searched = mirrors.with_pages
    pages = _listed_by_pages(lookups, mirrors, searched, specs, LISTED_FIRST_BY_PAGE)
    return {spec: [mirror] for spec, mirror in pages}


def every_mirror(lookups: Lookups) -> dict[Mirror, list[int]]:
    """Return the mirrors of indexes with the ids of their indexes, the preferred mirror
    first.

    Mirrors without an address come last. Indexes with one address are one mirror.
    """
    mirrors = lookups.once(MIRRORS, lambda: _read_mirrors(lookups))
    ids: dict[Mirror, list[int]] = {}
    of_url: dict[str, Mirror] = {}
    # The sort is stable: apart from the addresses, the mirrors keep their order.
    in_order = sorted(mirrors.by_id.items(), key=lambda item: item[1].url is None)
    for mirror_id, mirror in in_order:
        first = mirror
        if mirror.url is not None:
            first = of_url.setdefault(mirror.url, mirror)
        ids.setdefault(first, []).append(mirror_id)
    return ids


def _read_mirrors(lookups: Lookups) -> _Mirrors:
    by_id: dict[int, Mirror] = {}
    of_release: dict[int, Mirror] = {}
    for place, row in enumerate(select(lookups.conn, MIRRORS)):
        mirror_id, release_id, stack, is_root, url, is_signed, settings = row
        release = lookups.releases[release_id]
        mirror = Mirror(
            release=release.name,
            stack=None if is_root else stack,
            url=url,
            is_signed=_is_signed(url, is_signed),
            settings=stored_json(settings) if settings else {},
            order=(release.position, place),
        )
        by_id[mirror_id] = mirror
        # The first mirror with a known address, or else the first one.
        first = of_release.get(release_id)
        if first is None or (url and first.url is None):
            of_release[release_id] = mirror
    with_pages = tuple(sorted(select_ids(lookups.conn, WITH_PAGES)))
    positions = dict(select(lookups.conn, POSITIONS))
    return _Mirrors(by_id, of_release, with_pages, positions)


def _is_signed(url: str | None, is_signed: int | None) -> bool | None:
    """Spack's public build cache is signed, even if a source does not show it."""
    if is_signed is not None:
        return bool(is_signed)
    is_public = url is not None and is_public_mirror(url)
    return True if is_public else None


def _listed_by_pages(
    lookups: Lookups,
    mirrors: _Mirrors,
    searched: Iterable[int],
    ids: Iterable[int],
    sql: str,
) -> Iterator[tuple[int, Mirror]]:
    """Yield specs with the mirrors of those releases, given by id, that list them."""
    releases = json.dumps(sorted(searched))
    rows = select_in(lookups.conn, sql, ids, releases=releases)
    for spec, release_id, url, is_whole in rows:
        release = lookups.releases[release_id]
        yield spec, _mirror_of_page(release, mirrors, url, bool(is_whole))


def _mirror_of_page(
    release: Release, mirrors: _Mirrors, url: str | None, is_whole: bool
) -> Mirror:
    """Return the mirror of a binary on a page; `url` is that of its tarball, whole or
    in part.
    """
    mirror_url = url
    if url is not None and is_whole:
        # A whole URL is the mirror's URL, `/build_cache/` and the path of the tarball.
        # Without `/build_cache/`, the URL of the mirror is not known.
        before, build_cache, _ = url.partition(TARBALL_PATH[0])
        mirror_url = before if build_cache else None
    of_release = mirrors.of_release.get(release.id)
    if mirror_url is None and of_release is not None:
        return of_release
    address = mirror_url or public_mirror(release.name)
    return Mirror(
        release=release.name,
        stack=None,
        url=address,
        is_signed=_is_signed(address, None),
        # After the mirrors of indexes of the same release.
        order=(release.position, sys.maxsize),
    )


class FirstListing(NamedTuple):
    """The first release that lists a binary, and the URL of its mirror, as far as
    known.
    """

    release: str | None
    mirror: str | None


NOWHERE = FirstListing(None, None)


def first_places(
    lookups: Lookups, hashes: Sequence[str], scope: Conditions
) -> dict[str, FirstListing]:
    """Return the first release in a scope that lists each hash, and the URL of its
    mirror.

    An installation comes before all other releases, and has no mirror. A hash that no
    release of the scope lists has no key.
    """
    # The parameters of the statement; None for any release, and for any stack.
    release_and_stack = {
        kind: condition_value(scope, kind) for kind in ("release", "stack")
    }
    hash_of_spec: dict[int, str] = {}
    release_of_spec: dict[int, Release] = {}
    for piece in json_pieces(hashes, HASHES_AT_ONCE):
        rows = select(lookups.conn, FIRST_RELEASE, hashes=piece, **release_and_stack)
        for spec, dag_hash, release_id in rows:
            hash_of_spec[spec] = dag_hash
            release_of_spec[spec] = lookups.releases[release_id]
    # Of the mirrors of this release, the preferred one with an address.
    releases = {release.id for release in release_of_spec.values()}
    mirrors = listing_mirrors(lookups, hash_of_spec, releases)
    places = {}
    for spec, dag_hash in hash_of_spec.items():
        name = release_of_spec[spec].name
        of_release = [
            mirror for mirror in mirrors.get(spec, ()) if mirror.release == name
        ]
        of_release.sort(key=lambda mirror: (mirror.url is None, mirror.order))
        url = of_release[0].url if of_release else None
        places[dag_hash] = FirstListing(name, url)
    return places


def mirrored_release(lookups: Lookups, release: Release) -> str:
    """Return the name of the release whose mirror has the binaries of a release.

    That of a copy that `build --snapshot` made, such as `main-2026-11-01`, is `main`.
    """
    copies = lookups.once(COPIES, lambda: select_ids(lookups.conn, COPIES))
    if release.id not in copies or release.date is None:
        return release.name
    return release.name.removesuffix(f"-{release.date}")
