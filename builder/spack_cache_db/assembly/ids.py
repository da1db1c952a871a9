"""Assigns final ids, which depend only on the content of the input.

Versions of a package are in Spack's order of preference, the preferred one last;
compilers in Spack's order, releases from branch to oldest snapshot, other names by
text. Specs are sorted by configuration, first release and hash, so that rows of one
query are close together in the file, and current ones come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from spack_cache_db.assembly.frames import (
    Frame,
    Members,
    Numbers,
    members,
    packed,
    places,
)
from spack_cache_db.assembly.merge import Merged
from spack_cache_db.model import Configuration
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.sources.facts import Document
from spack_cache_db.sources.writer import Texts
from spack_cache_db.spack.normal_forms import split_compiler
from spack_cache_db.spack.versions import preference, version_key

Ids = dict[str, dict[Any, int]]
"""The ids of values in ascending order, by table or dictionary."""

_DICTIONARIES = ("configurations", "stack_sets", "tarballs", "nodes", "uses")
"""The dictionaries of `Texts` whose values are rows; only values in use get an id."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Merged columns with final ids.

    Attributes:
        ids: the ids of all names and of `_DICTIONARIES`.
        texts: sizes and other texts, which keep their numbers.
        documents: all documents; the pages come first, by id.
        pages: the release and package of each page.
        hashes: the hashes of specs, by id.
        specs: the specs, by id.
        listings: sorted by release and spec, with the `configuration` of the spec.
        document_listings: sorted by document and spec.
        records: sorted by spec and document.
        edges: distinct and sorted by spec, dependency and use.
        configurations: the ids in the columns of configurations, by id.
        stack_members: the stacks of each stack set, by id.
    """

    ids: Ids
    texts: Texts
    documents: list[Document]
    pages: Frame
    hashes: list[str]
    specs: Frame
    listings: Frame
    document_listings: Frame
    records: Frame
    edges: Frame
    configurations: Frame
    stack_members: Members


def number(merged: Merged) -> Numbered:
    """Return the columns with final ids, without values of refused documents only."""
    texts = merged.texts
    ids = _ids(merged)
    # The id of each value by its number, 0 for values that are not in use.
    new: dict[str, Numbers] = {}
    for name in _DICTIONARIES:
        values = (ids[name].get(value, 0) for value in getattr(texts, name).things)
        new[name] = np.array([0, *values], dtype=np.uint32)
    specs = merged.specs.renumbered(new)
    hashes = texts.hashes.things
    by_hash = np.array(hashes, dtype="S32")[specs["spec"] - 1]
    specs = specs.where(np.lexsort((by_hash, specs["release"], specs["configuration"])))
    new["hashes"] = places(specs["spec"], len(texts.hashes))
    listings = merged.listings.renumbered(new)
    listings = listings.having(
        configuration=specs["configuration"][listings["spec"] - 1]
    )
    in_documents = merged.document_listings.renumbered(new)
    records = merged.records.renumbered(new)
    pages = [document.page for document in merged.documents if document.page]
    rows = [(0,) * len(CONFIGURATION), *_configuration_rows(ids, ids["configurations"])]
    stacks = ids["stacks"]
    return Numbered(
        ids=ids,
        texts=texts,
        documents=merged.documents,
        pages=Frame(
            release=merged.document_release[1 : len(pages) + 1],
            package=np.array([ids["packages"][page.package] for page in pages], int),
        ),
        hashes=[hashes[number - 1] for number in specs["spec"].tolist()],
        specs=specs,
        listings=listings.where(
            np.argsort(packed(listings["release"], listings["spec"]))
        ),
        document_listings=in_documents.where(
            np.lexsort((in_documents["spec"], in_documents["document"]))
        ),
        records=records.where(np.argsort(packed(records["spec"], records["document"]))),
        edges=_distinct(merged.edges.renumbered(new)),
        configurations=Frame(
            **dict(zip(CONFIGURATION, np.array(rows, dtype=np.int64).T, strict=True))
        ),
        stack_members=members(
            [(), *([stacks[name] for name in names] for names in ids["stack_sets"])]
        ),
    )


def _ids(merged: Merged) -> Ids:
    """Return the ids of all names, and of the values of `_DICTIONARIES` that are in
    use.
    """
    texts, specs, documents = merged.texts, merged.specs, merged.documents
    listings, in_documents = merged.listings, merged.document_listings
    configurations = _in_use(texts.configurations.things, specs["configuration"])
    stack_columns = listings["stacks"], specs["stacks"], in_documents["stacks"]
    stack_sets = _in_use(texts.stack_sets.things, *stack_columns)
    tarballs = _in_use(
        texts.tarballs.things, listings["tarball"], in_documents["tarball"]
    )
    ids: Ids = {
        table: _sorted(_names(column, configurations), _ORDERS.get(column))
        for column, table in CONFIGURATION.items()
    }
    packages = {document.page.package for document in documents if document.page}
    ids["packages"] = _sorted([*ids["packages"], *packages])
    stacks = {
        document.index_facts.stack for document in documents if document.index_facts
    }
    rows = zip(_configuration_rows(ids, configurations), configurations, strict=True)
    return {
        **ids,
        "variants": _sorted(text for texts in ids["variant_sets"] for text in texts),
        "configurations": {
            document: at for at, (_, document) in enumerate(sorted(rows), start=1)
        },
        "releases": {name: at for at, name in enumerate(merged.releases, start=1)},
        "stacks": _sorted(stacks.union(*stack_sets)),
        "stack_sets": _sorted(stack_sets),
        "tarballs": _sorted(tarballs),
        "nodes": _sorted(_in_use(texts.nodes.things, merged.records["node"])),
        "uses": _sorted(_in_use(texts.uses.things, merged.edges["use"])),
    }


def _configuration_rows(
    ids: Ids, configurations: Collection[Configuration]
) -> list[tuple[int, ...]]:
    """Return the ids in the columns of configurations, as rows."""
    columns = (
        map(ids[table].__getitem__, _names(column, configurations))
        for column, table in CONFIGURATION.items()
    )
    return [*zip(*columns, strict=True)]


def _names(column: str, configurations: Iterable[Configuration]) -> Iterator[Any]:
    """Yield the names in a column; those of versions include the package."""
    names = ("package", "version") if column == "version" else (column,)
    return map(attrgetter(*names), configurations)


def _compiler_order(name: str) -> Any:
    compiler, version = split_compiler(name)
    return compiler, version_key(version or ""), name


_ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "version": lambda name: (name[0], preference(name[1])),
    "compiler": _compiler_order,
}
"""The sort keys of columns whose names are not sorted by text."""


def none_first(value: Any) -> Any:
    """Return a key that sorts by text, part by part, and None first."""
    if isinstance(value, tuple):
        return [(part is not None, part) for part in value]
    return value is not None, value


def _sorted(
    values: Iterable[Any], order: Callable[[Any], Any] | None = None
) -> dict[Any, int]:
    ordered = sorted(set(values), key=order or none_first)
    return {value: number for number, value in enumerate(ordered, start=1)}


def _in_use(values: list[Any], *columns: Numbers) -> list[Any]:
    """Return the values whose numbers are in one of the columns."""
    counts = np.bincount(np.concatenate(columns), minlength=1)
    return [values[number - 1] for number in np.flatnonzero(counts).tolist() if number]


def _distinct(edges: Frame) -> Frame:
    """Return the distinct edges in the order of (spec, dependency, use)."""
    keys = packed(edges["spec"], edges["dependency"])
    order = np.lexsort((edges["use"], keys))
    keys, edges = keys[order], edges.where(order)
    repeats = (np.diff(keys) == 0) & (np.diff(edges["use"]) == 0)
    return edges.where(np.append(True, ~repeats)[: len(keys)])
