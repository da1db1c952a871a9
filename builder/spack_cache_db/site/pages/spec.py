"""`/spec/<hash>`: the configuration of a spec, its dependencies, and similar binaries.

Also `/spec/<hash>.json`. A short hash leads to the spec, or to a list of the specs that
begin with it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from spack_cache_db.model import INSTALLED, Configuration
from spack_cache_db.query.answers.differences import differences
from spack_cache_db.query.answers.install import plan_of_spec
from spack_cache_db.query.commands.install import closures_in, mirror_commands
from spack_cache_db.query.commands.load import installations_of
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.match.gone import gone_beside
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import json_text
from spack_cache_db.query.stored.binary import (
    configurations_beginning,
    specs_in_scope,
)
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.query.stored.dependency_trees import Trees, trees_of
from spack_cache_db.query.stored.gone import Gone
from spack_cache_db.query.stored.graph import (
    Node,
    direct_dependents,
    read_needs,
    read_nodes,
    recorded_specs,
)
from spack_cache_db.query.stored.listings import (
    Listing,
    StoredSpec,
    contradictions_of,
    listings_of,
    stored_spec,
)
from spack_cache_db.site.charts.records import Share
from spack_cache_db.site.data_links import data_links
from spack_cache_db.site.filters import (
    Narrowing,
    Pagination,
    paginated,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.configurations import (
    MOST_NODES,
    ComparedSpec,
    compared_specs,
)
from spack_cache_db.site.pages.missing import missing
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site

MOST_OTHERS = 100
"""Other specs of the configuration on one page."""
MOST_ROWS = 1_500
"""Limit of the dependencies on one page; the canned queries return all."""
MOST_CANDIDATES = 50
"""Limit of the specs that a short hash lists."""
MOST_DEPENDENTS = 50
"""Dependents on the page of a spec."""


@dataclass(frozen=True, slots=True)
class SpecPage:
    """The content of the page of a spec.

    Attributes:
        otherwise: paths of pages and indexes that contradict the stored data, and their
            messages.
        trees: dependencies; None without a record in an index.
        needed_by: the first direct dependents, at most one more than `MOST_DEPENDENTS`.
        others: specs of the same configuration, current ones first.
        gone_others: those that their mirror has lost, which `others` leaves out.
        release: the release that the reader chose, if it lists the spec.
    """

    node: Node
    configuration: Configuration
    spec: StoredSpec
    listings: tuple[Listing, ...]
    otherwise: tuple[tuple[str, str], ...]
    trees: Trees | None
    needed_by: tuple[Node, ...]
    other_count: int
    others: tuple[ComparedSpec, ...]
    gone_others: Gone | None
    window: Pagination
    release: str | None
    installed: tuple[Commands, ...]
    install: Commands | None

    @property
    def shares(self) -> tuple[Share, ...]:
        """Where Spack takes the link and run dependencies from; none if the database
        does not record them, or if nothing is to be installed.
        """
        closures = () if self.install is None else self.install.closures
        if len(closures) != 1 or not closures[0].is_known:
            return ()
        release = closures[0].binary.release
        counts: Counter[str] = Counter()
        for member in closures[0].members[1:]:
            if member.external is not None:
                counts["pale"] += 1
            elif member.release is None:
                counts["warning"] += 1
            else:
                counts["good" if member.release == release else "data"] += 1
        names = {
            "good": f"with a binary in {release}",
            "data": "with a binary in another mirror",
            "warning": "to build from source",
            "pale": "of the system",
        }
        return tuple(
            Share(name, counts[kind], kind)
            for kind, name in names.items()
            if counts[kind]
        )

    @property
    def has_stacks(self) -> bool:
        """Whether any release lists the binary in a stack."""
        return any(listing.stacks for listing in self.listings)

    @property
    def has_sizes(self) -> bool:
        """Whether the size of its binary is known in a release."""
        return any(listing.size != "-" for listing in self.listings)

    @property
    def has_tarballs(self) -> bool:
        """Whether the address of its tarball is known in a release."""
        return any(listing.tarball for listing in self.listings)


def binary(site: Site, request: PageRequest, hash: str) -> PageResponse:
    """Return `/spec/<hash>`; for the beginning of a hash, a redirect or the specs that
    match.
    """
    if not is_hash_prefix(hash):
        return missing(site, request, "spec", hash)

    # A full hash has a page.
    number = request.args.get("page")
    page = load_spec(site.lookups, hash, number, request.args.get("release"))
    if page is not None:
        # Specs that only other specs refer to have no listing.
        table = "build_listings" if page.listings else "specs"
        narrowing = Narrowing.parse(request.pairs)
        return site.page(
            request,
            "spec.html",
            page=page,
            links=data_links(site.settings.route, table, [("hash", hash)]),
            narrowing=replace(narrowing, release=page.release),
        )

    # The beginning of one leads to the only spec, or to several.
    candidates = configurations_beginning(site.lookups, hash, MOST_CANDIDATES)
    if not candidates:
        return missing(site, request, "spec", hash)
    if len(candidates) == 1:
        full_hash, _ = candidates[0]
        return site.redirect(f"/spec/{full_hash}", request.pairs)
    return site.page(request, "candidates.html", prefix=hash, candidates=candidates)


def is_hash_prefix(text: str) -> bool:
    """Return whether a text can be a hash or the start of one."""
    return re.fullmatch("[a-z2-7]{7,32}", text) is not None


def load_spec(
    lookups: Lookups, dag_hash: str, page: str | None = None, release: str | None = None
) -> SpecPage | None:
    """Return the page of the spec with this full hash; None if there is none.

    `page` counts pages of other specs. The commands install from `release`, if that
    lists the spec.
    """
    conn = lookups.conn
    stored = stored_spec(conn, dag_hash)
    if stored is None:
        return None
    configuration = _configuration_of(lookups, stored)

    # Where it is listed; an installation is no release to install from.
    listings = listings_of(conn, dag_hash)
    releases = [listing.release for listing in listings if listing.kind != INSTALLED]
    chosen = release if release in releases else None

    # The other specs of the configuration, on this page.
    specs = specs_in_scope(conn, [stored.configuration], ())
    same = specs.get(stored.configuration, [])
    every_other = [other for other in same if other.id != stored.id]
    window = paginated(len(every_other), page, MOST_OTHERS)
    others = every_other[window.rows]

    # Its dependencies, and how those of the others differ, if an index has them.
    recorded = recorded_specs(conn, [stored.id, *(other.id for other in others)])
    trees = None
    differing = {}
    if stored.id in recorded:
        own_needs = read_needs(lookups, [stored.id], MOST_NODES)
        nodes = read_nodes(conn, own_needs.edges)
        trees = trees_of(own_needs, nodes, stored.id, MOST_ROWS)
        every_need = read_needs(lookups, recorded, MOST_NODES)
        differing = differences(lookups, every_need, stored.id, recorded[1:])

    # One dependent more than the page shows tells that there are others.
    dependents = direct_dependents(conn, stored.id, MOST_DEPENDENTS + 1)
    closure = closures_in(lookups, [stored.id], chosen)[stored.id]
    return SpecPage(
        node=read_nodes(conn, [stored.id])[stored.id],
        configuration=configuration,
        spec=stored,
        listings=listings,
        otherwise=contradictions_of(conn, dag_hash),
        trees=trees,
        needed_by=tuple(read_nodes(conn, dependents).values()),
        other_count=len(every_other),
        others=compared_specs(lookups, others, differences=differing),
        gone_others=gone_beside(lookups, stored.id, stored.configuration),
        window=window,
        release=chosen,
        installed=installations_of(conn, configuration.package, dag_hash),
        install=mirror_commands(lookups, closure),
    )


def _configuration_of(lookups: Lookups, stored: StoredSpec) -> Configuration:
    (row,) = configurations_by_id(lookups, [stored.configuration])
    return row.configuration


def binary_json(site: Site, request: PageRequest, hash: str) -> PageResponse:
    """Return `/spec/<hash>.json`: a binary, and how to install it; a short hash
    redirects.
    """
    record = spec_record(site.lookups, hash, request.args.get("release"))
    if record is not None:
        return data(json_text(record), "json")
    if is_hash_prefix(hash):
        candidates = configurations_beginning(site.lookups, hash, 2)
        if len(candidates) == 1 and candidates[0][0] != hash:
            full_hash, _ = candidates[0]
            return site.redirect(f"/spec/{full_hash}.json", request.pairs)
    message = f"no spec in this database has the hash {hash!r}: give all 32 characters"
    return refused(message, "json", 404)


def spec_record(
    lookups: Lookups, dag_hash: str, release: str | None = None
) -> dict[str, Any] | None:
    """Return the object of `/spec/<hash>.json`; None if no spec has this full hash.

    Its keys are those of `find --hashes --json`, and `install` is that of
    `find --install --json`.
    """
    conn = lookups.conn
    stored = stored_spec(conn, dag_hash)
    if stored is None:
        return None
    configuration = _configuration_of(lookups, stored)
    releases = [listing.release for listing in listings_of(conn, dag_hash)]
    chosen = release if release in releases else None
    node = read_nodes(conn, [stored.id])[stored.id]
    plan = plan_of_spec(lookups, stored.id, configuration, chosen)
    return {
        **configuration._asdict(),
        "hash": dag_hash,
        "kind": node.kind,
        "releases": releases,
        "stacks": stored.stacks,
        "first_seen": stored.first_seen,
        "last_seen": stored.last_seen,
        "is_gone": node.is_gone,
        "install": None if plan is None else plan.as_dict(),
    }
