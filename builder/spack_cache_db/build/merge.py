"""Columns of many units → one set of columns: each thing once, each spec of a release once.

Where documents contradict each other, the first one that knows is right, in the order of releases
and documents; what the others say becomes a difference. A hash has one configuration: that of the
first listing, or of the first record if no document lists it. The numbers here depend on how the
input was divided; `ids` gives the final ones, which do not.
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
    """Values of one column that documents give, and the stored values, row by row.

    Both frames have the columns `document`, `spec`, and `column` itself.
    """

    column: str
    said: Frame
    stored: Frame


@dataclass(frozen=True, slots=True)
class Merged:
    """The whole input; numbers refer to `documents`, `releases` and `texts`.

    The frames have the columns of `TABLES`.

    Attributes:
        documents: pages by release and package, then all others by release and path.
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
    """Takes columns unit by unit; `merged` joins them when all are there."""

    def __init__(self) -> None:
        self._documents: list[Document] = []
        self._faults: list[Fault] = []
        self._packages: list[PackageFacts] = []
        self._old_packages: list[PackageFacts] = []
        self._modules: list[ModuleFacts] = []
        self._old_modules: list[ModuleFacts] = []
        self.origins: list[Origin] = []
        # What each database left out, and the numbers of its documents.
        self._left_out: list[tuple[range, list[tuple[str, str]]]] = []
        self._bytes_read = 0
        self._texts = Texts()
        self._parts: dict[str, list[Frame]] = {
            table: [Frame(**dict.fromkeys(columns, np.zeros(0, np.uint32)))]
            for table, columns in TABLES.items()
        }

    def add(self, columns: Columns) -> None:
        """Add what one unit says."""
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
        known = {
            DOCUMENTS: added,
            **{
                name: map(getattr(self._texts, name).__getitem__, things)
                for name, things in columns.things.items()
            },
        }
        new = {name: np.array([0, *each], np.uint32) for name, each in known.items()}
        for table, arrays in columns.tables.items():
            if arrays["document"]:
                found = {name: np.asarray(each, np.uint32) for name, each in arrays.items()}
                self._parts[table].append(Frame(**found).renumbered(TABLES[table], new))

    def merged(self, first: str | None = None, snapshots: Snapshots = NO_SNAPSHOTS) -> Merged:
        """Join what was added; a page or an index that contradicts another one is refused.

        Args:
            first: the release that stands before all others.
            snapshots: the options about snapshots.
        """
        documents, replaced = self._documents, set[int]()
        whole: Tables = {table: joined(self._parts.pop(table)) for table in TABLES}
        if snapshots != NO_SNAPSHOTS:
            old = {number for numbers, _ in self._left_out for number in numbers}
            documents, whole, snapshots, replaced = dated(documents, whole, old, snapshots)
        kept, refusals = kept_documents(documents, whole["listings"], self._texts.hashes.things)
        kept, releases = _in_order(documents, kept, first)
        document_number = places(numbers(kept), len(documents))
        documents = [documents[number - 1] for number in kept]
        forms = {each.form for each in self._packages if snapshots.day}
        old_packages = (each for each in self._old_packages if each.form not in forms)
        packages, refused = distinct_facts([*old_packages, *self._packages])
        listed_today = {each.release for each in self._modules if snapshots.day}
        old_modules = (
            each for each in self._old_modules if not listed_today & {each.release, None}
        )
        left_out = [rows for numbers, rows in self._left_out if replaced.isdisjoint(numbers)]
        release_number = {name: at for at, name in enumerate(releases, start=1)}
        document_release = numbers([0, *[release_number[each.release] for each in documents]])
        whole = {table: of_documents(frame, document_number) for table, frame in whole.items()}
        edges, other_dependencies = first_dependencies(whole["records"], whole["edges"])
        listed = _by_release_and_spec(whole["listings"], document_release)
        unlisted = whole["unlisted"]
        unlisted = unlisted.where(np.argsort(unlisted["document"], kind="stable"))
        specs = _specs(listed, [unlisted, whole["unrecorded"]], document_release, self._texts)
        deviating = [_deviating(said, specs) for said in (listed, unlisted)]
        listed = _of_own_configurations(listed, specs, self._texts)
        listings, differences = fold(listed, self._texts.stack_sets)
        return Merged(
            documents=documents,
            releases=releases,
            document_release=document_release,
            texts=self._texts,
            listings=listings,
            document_listings=_of_documents(listed, listings, documents),
            records=_with_listed(whole["records"], listed),
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
    return {each.release for each in documents if is_tree(each)}


def kept_documents(
    documents: Sequence[Document], listings: Frame, hashes: Sequence[str]
) -> tuple[list[int], list[Refusal]]:
    """Return the numbers of the documents that are kept, and a refusal of each of the others.

    A release has one page of a package, and one package that lists a spec. A stack of a release has
    one index, because an index lists the whole stack; indexes of one mirror belong together. So do
    installations whose release was given by name: one may be the upstream of the other.
    The first document by path is kept, but an index that has the address of its mirror comes before
    others. A document with the same bytes is skipped.
    """
    kept: list[int] = []
    refusals: list[Refusal] = []
    claimed: dict[_Claim, Document] = {}
    for number, each in sorted(enumerate(documents, 1), key=lambda row: _preference(row[1])):
        claim = _claim(each)
        known = each if claim is None else claimed.setdefault(claim, each)
        if known is each or _belong_together(known, each):
            kept.append(number)
        elif known.sha256 != each.sha256:
            refusals.append(_not_alone(each, known))
    refused = _with_shared_hashes(documents, kept, listings, hashes)
    refused |= _among_trees(documents, kept)
    return [number for number in kept if number not in refused], [*refusals, *refused.values()]


def _preference(document: Document) -> tuple[object, ...]:
    """Return by what documents are sorted, of which the first is kept."""
    facts = document.index_facts
    return facts is not None and facts.url is None, document.path, document.location


_Claim = tuple[str, str | None, str | None]


def _claim(document: Document) -> _Claim | None:
    """Return of which release, and of which package or stack there, a document says all.

    None if it says a part of something.
    """
    facts = document.index_facts
    if document.page:
        return document.release, document.page.package, None
    return None if facts is None or facts.whole is None else (document.release, None, facts.stack)


def _not_alone(document: Document, known: Document) -> Refusal:
    """Return the refusal of a document that claims the same as another one."""
    if document.page:
        what, rule = f"page of {document.page.package}", "page per package and release"
    elif is_tree(document) and is_tree(known):
        before = f"another installation called {document.release} than"
        after = "; name each (--installation NAME=PATH), or both alike if one is an upstream"
        return Refusal(document, known, before, after)
    else:
        stack = document.index_facts.stack if document.index_facts else ""
        what = f"index of the stack {stack}"
        rule = "index per release and stack (--release, --stack)"
    before = f"another {what} in {document.release} than"
    return Refusal(document, known, before, f", expected one {rule}")


def _belong_together(one: Document, other: Document) -> bool:
    """Return whether two documents are of one mirror, or two installations."""
    facts, more = one.index_facts, other.index_facts
    if facts is None or more is None:
        return False
    if is_tree(one) and is_tree(other) and facts.is_named and more.is_named:
        return one.sha256 != other.sha256
    return facts.whole == more.whole


def _among_trees(documents: Sequence[Document], kept: list[int]) -> dict[int, Refusal]:
    """Refuse what is of the release of an installation and is not one itself."""
    trees = {each.release: each for each in (documents[at - 1] for at in kept) if is_tree(each)}
    refused: dict[int, Refusal] = {}
    if not trees:
        return refused
    for number in kept:
        each = documents[number - 1]
        if each.release in trees and not is_tree(each):
            before = f"is of the release {each.release}, as is the installed tree"
            after = "; expected another release (--release)"
            refused[number] = Refusal(each, trees[each.release], before, after)
    return refused


def _with_shared_hashes(
    documents: Sequence[Document], kept: list[int], listings: Frame, hashes: Sequence[str]
) -> dict[int, Refusal]:
    """Refuse a page that lists a hash which another package lists in the same release."""
    varies = varying(listings["spec"], listings["configuration"], len(hashes))
    doubtful, known = listings.where(varies[listings["spec"]]), {*kept}
    rows = sorted(
        (page.release, page.page.package, _preference(page), number, hashes[spec - 1])
        for number, spec in doubtful.rows("document", "spec")
        if number in known and (page := documents[number - 1]).page
    )
    owner: dict[tuple[str, str], Document] = {}
    refused: dict[int, Refusal] = {}
    for number, group in groupby(rows, key=itemgetter(3)):
        page = documents[number - 1]
        listed = [(page.release, row[-1]) for row in group]
        shared = next((key for key in listed if key in owner), None)
        if shared:
            after = " lists in the same release; expected one package"
            refused[number] = Refusal(
                page, owner[shared], f"lists the spec {shared[1]}, which", after
            )
        else:
            owner.update(dict.fromkeys(listed, page))
    return refused


def _in_order(
    documents: Sequence[Document], kept: list[int], first: str | None
) -> tuple[list[int], list[str]]:
    """Return the documents that are kept, in their order (see `Merged`), and all releases.

    What is installed stands before what could be installed.
    """
    trees = installed_releases(documents[number - 1] for number in kept)
    foremost = [*([first] if first else []), *sorted(trees)]
    releases = sort_releases({documents[number - 1].release for number in kept}, foremost)
    place = {name: at for at, name in enumerate(releases)}

    def order(number: int) -> tuple[object, ...]:
        each = documents[number - 1]
        at = place[each.release]
        if each.page:
            return False, at, each.page.package
        return True, at, each.path, each.sha256, each.location

    return sorted(kept, key=order), releases


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
    keys, listed = (packed(each["document"], each["spec"]) for each in (records, listings))
    return records.having(is_listed=np.isin(keys, listed).astype(np.uint8))


def _of_documents(said: Frame, listings: Frame, documents: Sequence[Document]) -> Frame:
    """Return what documents say of the listings that several of them share.

    All that a page says is kept; what an index says only if its size or tarball is another one than
    that of the folded listing, for its stack is known.

    Args:
        said: what all documents say, in the order of release and spec.
        listings: the same, folded.
        documents: all documents.
    """
    keys = packed(said["release"], said["spec"])
    starts = group_starts(keys)
    sizes = np.diff(np.append(starts, len(keys)))
    is_shared = np.repeat(sizes > 1, sizes)
    shared = said.where(is_shared)
    folded = listings.where(np.repeat(np.arange(len(starts)), sizes)[is_shared])
    is_page = np.array([False, *(each.page is not None for each in documents)])
    kept = is_page[shared["document"]]
    for name, meaning in TABLES["listings"].items():
        if meaning.is_optional:
            kept |= shared[name] != folded[name]
    shared = shared.where(kept)
    return shared.where(np.lexsort((shared["spec"], shared["document"])))


def fold(listings: Frame, stack_sets: Interned[Stacks]) -> tuple[Frame, list[Difference]]:
    """Return one listing for each spec of a release, and what documents say otherwise.

    A listing has the stacks of all documents; its size and its tarball are from the first document
    that knows them.

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
        known = column > 0
        first = _first(known, starts)
        folded = folded.having(**{name: column[first]})
        # 0 means that a document does not know the value, which contradicts nothing. A binary may
        # be in two mirrors, so two tarballs do not contradict each other either.
        if name != "tarball":
            odd = known & (column != column[first][group])
            stored = listings.where(first[group][odd])
            differences.append(Difference(name, listings.where(odd), stored))
    return folded, differences


def _first(known: Mask, starts: Numbers) -> Numbers:
    """Return the first place in each group where something is known; the group's start if none."""
    none = len(known)
    first = np.minimum.reduceat(np.where(known, np.arange(none), none), starts)
    return np.where(first < none, first, starts)


def unions(known: Interned[Stacks], sets: Numbers, starts: Numbers) -> Numbers:
    """Return the union of the sets of stacks of each group.

    Args:
        known: the numbers of all sets; unions that are new are added.
        sets: numbers of sets, group after group.
        starts: where each group starts.
    """

    @cache
    def union(numbers: frozenset[int]) -> int:
        return known[tuple(sorted({name for at in numbers for name in known.things[at - 1]}))]

    rows, ends = sets.tolist(), np.append(starts, len(sets)).tolist()
    groups = (frozenset(rows[start:end]) for start, end in pairwise(ends))
    return np.fromiter(map(union, groups), sets.dtype, len(starts))


def _specs(
    listings: Frame, others: Sequence[Frame], document_release: Numbers, texts: Texts
) -> Frame:
    """Return what is known of each spec (see `Merged`); the first row of a spec counts.

    Args:
        listings: in the order of release, spec and document.
        others: what documents know of specs without listing them, the richest frame first.
        document_release: the release of each document.
        texts: unions of stacks that are new are added.
    """
    unlisted = joined(others)
    no_stacks = np.full_like(unlisted["spec"], texts.stack_sets[()])
    names = ("document", "spec", "configuration", "stacks")
    listed = Frame(**{name: listings[name] for name in names})
    rows = joined([listed, unlisted.having(stacks=no_stacks)])
    foremost = first_places(rows["spec"], len(texts.hashes))
    spec = np.flatnonzero(np.bincount(rows["spec"], minlength=1))
    foremost = foremost[spec]
    stacks, document = rows["stacks"][foremost], rows["document"][foremost]
    varies = varying(rows["spec"], rows["stacks"], len(texts.hashes))
    different = rows.where(varies[rows["spec"]])
    found, sets, _ = pairs(different["spec"], different["stacks"])
    stacks[varies[spec]] = unions(texts.stack_sets, sets, group_starts(found))
    return Frame(
        spec=spec,
        document=document,
        release=document_release[document],
        configuration=rows["configuration"][foremost],
        stacks=stacks,
        is_listed=(foremost < len(listings)).astype(np.uint8),
    )


def _deviating(said: Frame, specs: Frame) -> Difference:
    """Return where a document names another configuration of a spec than the one that counts."""
    at = np.searchsorted(specs["spec"], said["spec"])
    odd = said["configuration"] != specs["configuration"][at]
    return Difference("configuration", said.where(odd), specs.where(at[odd]))


def _of_own_configurations(listings: Frame, specs: Frame, texts: Texts) -> Frame:
    """Return listings whose tarballs are relative to the configurations of their specs."""
    own = specs["configuration"][np.searchsorted(specs["spec"], listings["spec"])]
    odd = np.flatnonzero((listings["configuration"] != own) & (listings["tarball"] > 0))
    tarball = listings["tarball"].copy()
    configurations = texts.configurations.things
    parts = TarballParts(configurations)
    rows = listings.where(odd).having(own=own[odd]).rows("spec", "configuration", "tarball", "own")
    for place, (spec, said, number, configuration) in zip(odd, rows, strict=True):
        dag_hash = texts.hashes.things[spec - 1]
        url = tarball_url(texts.tarballs.things[number - 1], configurations[said - 1], dag_hash)
        tarball[place] = texts.tarballs[parts.split(url, configuration, dag_hash)]
    return Frame(
        **{name: listings[name] for name in listings.columns if name != "configuration"}
    ).having(tarball=tarball)


def first_dependencies(records: Frame, edges: Frame) -> tuple[Frame, tuple[Frame, Frame]]:
    """Return the edges that are kept, and the records and edges that say otherwise of a spec.

    A spec's edges are part of its hash, but for build dependencies, which old indexes leave out:
    the first document that has a record of a spec is right.
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
    """Return a number for each edge, such that sums of different sets of edges differ."""
    key = packed(edges["dependency"], edges["use"]).astype(np.uint64)
    # The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every other.
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = key ^ (key >> np.uint64(31))
    return mixed
