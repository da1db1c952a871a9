"""Merged columns → final numbers: ids that depend only on what the input says.

Every dictionary is in the order of what its names mean: versions of a package by Spack's
preference, the preferred one last, compilers in Spack's order, releases from branch to oldest
snapshot, all else by its text. Specs are numbered by configuration,
then by the foremost release that lists them, then by hash: what is asked for together lies
together in the file, and what is current comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from spack_cache_db.build.frames import Frame, Members, Numbers, members, packed, places
from spack_cache_db.build.merge import Merged
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.sources.columns import TABLES, Document, Texts
from spack_cache_db.spack.normal_forms import split_compiler
from spack_cache_db.spack.versions import preference, version_key

Ids = dict[str, dict[Any, int]]
"""The id of each thing, in the order of the ids, by the table or the dictionary it stands in."""

_DICTIONARIES = ("configurations", "stack_sets", "tarballs", "nodes", "uses")
"""The dictionaries of `Texts` whose things are rows: only what is in use gets an id."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Merged columns with final ids.

    `ids` has those of all names and of `_DICTIONARIES`; sizes and other texts have the numbers of
    `texts`. `documents` begins with the pages, in the order of their ids; `pages` has the columns
    `release` and `package`. `hashes` and `specs` are in the order of the ids of specs, `listings`
    in that of (release, spec), `document_listings` in that of (document, spec),
    `records` in that of (spec, document), `edges` in that of (spec,
    dependency, use), each once. A listing has the `configuration` of its spec. `configurations`,
    which has the ids in their columns, and `stack_members` are by id.
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
    """Return all that is in use, with final ids; what only refused documents say is left out."""
    texts = merged.texts
    ids = _ids(merged)
    new = {name: _by_number(getattr(texts, name).things, ids[name]) for name in _DICTIONARIES}
    specs = merged.specs.renumbered(TABLES["listings"], new)
    hashes = texts.hashes.things
    by_hash = np.array(hashes, dtype="S32")[specs["spec"] - 1]
    specs = specs.where(np.lexsort((by_hash, specs["release"], specs["configuration"])))
    new["hashes"] = places(specs["spec"], len(texts.hashes))
    listings, document_listings = (
        each.renumbered(TABLES["listings"], new)
        for each in (merged.listings, merged.document_listings)
    )
    by_document = np.lexsort((document_listings["spec"], document_listings["document"]))
    listings = listings.having(configuration=specs["configuration"][listings["spec"] - 1])
    records = merged.records.renumbered(TABLES["records"], new)
    packages = [ids["packages"][each.page.package] for each in merged.documents if each.page]
    stacks = ids["stacks"]
    return Numbered(
        ids=ids,
        texts=texts,
        documents=merged.documents,
        pages=Frame(
            release=merged.document_release[1 : len(packages) + 1], package=np.array(packages, int)
        ),
        hashes=[hashes[number - 1] for number in specs["spec"].tolist()],
        specs=specs,
        listings=listings.where(np.argsort(packed(listings["release"], listings["spec"]))),
        document_listings=document_listings.where(by_document),
        records=records.where(np.argsort(packed(records["spec"], records["document"]))),
        edges=_each_once(merged.edges.renumbered(TABLES["edges"], new)),
        configurations=_configurations(ids),
        stack_members=members(
            [(), *([stacks[each] for each in names] for names in ids["stack_sets"])]
        ),
    )


def _ids(merged: Merged) -> Ids:
    """Return the ids of all names, and of the members of `_DICTIONARIES` that are used."""
    texts, listings, specs, others = (
        merged.texts,
        merged.listings,
        merged.specs,
        merged.document_listings,
    )
    configurations = _in_use(texts.configurations.things, specs["configuration"])
    stack_sets = _in_use(
        texts.stack_sets.things, listings["stacks"], specs["stacks"], others["stacks"]
    )
    names: dict[str, set[Any]] = {
        table: {*_names(column, configurations)} for column, table in CONFIGURATION.items()
    }
    names["packages"].update(each.page.package for each in merged.documents if each.page)
    orders = {table: _ORDERS.get(column) for column, table in CONFIGURATION.items()}
    ids: Ids = {table: _sorted(found, orders[table]) for table, found in names.items()}
    stacks = {each.index_facts.stack for each in merged.documents if each.index_facts}
    rows = zip(_configuration_rows(ids, configurations), configurations, strict=True)
    return {
        **ids,
        "variants": _sorted(text for texts in ids["variant_sets"] for text in texts),
        "configurations": {each: at for at, (_, each) in enumerate(sorted(rows), start=1)},
        "releases": {name: at for at, name in enumerate(merged.releases, start=1)},
        "stacks": _sorted(stacks.union(*stack_sets)),
        "stack_sets": _sorted(stack_sets),
        "tarballs": _sorted(_in_use(texts.tarballs.things, listings["tarball"], others["tarball"])),
        "nodes": _sorted(_in_use(texts.nodes.things, merged.records["node"])),
        "uses": _sorted(_in_use(texts.uses.things, merged.edges["use"])),
    }


def _configuration_rows(
    ids: Ids, configurations: Collection[Configuration]
) -> list[tuple[int, ...]]:
    """Return the ids in the rows of configurations, which are sorted by them."""
    columns = (
        map(ids[table].__getitem__, _names(column, configurations))
        for column, table in CONFIGURATION.items()
    )
    return [*zip(*columns, strict=True)]


def _configurations(ids: Ids) -> Frame:
    """Return the ids in the columns of configurations, by the id of each; there is none with 0."""
    rows = [(0,) * len(CONFIGURATION), *_configuration_rows(ids, ids["configurations"])]
    return Frame(**dict(zip(CONFIGURATION, np.array(rows, dtype=np.int64).T, strict=True)))


def _names(column: str, configurations: Iterable[Configuration]) -> Iterator[Any]:
    """Yield what a column names; versions are numbered package by package."""
    return map(
        attrgetter(*("package", "version") if column == "version" else (column,)), configurations
    )


def _compiler_order(name: str) -> Any:
    compiler, version = split_compiler(name)
    return compiler, version_key(version or ""), name


def _version_order(name: tuple[str, str]) -> Any:
    package, version = name
    return package, preference(version)


_ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "version": _version_order,
    "compiler": _compiler_order,
}
"""The columns of a configuration whose names have an order of their own."""


def _none_first(thing: Any) -> Any:
    """Return a key that sorts by text, part by part, and None before everything else."""
    if isinstance(thing, tuple):
        return [(part is not None, part) for part in thing]
    return thing is not None, thing


def _sorted(things: Iterable[Any], order: Callable[[Any], Any] | None = None) -> dict[Any, int]:
    ordered = sorted(set(things), key=order or _none_first)
    return {thing: at for at, thing in enumerate(ordered, start=1)}


def _in_use(things: list[Any], *columns: Numbers) -> list[Any]:
    """Return the things whose numbers stand in some columns."""
    counts = np.bincount(np.concatenate(columns), minlength=1)
    return [things[number - 1] for number in np.flatnonzero(counts).tolist() if number]


def _by_number(things: Iterable[Any], ids: Mapping[Any, int]) -> Numbers:
    """Return the id of each thing by its number, and 0 for what is not in use."""
    return np.array([0, *(ids.get(thing, 0) for thing in things)], dtype=np.uint32)


def _each_once(edges: Frame) -> Frame:
    """Return the distinct edges in the order of (spec, dependency, use)."""
    keys = packed(edges["spec"], edges["dependency"])
    order = np.lexsort((edges["use"], keys))
    keys, edges = keys[order], edges.where(order)
    repeats = (np.diff(keys) == 0) & (np.diff(edges["use"]) == 0)
    return edges.where(np.append(True, ~repeats)[: len(keys)])
