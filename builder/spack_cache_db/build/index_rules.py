"""Which indexes are kept: the rule that holds between indexes, and for no other kind of document.

An index lists all that a stack of a release has, so there is one for each: what another one lacks
would not be told from what was removed. Indexes of one mirror belong together.
"""

from __future__ import annotations

from collections.abc import Sequence

from spack_cache_db.errors import Fault
from spack_cache_db.sources.columns import Document


def kept_indexes(documents: Sequence[Document]) -> tuple[list[int], list[Fault]]:
    """Return the numbers of all documents but pages that are kept, and a fault for each other.

    Of indexes of the same release and stack, the first is kept: by path, but those that know the
    address of their mirror come first. The same bytes again are passed over.
    """
    others = [(at, each) for at, each in enumerate(documents) if not each.page]
    others.sort(key=lambda entry: _order(entry[1]))
    first: dict[tuple[str, str], Document] = {}
    kept: list[int] = []
    faults: list[Fault] = []
    for at, each in others:
        facts = each.index_facts
        if facts is None or facts.whole is None:
            kept.append(at)
            continue
        known = first.setdefault((each.release, facts.stack), each)
        if known.index_facts is not None and known.index_facts.whole == facts.whole:
            kept.append(at)
        elif known.sha256 != each.sha256:
            faults.append(_contradiction(known, each, facts.stack))
    return sorted(kept), faults


def _order(document: Document) -> tuple[bool, str, str]:
    facts = document.index_facts
    return facts is not None and facts.url is None, document.path, document.location


def _contradiction(first: Document, second: Document, stack: str) -> Fault:
    return Fault(
        second.location,
        0,
        f"another index of the stack {stack} in {second.release} than {first.location}, "
        "expected one index per release and stack (--release, --stack)",
    )
