"""Badges: pictures with a fact, for a README or a wiki."""

from __future__ import annotations

from spack_cache_db.query.stored.gone import gone_of_package
from spack_cache_db.query.stored.origin import read_origin
from spack_cache_db.query.stored.package_data import newest_binary
from spack_cache_db.query.stored.totals import newest_snapshot, read_totals
from spack_cache_db.site.names_for_people import date_words
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.missing import missing
from spack_cache_db.site.site import Site
from spack_cache_db.site.words import vocabulary_of


def badge(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/badge/<package>.svg`, a picture for a README."""
    text = newest_binary(site.conn, package)
    if text is None and gone_of_package(site.conn, package) is not None:
        text = "gone from its mirror"
    if text is None:
        return missing(site, request, "package", package)
    return site.page(request, "badge.svg", label=package, text=text, kind="svg")


def site_badge(site: Site, request: PageRequest) -> PageResponse:
    """Return `/badge.svg`: how many binaries the build cache has, and the day of its
    newest snapshot.
    """
    lookups = site.lookups
    totals = lookups.once(read_totals, lambda: read_totals(lookups.conn))
    texts = [vocabulary_of(lookups.is_installed).counted(totals.specs)]
    day = newest_snapshot(lookups)
    if day is not None:
        texts.append(date_words(day))
    return site.page(
        request,
        "badge.svg",
        label=read_origin(lookups.conn).title,
        text=", ".join(texts),
        kind="svg",
    )


def release_badge(site: Site, request: PageRequest, release: str) -> PageResponse:
    """Return `/badge/release/<release>.svg`: how many binaries a release has."""
    record = site.lookups.release(release)
    if record is None:
        return missing(site, request, "release", release)
    words = vocabulary_of(site.lookups.is_installed)
    return site.page(
        request,
        "badge.svg",
        label=release,
        text=words.counted(record.spec_count),
        kind="svg",
    )
