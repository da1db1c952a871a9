"""Which pages are kept: the rules that hold between pages, and for no other kind of document.

A package has one page in a release, and a spec is of one package there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from spack_cache_db.build.arrays import pairs, rows_of
from spack_cache_db.build.listings import Listings
from spack_cache_db.errors import Fault
from spack_cache_db.sources.columns import Document


def kept_pages(
    documents: Sequence[Document], listings: Listings, hashes: Sequence[str]
) -> tuple[list[int], list[Fault]]:
    """Return the numbers of the pages that are kept, and a fault for each that contradicts one.

    Of pages that contradict each other, the first by package and path is kept.
    """
    pages = [(at, each) for at, each in enumerate(documents) if each.page]
    pages.sort(key=lambda entry: (_subject(entry[1]), entry[1].path, entry[1].location))
    faults: list[Fault] = []
    kept: list[int] = []
    for at, page in pages:
        last = documents[kept[-1]] if kept else None
        if last is None or _subject(last) != _subject(page):
            kept.append(at)
        elif last.sha256 != page.sha256:
            faults.append(_contradiction(last, page))
    refused = _with_shared_hashes(documents, kept, listings, hashes)
    return [at for at in kept if at not in refused], [*faults, *refused.values()]


def _subject(page: Document) -> tuple[str, str]:
    return page.release, page.page.package if page.page else ""


def _with_shared_hashes(
    documents: Sequence[Document], kept: list[int], listings: Listings, hashes: Sequence[str]
) -> dict[int, Fault]:
    """Refuse a page that lists a hash which another package lists in the same release."""
    place = {at: nth for nth, at in enumerate(kept)}
    rows = sorted((place[at], hashes[spec]) for at, spec in _doubtful(listings) if at in place)
    owner: dict[tuple[str, str], str] = {}
    refused: dict[int, Fault] = {}
    for nth, group in groupby(rows, key=itemgetter(0)):
        page = documents[kept[nth]]
        listed = [(page.release, dag_hash) for _, dag_hash in group]
        shared = next((key for key in listed if key in owner), None)
        if shared:
            message = f"lists the spec {shared[1]}, which {owner[shared]} lists in the same release"
            fault = Fault(page.location, 0, f"{message}; expected one package")
            refused[kept[nth]] = fault
        else:
            owner.update(dict.fromkeys(listed, page.location))
    return refused


def _doubtful(listings: Listings) -> list[tuple[int, ...]]:
    """Return (document, spec) of the specs that have more than one configuration."""
    specs = pairs(listings.spec, listings.configuration).first
    doubtful = specs[1:][specs[1:] == specs[:-1]]
    if not len(doubtful):
        return []
    chosen = listings.where(np.isin(listings.spec, doubtful))
    return [*rows_of(chosen.document, chosen.spec)]


def _contradiction(first: Document, second: Document) -> Fault:
    release, package = _subject(second)
    return Fault(
        second.location,
        0,
        f"another page of {package} in {release} than {first.location}, "
        "expected one page per package and release",
    )
