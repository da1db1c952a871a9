"""Chooses the documents that are built, and adds and removes the snapshots of a
history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from spack_cache_db.assembly.frames import Frame, varying
from spack_cache_db.errors import Fault
from spack_cache_db.releases import sort_releases
from spack_cache_db.sources.facts import Document, ModuleFacts, Refusal


def is_tree(document: Document) -> bool:
    """Return whether a document is the index of an installation."""
    return document.index_facts is not None and document.index_facts.is_installed


def installed_releases(documents: Iterable[Document]) -> set[str]:
    """Return the releases that are installations."""
    return {document.release for document in documents if is_tree(document)}


def consistent_documents(
    documents: Sequence[Document], listings: Frame, hashes: Sequence[str]
) -> tuple[list[int], list[Refusal]]:
    """Return the numbers of the documents that are built, and the refusals of others.

    A release has one page of a package, and one package that lists a spec. A stack of a
    release has one index, because an index lists the whole stack. Indexes of one mirror
    belong together, and so
    do installations whose release has a name: one may be the upstream of the other. The
    first
    document by path is chosen, but an index with the address of its mirror comes before
    others. A document with the same bytes is skipped.
    """
    chosen: list[int] = []
    refusals: list[Refusal] = []
    claimed: dict[tuple[str, str | None, str | None], Document] = {}
    for number, document in sorted(
        enumerate(documents, 1), key=lambda row: _preference(row[1])
    ):
        facts, first = document.index_facts, document
        if document.page:
            first = claimed.setdefault(
                (document.release, document.page.package, None), document
            )
        elif facts is not None and facts.whole is not None:
            first = claimed.setdefault((document.release, None, facts.stack), document)
        if first is document or _belong_together(first, document):
            chosen.append(number)
        elif first.sha256 != document.sha256:
            refusals.append(_not_alone(document, first))
    refused = _with_shared_hashes(documents, chosen, listings, hashes)
    refused |= _among_trees(documents, chosen)
    return [number for number in chosen if number not in refused], [
        *refusals,
        *refused.values(),
    ]


def _preference(document: Document) -> tuple[object, ...]:
    """Return the sort key by which the first of several documents is chosen."""
    facts = document.index_facts
    return facts is not None and facts.url is None, document.path, document.location


def _belong_together(first: Document, second: Document) -> bool:
    """Return whether two documents are of one mirror, or two installations."""
    facts, more = first.index_facts, second.index_facts
    if facts is None or more is None:
        return False
    if is_tree(first) and is_tree(second) and facts.is_named and more.is_named:
        return first.sha256 != second.sha256
    return facts.whole == more.whole


def _not_alone(document: Document, first: Document) -> Refusal:
    """Return the refusal of a second page of a package, or a second index of a
    stack.
    """
    subject = after = ""
    if document.page:
        subject = f"page of {document.page.package} in"
        after = ", expected one page per package and release"
    elif is_tree(document) and is_tree(first):
        subject = "installation called"
        after = "; name each (--installation NAME=PATH), or both alike if one is an upstream"
    elif document.index_facts:
        subject = f"index of the stack {document.index_facts.stack} in"
        after = ", expected one index per release and stack (--release, --stack)"
    return Refusal(document, first, f"another {subject} {document.release} than", after)


def _among_trees(
    documents: Sequence[Document], chosen: list[int]
) -> dict[int, Refusal]:
    """Return refusals of documents in an installation's release that are not
    installations.
    """
    trees = {
        documents[number - 1].release: documents[number - 1]
        for number in chosen
        if is_tree(documents[number - 1])
    }
    return {
        number: Refusal(
            document,
            trees[document.release],
            f"is of the release {document.release}, as is the installed tree",
            "; expected another release (--release)",
        )
        for number in chosen
        if (document := documents[number - 1]).release in trees
        and not is_tree(document)
    }


def _with_shared_hashes(
    documents: Sequence[Document],
    chosen: list[int],
    listings: Frame,
    hashes: Sequence[str],
) -> dict[int, Refusal]:
    """Return refusals of pages with a hash that another package lists in the same
    release.
    """
    varies = varying(listings["spec"], listings["configuration"], len(hashes))
    doubtful, chosen_numbers = listings.where(varies[listings["spec"]]), {*chosen}
    rows = sorted(
        (page.release, page.page.package, _preference(page), number, hashes[spec - 1])
        for number, spec in doubtful.rows("document", "spec")
        if number in chosen_numbers and (page := documents[number - 1]).page
    )
    owner: dict[tuple[str, str], Document] = {}
    refused: dict[int, Refusal] = {}
    for number, group in groupby(rows, key=itemgetter(3)):
        page = documents[number - 1]
        claims = [(page.release, row[-1]) for row in group]
        if shared := next((claim for claim in claims if claim in owner), None):
            before = f"lists the spec {shared[1]}, which"
            after = " lists in the same release; expected one package"
            refused[number] = Refusal(page, owner[shared], before, after)
        else:
            owner.update(dict.fromkeys(claims, page))
    return refused


def in_order(
    documents: Sequence[Document], chosen: list[int], first: str | None
) -> tuple[list[int], list[str]]:
    """Return the chosen documents and their releases, sorted as in `Merged`.

    Installations come before build caches.
    """
    trees = installed_releases(documents[number - 1] for number in chosen)
    leading = [*([first] if first else []), *sorted(trees)]
    releases = sort_releases(
        {documents[number - 1].release for number in chosen}, leading
    )
    position = {name: at for at, name in enumerate(releases)}

    def order(number: int) -> tuple[object, ...]:
        document = documents[number - 1]
        at = position[document.release]
        if document.page:
            return False, at, document.page.package
        return True, at, document.path, document.sha256, document.location

    return sorted(chosen, key=order), releases


def placed(modules: Iterable[ModuleFacts], trees: Collection[str]) -> list[ModuleFacts]:
    """Return the modules of these installations, each once; unnamed ones are of the
    only one.

    Spack's list has the hashes of modules, and that of Lmod the modules to load first.
    """
    only = next(iter(trees)) if len(trees) == 1 else None
    distinct = {module._replace(release=module.release or only) for module in modules}
    of_trees = [module for module in distinct if module.release in trees]
    parents: dict[tuple[str | None, ...], set[str]] = {}
    for module in of_trees:
        if module.parents:
            parents.setdefault((module.release, module.tree, module.name), set()).add(
                module.parents
            )
    placed_modules = set()
    for module in of_trees:
        others = parents.get((module.release, module.tree, module.name), set())
        if not module.parents and others:
            module = module._replace(parents=min(others))
        placed_modules.add(module)
    return list(placed_modules)


def unplaced(
    lists: Iterable[tuple[str | None, str]], trees: Collection[str]
) -> Iterator[Fault]:
    """Yield a fault for each list of modules that is not of an installation."""
    names = ", ".join(sorted(trees))
    for release, path in lists:
        if release in trees or (release is None and len(trees) == 1):
            continue
        message = f"has modules of {release}, which is not an installation"
        if release is None:
            message = f"has modules of one of {len(trees)} installations"
        if names:
            yield Fault(
                path, 0, f"{message}: use --modules NAME=PATH with one of {names}"
            )
        else:
            yield Fault(
                path, 0, "has modules, but no installation is built: give one as well"
            )
