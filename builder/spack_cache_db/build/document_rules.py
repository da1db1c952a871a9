"""Which documents are kept: the rules that hold between pages, and those between indexes.

A package has one page in a release, and a spec belongs to one package there. A stack of a release
has one index, because an index lists all that the stack has: what a second one lacks could not be
told from what was removed. Indexes of one mirror belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from spack_cache_db.build.frames import Frame, pairs
from spack_cache_db.errors import Fault
from spack_cache_db.sources.columns import Document


def kept_pages(
    documents: Sequence[Document], listings: Frame, hashes: Sequence[str]
) -> tuple[list[int], list[Fault]]:
    """Return the numbers of the pages that are kept, and a fault for each that contradicts one.

    Of pages that contradict each other, the first by package and path is kept.
    """
    pages = [(number, each) for number, each in enumerate(documents, start=1) if each.page]
    pages.sort(key=lambda entry: (_subject(entry[1]), entry[1].path, entry[1].location))
    faults: list[Fault] = []
    kept: list[int] = []
    for number, page in pages:
        last = documents[kept[-1] - 1] if kept else None
        if last is None or _subject(last) != _subject(page):
            kept.append(number)
        elif last.sha256 != page.sha256:
            faults.append(_second_page(last, page))
    refused = _with_shared_hashes(documents, kept, listings, hashes)
    return [number for number in kept if number not in refused], [*faults, *refused.values()]


def kept_indexes(documents: Sequence[Document]) -> tuple[list[int], list[Fault]]:
    """Return the numbers of the other documents that are kept, and a fault for each refused one.

    Of indexes of the same release and stack, the first is kept: by path, but those that know the
    address of their mirror come first. The same bytes again are passed over.
    """
    others = [(number, each) for number, each in enumerate(documents, start=1) if not each.page]
    others.sort(key=lambda entry: _index_order(entry[1]))
    first: dict[tuple[str, str], Document] = {}
    kept: list[int] = []
    faults: list[Fault] = []
    for number, each in others:
        facts = each.index_facts
        if facts is None or facts.whole is None:
            kept.append(number)
            continue
        known = first.setdefault((each.release, facts.stack), each)
        if known.index_facts is not None and known.index_facts.whole == facts.whole:
            kept.append(number)
        elif known.sha256 != each.sha256:
            faults.append(_second_index(known, each, facts.stack))
    return sorted(kept), faults


def _subject(page: Document) -> tuple[str, str]:
    return page.release, page.page.package if page.page else ""


def _index_order(document: Document) -> tuple[bool, str, str]:
    facts = document.index_facts
    return facts is not None and facts.url is None, document.path, document.location


def _with_shared_hashes(
    documents: Sequence[Document], kept: list[int], listings: Frame, hashes: Sequence[str]
) -> dict[int, Fault]:
    """Refuse a page that lists a hash which another package lists in the same release."""
    place = {number: at for at, number in enumerate(kept)}
    rows = sorted(
        (place[number], hashes[spec - 1])
        for number, spec in _doubtful(listings).rows("document", "spec")
        if number in place
    )
    owner: dict[tuple[str, str], str] = {}
    refused: dict[int, Fault] = {}
    for at, group in groupby(rows, key=itemgetter(0)):
        page = documents[kept[at] - 1]
        listed = [(page.release, dag_hash) for _, dag_hash in group]
        shared = next((key for key in listed if key in owner), None)
        if shared:
            message = f"lists the spec {shared[1]}, which {owner[shared]} lists in the same release"
            fault = Fault(page.location, 0, f"{message}; expected one package")
            refused[kept[at]] = fault
        else:
            owner.update(dict.fromkeys(listed, page.location))
    return refused


def _doubtful(listings: Frame) -> Frame:
    """Return the listings of specs that have more than one configuration."""
    specs = pairs(listings["spec"], listings["configuration"]).first
    doubtful = specs[1:][specs[1:] == specs[:-1]]
    return listings.where(np.isin(listings["spec"], doubtful))


def _second_page(first: Document, second: Document) -> Fault:
    release, package = _subject(second)
    return Fault(
        second.location,
        0,
        f"another page of {package} in {release} than {first.location}, "
        "expected one page per package and release",
    )


def _second_index(first: Document, second: Document, stack: str) -> Fault:
    return Fault(
        second.location,
        0,
        f"another index of the stack {stack} in {second.release} than {first.location}, "
        "expected one index per release and stack (--release, --stack)",
    )
