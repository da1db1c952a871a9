"""Merges the columns of all units: each value once, each spec of a release once.

If documents contradict each other, the first document with a value wins, in the order of releases
and documents; the other values become differences. A hash has one configuration: that of the first
listing, or of the first record if no document lists it. The numbers of this module depend on how
the input was divided; `ids` assigns the final numbers, which do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spack_cache_db.build import NO_SNAPSHOTS, Snapshots
from spack_cache_db.build.frames import (
    Frame,
    Mask,
    Numbers,
    first_places,
    group_starts,
    joined,
    numbers,
    of_documents,
    packed,
    pairs,
    places,
    varying,
)
from spack_cache_db.build.history import Tables, dated
from spack_cache_db.build.known_packages import distinct_facts
from spack_cache_db.errors import Fault
from spack_cache_db.releases import sort_releases
from spack_cache_db.sources.columns import (
    DOCUMENTS,
    TABLES,
    Columns,
    Document,
    Interned,
    ModuleFacts,
    Origin,
    PackageFacts,
    Refusal,
    Stacks,
    TarballParts,
    Texts,
    tarball_url,
)


class Difference(NamedTuple):
    """Values of one column that contradict the stored values, row by row.

    Both frames have the columns `document`, `spec`, and `column` itself.
    """

    column: str
    stated: Frame
    stored: Frame


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged input; numbers refer to `documents`, `releases` and `texts`.

    The frames have the columns of `TABLES`.

    Attributes:
        documents: pages by release and package, then other documents by release and path.
        releases: in the order of `sort_releases`.
        document_release: the release of each document, by its number.
        listings: one row for each (release, spec), in that order, without configurations.
        document_listings: see `_of_documents`.
        edges: the dependencies of each spec in the first document that has a record of it.
        specs: each spec once, with the `document` that gives its `configuration`, the `release` of
            that document, its `stacks` in all releases, and `is_listed` if a release lists it.
        other_dependencies: records and edges of documents that give a spec other dependencies.
        packages: package data, sorted by package, with at most one of each form.
        modules: environment modules.
        origins: the options of databases in the input.
        left_out: the documents that these databases left out.
        snapshots: the snapshots that are new and those that are thinned.
    """

    documents: list[Document]
    releases: list[str]
    document_release: Numbers
    texts: Texts
    listings: Frame
    document_listings: Frame
    records: Frame
    edges: Frame
    specs: Frame
    differences: list[Difference]
    other_dependencies: tuple[Frame, Frame]
    packages: list[PackageFacts]
    modules: list[ModuleFacts]
    origins: list[Origin]
    left_out: list[tuple[str, str]]
    snapshots: Snapshots
    faults: list[Fault]
    refusals: list[Refusal]
    bytes_read: int


class Merge:
    """Collects the columns of units; `merged` joins them at the end."""

    def __init__(self) -> None:
        self._documents: list[Document] = []
        self._faults: list[Fault] = []
        self._packages: list[PackageFacts] = []
        self._old_packages: list[PackageFacts] = []
        self._modules: list[ModuleFacts] = []
        self._old_modules: list[ModuleFacts] = []
        self.origins: list[Origin] = []
        # The numbers of each database's documents, and the documents that it left out.
        self._left_out: list[tuple[range, list[tuple[str, str]]]] = []
        self._bytes_read = 0
        self._texts = Texts()
        self._parts: dict[str, list[Frame]] = {
            table: [Frame(**dict.fromkeys(columns, np.zeros(0, np.uint32)))]
            for table, columns in TABLES.items()
        }

    def add(self, columns: Columns) -> None:
        """Add the columns of one unit."""
        before = len(self._documents)
        self._documents += columns.documents
        self._faults += columns.faults
        added = range(before + 1, len(self._documents) + 1)
        if columns.origins:
            self._old_packages += columns.packages
            self._old_modules += columns.modules
            self._left_out.append((added, columns.left_out))
        else:
            self._packages += columns.packages
            self._modules += columns.modules
        self.origins += columns.origins
        self._bytes_read += columns.bytes_read
        values = {
            DOCUMENTS: added,
            **{
                name: map(getattr(self._texts, name).__getitem__, texts)
                for name, texts in columns.things.items()
            },
        }
        new = {name: np.array([0, *row_numbers], np.uint32) for name, row_numbers in values.items()}
        for table, arrays in columns.tables.items():
            if arrays["document"]:
                arrays_by_name = {
                    name: np.asarray(array, np.uint32) for name, array in arrays.items()
                }
                self._parts[table].append(Frame(**arrays_by_name).renumbered(TABLES[table], new))

    def merged(self, first: str | None = None, snapshots: Snapshots = NO_SNAPSHOTS) -> Merged:
        """Return all units as one; a document that contradicts another one is refused.

        Args:
            first: the release that comes before all others.
            snapshots: the options about snapshots.
        """
        documents, replaced = self._documents, set[int]()
        frames: Tables = {table: joined(self._parts.pop(table)) for table in TABLES}
        if snapshots != NO_SNAPSHOTS:
            old = {number for numbers, _ in self._left_out for number in numbers}
            documents, frames, snapshots, replaced = dated(documents, frames, old, snapshots)
        chosen, refusals = kept_documents(documents, frames["listings"], self._texts.hashes.things)
        chosen, releases = _in_order(documents, chosen, first)
        document_number = places(numbers(chosen), len(documents))
        documents = [documents[number - 1] for number in chosen]
        forms = {facts.form for facts in self._packages if snapshots.day}
        old_packages = (facts for facts in self._old_packages if facts.form not in forms)
        packages, refused = distinct_facts([*old_packages, *self._packages])
        listed_today = {module.release for module in self._modules if snapshots.day}
        old_modules = (
            module for module in self._old_modules if not listed_today & {module.release, None}
        )
        left_out = [rows for numbers, rows in self._left_out if replaced.isdisjoint(numbers)]
        release_number = {name: at for at, name in enumerate(releases, start=1)}
        document_release = numbers(
            [0, *[release_number[document.release] for document in documents]]
        )
        frames = {table: of_documents(frame, document_number) for table, frame in frames.items()}
        edges, other_dependencies = first_dependencies(frames["records"], frames["edges"])
        sorted_listings = _by_release_and_spec(frames["listings"], document_release)
        unlisted = frames["unlisted"]
        unlisted = unlisted.where(np.argsort(unlisted["document"], kind="stable"))
        specs = _specs(
            sorted_listings, [unlisted, frames["unrecorded"]], document_release, self._texts
        )
        deviating = [_deviating(frame, specs) for frame in (sorted_listings, unlisted)]
        sorted_listings = _of_own_configurations(sorted_listings, specs, self._texts)
        listings, differences = fold(sorted_listings, self._texts.stack_sets)
        return Merged(
            documents=documents,
            releases=releases,
            document_release=document_release,
            texts=self._texts,
            listings=listings,
            document_listings=_of_documents(sorted_listings, listings, documents),
            records=_with_listed(frames["records"], sorted_listings),
            edges=edges,
            specs=specs,
            differences=[*deviating, *differences],
            other_dependencies=other_dependencies,
            packages=packages,
            modules=[*self._modules, *old_modules],
            origins=self.origins,
            left_out=[*chain.from_iterable(left_out)],
            snapshots=snapshots,
            faults=self._faults,
            refusals=[*refusals, *refused],
            bytes_read=self._bytes_read,
        )


def is_tree(document: Document) -> bool:
    """Return whether a document is the index of an installed tree."""
    return document.index_facts is not None and document.index_facts.is_installed


def installed_releases(documents: Iterable[Document]) -> set[str]:
    """Return the releases that are installed trees."""
    return {document.release for document in documents if is_tree(document)}


def kept_documents(
    documents: Sequence[Document], listings: Frame, hashes: Sequence[str]
) -> tuple[list[int], list[Refusal]]:
    """Return the numbers of the kept documents, and the refusals of the others.

    A release has one page of a package, and one package that lists a spec. A stack of a release has
    one index, because an index lists the whole stack. Indexes of one mirror belong together, and so
    do installations whose release has a name: one may be the upstream of the other. The first
    document by path is kept, but an index with the address of its mirror comes before others. A
    document with the same bytes is skipped.
    """
    chosen: list[int] = []
    refusals: list[Refusal] = []
    claimed: dict[_Claim, Document] = {}
    for number, document in sorted(enumerate(documents, 1), key=lambda row: _preference(row[1])):
        claim = _claim(document)
        first = document if claim is None else claimed.setdefault(claim, document)
        if first is document or _belong_together(first, document):
            chosen.append(number)
        elif first.sha256 != document.sha256:
            refusals.append(_not_alone(document, first))
    refused = _with_shared_hashes(documents, chosen, listings, hashes)
    refused |= _among_trees(documents, chosen)
    return [number for number in chosen if number not in refused], [*refusals, *refused.values()]


def _preference(document: Document) -> tuple[object, ...]:
    """Return the sort key by which the first of several documents is kept."""
    facts = document.index_facts
    return facts is not None and facts.url is None, document.path, document.location


_Claim = tuple[str, str | None, str | None]


def _claim(document: Document) -> _Claim | None:
    """Return the release, package and stack that a document describes in full; None if in part."""
    facts = document.index_facts
    if document.page:
        return document.release, document.page.package, None
    return None if facts is None or facts.whole is None else (document.release, None, facts.stack)


def _not_alone(document: Document, first: Document) -> Refusal:
    """Return the refusal of a document with the same claim as the first one."""
    if document.page:
        what, rule = f"page of {document.page.package}", "page per package and release"
    elif is_tree(document) and is_tree(first):
        before = f"another installation called {document.release} than"
        after = "; name each (--installation NAME=PATH), or both alike if one is an upstream"
        return Refusal(document, first, before, after)
    else:
        stack = document.index_facts.stack if document.index_facts else ""
        what = f"index of the stack {stack}"
        rule = "index per release and stack (--release, --stack)"
    before = f"another {what} in {document.release} than"
    return Refusal(document, first, before, f", expected one {rule}")


def _belong_together(one: Document, other: Document) -> bool:
    """Return whether two documents are of one mirror, or two installations."""
    facts, more = one.index_facts, other.index_facts
    if facts is None or more is None:
        return False
    if is_tree(one) and is_tree(other) and facts.is_named and more.is_named:
        return one.sha256 != other.sha256
    return facts.whole == more.whole


def _among_trees(documents: Sequence[Document], chosen: list[int]) -> dict[int, Refusal]:
    """Return refusals of documents in an installation's release that are not installations."""
    chosen_documents = [documents[number - 1] for number in chosen]
    trees = {document.release: document for document in chosen_documents if is_tree(document)}
    refused: dict[int, Refusal] = {}
    if not trees:
        return refused
    for number, document in zip(chosen, chosen_documents, strict=True):
        if document.release in trees and not is_tree(document):
            before = f"is of the release {document.release}, as is the installed tree"
            after = "; expected another release (--release)"
            refused[number] = Refusal(document, trees[document.release], before, after)
    return refused


def _with_shared_hashes(
    documents: Sequence[Document], chosen: list[int], listings: Frame, hashes: Sequence[str]
) -> dict[int, Refusal]:
    """Return refusals of pages with a hash that another package lists in the same release."""
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
        shared = next((key for key in claims if key in owner), None)
        if shared:
            after = " lists in the same release; expected one package"
            refused[number] = Refusal(
                page, owner[shared], f"lists the spec {shared[1]}, which", after
            )
        else:
            owner.update(dict.fromkeys(claims, page))
    return refused


def _in_order(
    documents: Sequence[Document], chosen: list[int], first: str | None
) -> tuple[list[int], list[str]]:
    """Return the documents that are kept, and their releases, sorted as in `Merged`.

    Installed trees come before build caches.
    """
    trees = installed_releases(documents[number - 1] for number in chosen)
    foremost = [*([first] if first else []), *sorted(trees)]
    releases = sort_releases({documents[number - 1].release for number in chosen}, foremost)
    position = {name: at for at, name in enumerate(releases)}

    def order(number: int) -> tuple[object, ...]:
        document = documents[number - 1]
        at = position[document.release]
        if document.page:
            return False, at, document.page.package
        return True, at, document.path, document.sha256, document.location

    return sorted(chosen, key=order), releases


def _by_release_and_spec(listings: Frame, document_release: Numbers) -> Frame:
    """Return listings with their `release`, in the order of release, spec and document."""
    listings = listings.having(release=document_release[listings["document"]])
    keys = packed(listings["release"], listings["spec"])
    order = np.argsort(keys)
    if len(group_starts(keys[order])) < len(keys):
        order = np.lexsort((listings["document"], keys))
    return listings.where(order)


def _with_listed(records: Frame, listings: Frame) -> Frame:
    """Return records with `is_listed`: whether their documents list the specs."""
    keys, listed_keys = (packed(frame["document"], frame["spec"]) for frame in (records, listings))
    return records.having(is_listed=np.isin(keys, listed_keys).astype(np.uint8))


def _of_documents(stated: Frame, listings: Frame, documents: Sequence[Document]) -> Frame:
    """Return the listings of single documents, for specs that several documents list.

    The listings of pages are kept. A listing of an index is kept if its size or tarball differs
    from the folded listing; its stack is known anyway.

    Args:
        stated: the listings of all documents, in the order of release and spec.
        listings: the folded listings.
        documents: all documents.
    """
    keys = packed(stated["release"], stated["spec"])
    starts = group_starts(keys)
    sizes = np.diff(np.append(starts, len(keys)))
    is_shared = np.repeat(sizes > 1, sizes)
    shared = stated.where(is_shared)
    folded = listings.where(np.repeat(np.arange(len(starts)), sizes)[is_shared])
    is_page = np.array([False, *(document.page is not None for document in documents)])
    is_stated = is_page[shared["document"]]
    for name, meaning in TABLES["listings"].items():
        if meaning.is_optional:
            is_stated |= shared[name] != folded[name]
    shared = shared.where(is_stated)
    return shared.where(np.lexsort((shared["spec"], shared["document"])))


def fold(listings: Frame, stack_sets: Interned[Stacks]) -> tuple[Frame, list[Difference]]:
    """Return one listing for each spec of a release, and the differing values of documents.

    A listing has the stacks of all documents; its size and its tarball are from the first document
    that has them.

    Args:
        listings: in the order of release, spec and document.
        stack_sets: unions that are new are added.
    """
    keys = packed(listings["release"], listings["spec"])
    starts = group_starts(keys)
    if len(starts) == len(keys):
        return listings, []
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(keys))))
    folded = listings.where(starts)
    folded = folded.having(stacks=unions(stack_sets, listings["stacks"], starts))
    differences = []
    for name, meaning in TABLES["listings"].items():
        if not meaning.is_optional:
            continue
        column = listings[name]
        has_value = column > 0
        first = _first(has_value, starts)
        folded = folded.having(**{name: column[first]})
        # 0 means that a document lacks the value, which contradicts nothing. A binary may be in two
        # mirrors, so two tarballs do not contradict each other either.
        if name != "tarball":
            odd = has_value & (column != column[first][group])
            stored = listings.where(first[group][odd])
            differences.append(Difference(name, listings.where(odd), stored))
    return folded, differences


def _first(has_value: Mask, starts: Numbers) -> Numbers:
    """Return the first row of each group that has a value; the group's start if none has."""
    none = len(has_value)
    first = np.minimum.reduceat(np.where(has_value, np.arange(none), none), starts)
    return np.where(first < none, first, starts)


def unions(stack_sets: Interned[Stacks], sets: Numbers, starts: Numbers) -> Numbers:
    """Return the union of the sets of stacks of each group.

    Args:
        stack_sets: the numbers of all sets; unions that are new are added.
        sets: numbers of sets, group after group.
        starts: the first row of each group.
    """

    @cache
    def union(numbers: frozenset[int]) -> int:
        return stack_sets[
            tuple(sorted({name for at in numbers for name in stack_sets.things[at - 1]}))
        ]

    rows, ends = sets.tolist(), np.append(starts, len(sets)).tolist()
    groups = (frozenset(rows[start:end]) for start, end in pairwise(ends))
    return np.fromiter(map(union, groups), sets.dtype, len(starts))


def _specs(
    listings: Frame, unlisted_frames: Sequence[Frame], document_release: Numbers, texts: Texts
) -> Frame:
    """Return `Merged.specs`; the first row of a spec counts.

    Args:
        listings: in the order of release, spec and document.
        unlisted_frames: specs that documents do not list; the frame with the most data first.
        document_release: the release of each document.
        texts: unions of stacks that are new are added.
    """
    unlisted = joined(unlisted_frames)
    no_stacks = np.full_like(unlisted["spec"], texts.stack_sets[()])
    names = ("document", "spec", "configuration", "stacks")
    frame = Frame(**{name: listings[name] for name in names})
    rows = joined([frame, unlisted.having(stacks=no_stacks)])
    foremost = first_places(rows["spec"], len(texts.hashes))
    spec = np.flatnonzero(np.bincount(rows["spec"], minlength=1))
    foremost = foremost[spec]
    stacks, document = rows["stacks"][foremost], rows["document"][foremost]
    varies = varying(rows["spec"], rows["stacks"], len(texts.hashes))
    different = rows.where(varies[rows["spec"]])
    spec_of_set, sets, _ = pairs(different["spec"], different["stacks"])
    stacks[varies[spec]] = unions(texts.stack_sets, sets, group_starts(spec_of_set))
    return Frame(
        spec=spec,
        document=document,
        release=document_release[document],
        configuration=rows["configuration"][foremost],
        stacks=stacks,
        is_listed=(foremost < len(listings)).astype(np.uint8),
    )


def _deviating(stated: Frame, specs: Frame) -> Difference:
    """Return the rows whose configuration differs from that of `specs`."""
    at = np.searchsorted(specs["spec"], stated["spec"])
    odd = stated["configuration"] != specs["configuration"][at]
    return Difference("configuration", stated.where(odd), specs.where(at[odd]))


def _of_own_configurations(listings: Frame, specs: Frame, texts: Texts) -> Frame:
    """Return listings whose tarballs are relative to the configurations of their specs."""
    now = specs["configuration"][np.searchsorted(specs["spec"], listings["spec"])]
    odd = np.flatnonzero((listings["configuration"] != now) & (listings["tarball"] > 0))
    tarball = listings["tarball"].copy()
    configurations = texts.configurations.things
    parts = TarballParts(configurations)
    rows = listings.where(odd).having(now=now[odd]).rows("spec", "configuration", "tarball", "now")
    for row, (spec, stated, number, configuration) in zip(odd, rows, strict=True):
        dag_hash = texts.hashes.things[spec - 1]
        url = tarball_url(texts.tarballs.things[number - 1], configurations[stated - 1], dag_hash)
        tarball[row] = texts.tarballs[parts.split(url, configuration, dag_hash)]
    return Frame(
        **{name: listings[name] for name in listings.columns if name != "configuration"}
    ).having(tarball=tarball)


def first_dependencies(records: Frame, edges: Frame) -> tuple[Frame, tuple[Frame, Frame]]:
    """Return the edges of each spec's first record, and the records and edges that differ.

    A spec's edges are part of its hash, except build dependencies, which old indexes leave out.
    """
    keys = packed(records["spec"], records["document"])
    order = np.argsort(keys)
    keys = keys[order]
    of = np.searchsorted(keys, packed(edges["spec"], edges["document"]))
    sums = np.zeros(len(keys), np.uint64)
    np.add.at(sums, of, _mixed(edges))
    begins = np.diff(keys >> 32, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))
    odd = sums != sums[first]
    return edges.where(begins[of]), (records.where(order[odd]), edges.where(odd[of]))


def _mixed(edges: Frame) -> npt.NDArray[np.uint64]:
    """Return a hash of each edge; sums of these identify a set of edges."""
    key = packed(edges["dependency"], edges["use"]).astype(np.uint64)
    # The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every other.
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = key ^ (key >> np.uint64(31))
    return mixed
