"""Chooses the documents that are built, sorts them, and refuses others that contradict
them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from spack_cache_db.errors import Fault
from spack_cache_db.releases import sort_releases
from spack_cache_db.sources.facts import Document, ModuleFacts, Refusal
from spack_cache_db.sources.frames import Frame, has_different_values


def is_installation(document: Document) -> bool:
    """Return whether a document is the index of an installation."""
    return document.index_facts is not None and document.index_facts.is_installed


def installed_releases(documents: Iterable[Document]) -> set[str]:
    """Return the releases that are installations."""
    return {document.release for document in documents if is_installation(document)}


def consistent_documents(
    documents: Sequence[Document], listings: Frame, hashes: Sequence[str]
) -> tuple[list[int], list[Refusal]]:
    """Return the numbers of the documents that are built, and the refusals of others.

    A release has one page of a package, and one package that lists a spec. A stack of a
    release has one index, because an index lists the whole stack. Indexes of one mirror
    belong together, and so do installations whose release has a name: one may be the
    upstream of the other. The first document by path is chosen, but an index with the
    address of its mirror comes before others. A document with the same bytes is
    skipped.

    Args:
        documents: all documents; their numbers count from 1.
        listings: the listings of all documents.
        hashes: the hash of each spec; that of spec 1 is the first one.
    """
    chosen: list[int] = []
    refusals: list[Refusal] = []
    first_with: dict[_Claim, Document] = {}
    for number in sorted(
        range(1, len(documents) + 1),
        key=lambda number: _preference(documents[number - 1]),
    ):
        document = documents[number - 1]
        claim = _claim(document)
        first = document
        if claim is not None:
            first = first_with.setdefault(claim, document)
        if first is document or _belong_together(first, document):
            chosen.append(number)
        elif first.sha256 != document.sha256:
            refusals.append(_not_alone(document, first))

    # Refusals that depend on which documents were chosen.
    refused = _with_shared_hashes(documents, chosen, listings, hashes)
    refused |= _among_installations(documents, chosen)
    consistent = [number for number in chosen if number not in refused]
    return consistent, refusals + list(refused.values())


class _Claim(NamedTuple):
    """What one document of a release can have: the page of a package, or the index of
    a stack.
    """

    release: str
    package: str | None = None
    stack: str | None = None


def _claim(document: Document) -> _Claim | None:
    """Return the claim of a document; None for one spec file, of which a stack may have
    many.
    """
    if document.page:
        return _Claim(document.release, package=document.page.package)
    facts = document.index_facts
    if facts is not None and facts.whole is not None:
        return _Claim(document.release, stack=facts.stack)
    return None


class _Preference(NamedTuple):
    """Sorts documents with one claim; the first one is chosen."""

    is_index_without_url: bool
    path: str
    location: str


def _preference(document: Document) -> _Preference:
    facts = document.index_facts
    is_index_without_url = facts is not None and facts.url is None
    return _Preference(is_index_without_url, document.path, document.location)


def _belong_together(first: Document, second: Document) -> bool:
    """Return whether two documents are of one mirror, or two installations."""
    facts = first.index_facts
    other_facts = second.index_facts
    if facts is None or other_facts is None:
        return False
    if (
        is_installation(first)
        and is_installation(second)
        and facts.is_named
        and other_facts.is_named
    ):
        # The same installation twice is skipped.
        return first.sha256 != second.sha256
    return facts.whole == other_facts.whole


def _not_alone(document: Document, first: Document) -> Refusal:
    """Return the refusal of a second page of a package, or a second index of a
    stack.
    """
    subject = ""
    after = ""
    if document.page:
        subject = f"page of {document.page.package} in"
        after = ", expected one page per package and release"
    elif is_installation(document) and is_installation(first):
        subject = "installation called"
        after = "; name each (--installation NAME=PATH), or both alike if one is an upstream"
    elif document.index_facts:
        subject = f"index of the stack {document.index_facts.stack} in"
        after = ", expected one index per release and stack (--release, --stack)"
    return Refusal(document, first, f"another {subject} {document.release} than", after)


def _among_installations(
    documents: Sequence[Document], chosen: Iterable[int]
) -> dict[int, Refusal]:
    """Return refusals of documents in an installation's release that are not
    installations, by number.
    """
    installations = {}
    others = []
    for number in chosen:
        document = documents[number - 1]
        if is_installation(document):
            installations[document.release] = document
        else:
            others.append(number)
    refused = {}
    for number in others:
        document = documents[number - 1]
        installation = installations.get(document.release)
        if installation is not None:
            before = f"is of the release {document.release}, as is the installed tree"
            after = "; expected another release (--release)"
            refused[number] = Refusal(document, installation, before, after)
    return refused


class _PageSpec(NamedTuple):
    """A spec of a page; sorted by release, package, and preference of the page."""

    release: str
    package: str
    preference: _Preference
    number: int
    dag_hash: str


def _with_shared_hashes(
    documents: Sequence[Document],
    chosen: Iterable[int],
    listings: Frame,
    hashes: Sequence[str],
) -> dict[int, Refusal]:
    """Return refusals of pages with a hash that another package lists in the same
    release, by number.
    """
    # Two packages have two configurations, so few specs are in question.
    varies = has_different_values(
        listings["spec"], listings["configuration"], len(hashes)
    )
    doubtful = listings.where(varies[listings["spec"]])
    chosen_numbers = set(chosen)
    rows = []
    for number, spec in doubtful.rows("document", "spec"):
        document = documents[number - 1]
        if document.page and number in chosen_numbers:
            rows.append(
                _PageSpec(
                    document.release,
                    document.page.package,
                    _preference(document),
                    number,
                    hashes[spec - 1],
                )
            )

    # The first page that lists a hash owns it; another page with the hash is refused.
    owner: dict[tuple[str, str], Document] = {}
    refused: dict[int, Refusal] = {}
    for number, group in groupby(sorted(rows), key=attrgetter("number")):
        page = documents[number - 1]
        listed = [(row.release, row.dag_hash) for row in group]
        shared = [
            release_and_hash for release_and_hash in listed if release_and_hash in owner
        ]
        if shared:
            _, dag_hash = shared[0]
            before = f"lists the spec {dag_hash}, which"
            after = " lists in the same release; expected one package"
            refused[number] = Refusal(page, owner[shared[0]], before, after)
        else:
            for release_and_hash in listed:
                owner[release_and_hash] = page
    return refused


def in_order(
    documents: Sequence[Document], chosen: Collection[int], first: str | None
) -> tuple[list[int], list[str]]:
    """Return the chosen documents and their releases, sorted as in `Merged`.

    Args:
        documents: all documents; their numbers count from 1.
        chosen: the numbers of the chosen ones.
        first: the release that comes first; by default, installations do.
    """
    # Releases. Installations come before build caches.
    chosen_documents = [documents[number - 1] for number in chosen]
    leading = [first] if first else []
    leading += sorted(installed_releases(chosen_documents))
    releases = sort_releases(
        {document.release for document in chosen_documents}, leading
    )
    position = {name: at for at, name in enumerate(releases)}

    def page_order(number: int) -> tuple[int, str]:
        document = documents[number - 1]
        package = document.page.package if document.page else ""
        return position[document.release], package

    def index_order(number: int) -> tuple[int, str, str, str]:
        document = documents[number - 1]
        at = position[document.release]
        return at, document.path, document.sha256, document.location

    # Pages, then indexes.
    pages = [number for number in chosen if documents[number - 1].page]
    indexes = [number for number in chosen if not documents[number - 1].page]
    numbers = sorted(pages, key=page_order) + sorted(indexes, key=index_order)
    return numbers, releases


def modules_of_installations(
    modules: Iterable[ModuleFacts], installations: Collection[str]
) -> list[ModuleFacts]:
    """Return the modules of these installations, each once; unnamed ones are of the
    only one.

    Spack's list has the hashes of modules, and that of Lmod the modules to load first.

    Args:
        modules: the modules of all lists.
        installations: the releases of the installations.
    """
    only = None
    if len(installations) == 1:
        (only,) = installations
    placed = set()
    for module in modules:
        release = module.release or only
        if release in installations:
            placed.add(module._replace(release=release))

    # The modules to load first, by module: each list with a module may name them.
    parents: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
    for module in placed:
        if module.parents:
            parents[module.release, module.tree, module.name].add(module.parents)

    complete = set()
    for module in placed:
        of_others = parents.get((module.release, module.tree, module.name))
        if of_others and not module.parents:
            module = module._replace(parents=min(of_others))
        complete.add(module)
    return list(complete)


def module_faults(
    lists: Iterable[tuple[str | None, str]], installations: Collection[str]
) -> Iterator[Fault]:
    """Yield a fault for each list of modules that is not of an installation."""
    names = ", ".join(sorted(installations))
    for release, path in lists:
        if release is None:
            # The modules are of the only installation.
            if len(installations) == 1:
                continue
            message = f"has modules of one of {len(installations)} installations"
        else:
            if release in installations:
                continue
            message = f"has modules of {release}, which is not an installation"
        message += f": use --modules NAME=PATH with one of {names}"
        if not installations:
            message = "has modules, but no installation is built: give one as well"
        yield Fault(path, 0, message)
