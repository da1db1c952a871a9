"""Assigns final ids, which depend only on the content of the input.

Versions of a package are in Spack's order of preference, the preferred one last;
compilers in Spack's order, releases from branch to oldest snapshot, other names by
text. Specs are sorted by configuration, first release and hash, so that rows of one
query are close together in the file, and current ones come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from spack_cache_db.assembly.merge import Merged
from spack_cache_db.model import Configuration
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.sources.facts import Document
from spack_cache_db.sources.frames import (
    Frame,
    Numbers,
    NumberSets,
    number_sets,
    packed,
    renumbering,
)
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
    stack_members: NumberSets


def number(merged: Merged) -> Numbered:
    """Return the columns with final ids.

    Values that only refused documents have get no id.
    """
    texts = merged.texts
    ids = _ids(merged)

    # The id of each value by its number; 0 for values that are not in use.
    new_numbers: dict[str, Numbers] = {}
    for name in _DICTIONARIES:
        new_ids = [0]
        for value in getattr(texts, name).things:
            new_ids.append(ids[name].get(value, 0))
        new_numbers[name] = np.array(new_ids, dtype=np.uint32)

    # Specs, by configuration, release and hash. NumPy sorts by the last key first.
    hashes = texts.hashes.things
    specs = merged.specs.renumbered(new_numbers)
    hash_of_spec = np.array(hashes, dtype="S32")[specs["spec"] - 1]
    specs = specs.where(
        np.lexsort((hash_of_spec, specs["release"], specs["configuration"]))
    )
    new_numbers["hashes"] = renumbering(specs["spec"], len(texts.hashes))

    # Tables, which are sorted by their keys below.
    listings = merged.listings.renumbered(new_numbers)
    configuration = specs["configuration"][listings["spec"] - 1]
    listings = listings.having(configuration=configuration)
    document_listings = merged.document_listings.renumbered(new_numbers)
    records = merged.records.renumbered(new_numbers)
    edges = merged.edges.renumbered(new_numbers)

    return Numbered(
        ids=ids,
        texts=texts,
        documents=merged.documents,
        pages=_pages(merged, ids),
        hashes=[hashes[number - 1] for number in specs["spec"].tolist()],
        specs=specs,
        listings=listings.sorted_by("release", "spec"),
        document_listings=document_listings.sorted_by("document", "spec"),
        records=records.sorted_by("spec", "document"),
        edges=_distinct(edges),
        configurations=_configurations(ids),
        stack_members=_stack_members(ids),
    )


def _pages(merged: Merged, ids: Ids) -> Frame:
    """Return the release and the package of each page; pages come first."""
    packages = []
    for document in merged.documents:
        if document.page:
            packages.append(ids["packages"][document.page.package])
    return Frame(
        release=merged.document_release[1 : len(packages) + 1],
        package=np.array(packages, int),
    )


def _configurations(ids: Ids) -> Frame:
    """Return the ids in the columns of configurations; row 0 is not a configuration."""
    rows = [(0,) * len(CONFIGURATION)]
    rows += _configuration_rows(ids, ids["configurations"])
    columns = np.array(rows, dtype=np.int64).T
    return Frame(**dict(zip(CONFIGURATION, columns, strict=True)))


def _stack_members(ids: Ids) -> NumberSets:
    """Return the stacks of each stack set; set 0 has none."""
    sets: list[list[int]] = [[]]
    for names in ids["stack_sets"]:
        sets.append([ids["stacks"][name] for name in names])
    return number_sets(sets)


def _ids(merged: Merged) -> Ids:
    """Return the ids of all names, and of the values of `_DICTIONARIES` that are in
    use.
    """
    texts = merged.texts
    specs = merged.specs
    listings = merged.listings
    of_documents = merged.document_listings

    # The words of configurations. A set of variants is a tuple of variants.
    configurations = _in_use(texts.configurations.things, specs["configuration"])
    ids: Ids = {}
    for column, table in CONFIGURATION.items():
        ids[table] = _sorted(_names(column, configurations), _ORDERS.get(column))
    ids["variants"] = _sorted(chain.from_iterable(ids["variant_sets"]))

    # A page without a spec has a package too, which may change the ids of others.
    pages = [document.page for document in merged.documents if document.page]
    ids["packages"] = _sorted([*ids["packages"], *(page.package for page in pages)])

    # Configurations, sorted by the ids of their words.
    rows = _configuration_rows(ids, configurations)
    ids["configurations"] = {}
    for _, configuration in sorted(zip(rows, configurations, strict=True)):
        ids["configurations"][configuration] = len(ids["configurations"]) + 1

    # Releases, stacks and sets of stacks. An index without a binary has a stack too.
    ids["releases"] = {name: at for at, name in enumerate(merged.releases, start=1)}
    stack_sets = _in_use(
        texts.stack_sets.things,
        listings["stacks"],
        specs["stacks"],
        of_documents["stacks"],
    )
    stacks = set(chain.from_iterable(stack_sets))
    for document in merged.documents:
        if document.index_facts:
            stacks.add(document.index_facts.stack)
    ids["stacks"] = _sorted(stacks)
    ids["stack_sets"] = _sorted(stack_sets)

    # Tarballs, and the values of records and dependencies.
    tarballs = _in_use(
        texts.tarballs.things, listings["tarball"], of_documents["tarball"]
    )
    ids["tarballs"] = _sorted(tarballs)
    ids["nodes"] = _sorted(_in_use(texts.nodes.things, merged.records["node"]))
    ids["uses"] = _sorted(_in_use(texts.uses.things, merged.edges["use"]))
    return ids


def _configuration_rows(
    ids: Ids, configurations: Collection[Configuration]
) -> list[tuple[int, ...]]:
    """Return the ids in the columns of configurations, as rows."""
    columns = []
    for column, table in CONFIGURATION.items():
        id_of = ids[table]
        columns.append([id_of[name] for name in _names(column, configurations)])
    return list(zip(*columns, strict=True))


def _names(column: str, configurations: Iterable[Configuration]) -> Iterator[Any]:
    """Yield the names in a column; those of versions include the package."""
    if column == "version":
        return map(attrgetter("package", "version"), configurations)
    return map(attrgetter(column), configurations)


def _version_order(package_and_version: tuple[str, str]) -> Any:
    package, version = package_and_version
    return package, preference(version)


def _compiler_order(text: str) -> Any:
    name, version = split_compiler(text)
    return name, version_key(version or ""), text


_ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "version": _version_order,
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
    """Return the ids of distinct values; `order` is the sort key."""
    ordered = sorted(set(values), key=order or none_first)
    return {value: number for number, value in enumerate(ordered, start=1)}


def _in_use(values: list[Any], *columns: Numbers) -> list[Any]:
    """Return the values whose numbers are in one of the columns; 0 has no value."""
    counts = np.bincount(np.concatenate(columns), minlength=1)
    return [values[number - 1] for number in np.flatnonzero(counts).tolist() if number]


def _distinct(edges: Frame) -> Frame:
    """Return the distinct edges in the order of (spec, dependency, use)."""
    keys = packed(edges["spec"], edges["dependency"])
    order = np.lexsort((edges["use"], keys))
    keys = keys[order]
    edges = edges.where(order)
    is_new = np.ones(len(keys), bool)
    is_new[1:] = (np.diff(keys) != 0) | (np.diff(edges["use"]) != 0)
    return edges.where(is_new)
