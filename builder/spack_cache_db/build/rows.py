"""Numbered columns → the rows of every table.

The schema gives the order of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from spack_cache_db import schema
from spack_cache_db.build.counts import Counts
from spack_cache_db.build.frames import Frame, Mask, Numbers, numbers, places
from spack_cache_db.build.ids import Numbered
from spack_cache_db.build.known_packages import PackageCatalogue, versions_behind
from spack_cache_db.build.merge import installed_releases
from spack_cache_db.build.modules import Modules
from spack_cache_db.records import INSTALLED, ROOT, Problem
from spack_cache_db.releases import release_date, release_kind, snapshot_branches
from spack_cache_db.sources.columns import TABLES, Document
from spack_cache_db.sources.strictness import as_json
from spack_cache_db.spack import targets
from spack_cache_db.spack.normal_forms import Variant, readable_variant, split_compiler
from spack_cache_db.spack.versions import newest_version, version_key

TableRows = tuple[str, Iterable[tuple[Any, ...]]]
"""A table's name, and its rows in the order of the schema's columns."""

_MEANINGS = {name: each for columns in TABLES.values() for name, each in columns.items()}
"""A column of one name means the same in every table of `sources.columns`."""


def table_rows(
    numbered: Numbered,
    counts: Counts,
    packages: PackageCatalogue,
    modules: Modules,
    problems: Iterable[tuple[int | str, Problem]],
) -> Iterator[TableRows]:
    """Yield the rows of every table apart from those of package data.

    Args:
        numbered: everything that is stored.
        counts: everything that is counted.
        packages: the package data, with which versions are compared.
        modules: the environment modules, and the specs that they load.
        problems: problems, each with the number of its document or the path of its file.
    """
    mirrors = _mirror_ids(numbered.documents)
    yield from _name_rows(numbered, packages)
    yield from _stack_set_rows(numbered)
    yield from _variant_rows(numbered)
    yield from _listing_rows(numbered, mirrors)
    yield _page_rows(numbered)
    yield _mirror_rows(numbered)
    yield from _record_rows(numbered, mirrors, modules)
    yield from _dependency_rows(numbered)
    yield _problem_rows(numbered, mirrors, problems)
    yield from _counted_rows(numbered, counts)


def _counted_rows(numbered: Numbered, counts: Counts) -> Iterator[TableRows]:
    """Yield the rows of the tables that have counts."""
    ids, columns = numbered.ids, counts.columns
    releases, packages, stacks = ids["releases"], ids["packages"], ids["stacks"]
    trees, branches = installed_releases(numbered.documents), snapshot_branches(releases)
    kinds = (INSTALLED if name in trees else release_kind(name, branches) for name in releases)
    yield _rows(
        "releases",
        name=releases,
        kind=kinds,
        date=map(release_date, releases),
        position=releases.values(),
        **columns["releases"],
    )
    listing = numbered.records.where(numbered.records["is_listed"] > 0)
    is_binary = (numbered.specs["is_listed"] > 0) & ~_are_external(numbered, listing)
    newest = _newest_versions(numbered, is_binary)
    yield _rows("packages", name=packages, newest_version=newest, **columns["packages"])
    is_root = [name == ROOT for name in stacks]
    yield _rows("stacks", name=stacks, is_root=is_root, **columns["stacks"])
    yield _rows(
        "configurations",
        **{column: numbered.configurations[column][1:].tolist() for column in schema.CONFIGURATION},
        **columns["configurations"],
    )
    yield _rows(
        "specs",
        hash=numbered.hashes,
        configuration=numbered.specs["configuration"].tolist(),
        stacks=numbered.specs["stacks"].tolist(),
        is_binary=is_binary.tolist(),
        is_external=_are_external(numbered, numbered.records).tolist(),
        **columns["specs"],
    )
    yield from ((table, frame.rows()) for table, frame in counts.tables.items())
    yield "facet_values", [(at, *row) for at, row in enumerate(counts.facets, start=1)]


def _are_external(numbered: Numbered, records: Frame) -> Mask:
    """Return of each spec whether one of these records says that the system provides it."""
    external = np.array([False, *(each.external is not None for each in numbered.ids["nodes"])])
    found = np.zeros(len(numbered.hashes) + 1, bool)
    found[records["spec"][external[records["node"]]]] = True
    return found[1:]


def _rows(table: str, **columns: Iterable[Any]) -> TableRows:
    """Return the rows of a table with ids, which count from 1, from its other columns."""
    _, *names = schema.table(table).columns
    first, *others = (columns[each.name] for each in names)
    first = [*first]
    return table, zip(range(1, len(first) + 1), first, *others, strict=True)


def _frame_rows(numbered: Numbered, table: str, frame: Frame, **values: Sequence[Any]) -> TableRows:
    """Return the rows of a table from a frame that has its columns; 0 becomes NULL.

    Args:
        values: what stands for the numbers of columns that are not in `sources.columns.TABLES`.
    """
    columns = schema.table(table).columns
    for each in columns:
        if each.nullable and each.name not in values:
            values[each.name] = [None, *_things(numbered, each.name, frame[each.name])]
    return table, frame.rows(*(each.name for each in columns), **values)


def _things(numbered: Numbered, column: str, found: Numbers) -> Iterable[Any]:
    """Return what the numbers of a column stand for, from 1: ids, texts or other numbers."""
    of = _MEANINGS[column].of
    return numbered.ids[of].values() if of in numbered.ids else numbered.texts.things()[of]


def _name_rows(numbered: Numbered, packages: PackageCatalogue) -> Iterator[TableRows]:
    """Yield the names that configurations are made of, but for those that are counted, and sets."""
    ids = numbered.ids
    versions, compilers = ids["versions"], [*map(split_compiler, ids["compilers"])]
    oldest_first = sorted(versions, key=lambda each: (each[0], version_key(each[1])))
    positions = {
        version: position
        for _, group in groupby(oldest_first, itemgetter(0))
        for position, version in enumerate(group, start=1)
    }
    others: Mapping[str, dict[str, Iterable[Any]]] = {
        "versions": {
            "package": [ids["packages"][package] for package, _ in versions],
            "name": [name for _, name in versions],
            "position": map(positions.__getitem__, versions),
            "versions_behind": versions_behind(packages, versions),
        },
        "compilers": {
            "compiler": ids["compilers"],
            "name": [name for name, _ in compilers],
            "version": [version for _, version in compilers],
        },
        "targets": {"family": map(targets.family, ids["targets"])},
    }
    for table in schema.CONFIGURATION.values():
        if table not in ("packages", "variant_sets"):
            yield _rows(table, **{"name": ids[table], **others.get(table, {})})
    hosts = sorted({*targets.known_targets(), *ids["targets"]})
    yield (
        "target_runs_on",
        [
            (host, at)
            for host in hosts
            for name, at in ids["targets"].items()
            if targets.runs_on(name, host)
        ],
    )


def _newest_versions(numbered: Numbered, is_binary: Mask) -> list[str | None]:
    """Return the newest version of each package that a binary has, or else an external."""
    names: tuple[dict[str, set[str]], ...] = {}, {}
    configurations = [*numbered.ids["configurations"]]
    for found, some in zip(names, (is_binary, numbered.specs["is_listed"] > 0), strict=True):
        for at in np.unique(numbered.specs["configuration"][some]).tolist():
            each = configurations[at - 1]
            found.setdefault(each.package, set()).add(each.version)
    binaries, listed = names
    packages = numbered.ids["packages"]
    return [newest_version(binaries.get(name, listed.get(name, set()))) for name in packages]


def _stack_set_rows(numbered: Numbered) -> Iterator[TableRows]:
    stacks, sets = numbered.ids["stacks"], numbered.ids["stack_sets"]
    shown = ([name for name in names if name != ROOT] for names in sets)
    yield _rows("stack_sets", stacks=map(as_json, sets), shown=map(as_json, shown))
    yield "stack_set_members", [(at, stacks[name]) for names, at in sets.items() for name in names]


def _variant_rows(numbered: Numbered) -> Iterator[TableRows]:
    variants, sets = numbered.ids["variants"], numbered.ids["variant_sets"]
    parsed = [readable_variant(text) or Variant(text, ("",), "single") for text in variants]
    yield _rows(
        "variants",
        name=[each.name for each in parsed],
        value=[each.value for each in parsed],
        text=variants,
    )
    yield (
        "variant_values",
        [
            (at, value)
            for at, each in enumerate(parsed, start=1)
            for value in sorted(set(each.values))
        ],
    )
    yield _rows("variant_sets", text=map(" ".join, sets))
    yield (
        "variant_set_members",
        [(at, variants[text]) for texts, at in sets.items() for text in texts],
    )


def _listing_rows(numbered: Numbered, mirrors: Numbers) -> Iterator[TableRows]:
    tarballs = numbered.ids["tarballs"]
    yield _rows(
        "tarball_prefixes",
        url=[each.url for each in tarballs],
        is_whole=[each.is_whole for each in tarballs],
    )
    yield _frame_rows(numbered, "listings", numbered.listings)
    others, document = numbered.document_listings, numbered.document_listings["document"]
    mirror = mirrors[document]
    others = others.having(
        id=np.arange(1, len(others) + 1), page=np.where(mirror > 0, 0, document), mirror=mirror
    )
    columns = schema.table("document_listings").columns
    values = {
        each.name: [None, *_things(numbered, each.name, others[each.name])]
        for each in columns
        if each.name in ("size", "tarball")
    }
    values |= {name: [None, *range(1, len(mirrors) + 1)] for name in ("page", "mirror")}
    yield "document_listings", others.rows(*(each.name for each in columns), **values)


def _page_rows(numbered: Numbered) -> TableRows:
    pages, documents = numbered.pages, numbered.documents[: len(numbered.pages)]
    listed = np.bincount(numbered.listings["document"], minlength=len(pages) + 1)
    return _rows(
        "pages",
        release=pages["release"].tolist(),
        package=pages["package"].tolist(),
        path=[each.path for each in documents],
        sha256=[each.sha256 for each in documents],
        format=[each.page.format for each in documents if each.page],
        spec_count=listed[1 : len(pages) + 1].tolist(),
    )


def _mirror_ids(documents: Sequence[Document]) -> Numbers:
    """Return the id of each document that is an index, by its number; 0 for the others."""
    indexes = (number for number, each in enumerate(documents, start=1) if each.index_facts)
    return places(numbers(indexes), len(documents))


def _mirror_rows(numbered: Numbered) -> TableRows:
    ids, documents = numbered.ids, numbered.documents
    recorded = np.bincount(numbered.records["document"], minlength=len(documents) + 1).tolist()
    rows = [
        (
            ids["releases"][each.release],
            ids["stacks"][each.index_facts.stack],
            each.path,
            each.sha256,
            each.index_facts.format,
            each.index_facts.url,
            each.index_facts.is_named,
            recorded[number],
            each.index_facts.binaries,
        )
        for number, each in enumerate(documents, start=1)
        if each.index_facts
    ]
    return "mirrors", [(at, *row) for at, row in enumerate(rows, start=1)]


def _record_rows(numbered: Numbered, mirrors: Numbers, modules: Modules) -> Iterator[TableRows]:
    yield "nodes", [(at, *each) for each, at in numbered.ids["nodes"].items()]
    records = numbered.records.having(mirror=mirrors[numbered.records["document"]])
    yield _frame_rows(numbered, "records", records)
    installs = records.where(records["install"] > 0)
    known = numbered.texts.installs.things
    yield (
        "installs",
        [
            (spec, mirror, *known[at - 1], modules.loading.get((spec, document)))
            for spec, mirror, document, at in installs.rows("spec", "mirror", "document", "install")
        ],
    )
    releases = numbered.ids["releases"]
    yield (
        "modules",
        [
            (at, each.path, releases[str(each.release)], *each[2:])
            for at, each in enumerate(modules.modules, start=1)
        ],
    )
    yield _frame_rows(numbered, "splices", records.where(records["build_spec"] > 0))


def _dependency_rows(numbered: Numbered) -> Iterator[TableRows]:
    uses, edges = numbered.ids["uses"], numbered.edges
    types = _distinct(",".join(each.types) for each in uses)
    virtuals = _distinct(",".join(each.virtuals) for each in uses)
    yield _rows("dependency_types", types=types)
    yield _rows("dependency_virtuals", virtuals=virtuals)
    use = edges["use"]
    yield _frame_rows(
        numbered,
        "dependencies",
        edges.having(types=use, virtuals=use, direct=use),
        types=[0, *(types[",".join(each.types)] for each in uses)],
        virtuals=[0, *(virtuals[",".join(each.virtuals)] for each in uses)],
        direct=[None, *(each.direct for each in uses)],
    )


def _distinct(texts: Iterable[str]) -> dict[str, int]:
    return {text: at for at, text in enumerate(sorted(set(texts)), start=1)}


def _problem_rows(
    numbered: Numbered,
    mirrors: Numbers,
    problems: Iterable[tuple[int | str, Problem]],
) -> TableRows:
    """Return what does not add up, each with its source."""
    found: list[tuple[str | None, int | None, int | None, Problem]] = []
    for source, problem in problems:
        if isinstance(source, str):
            found.append((source, None, None, problem))
            continue
        document, mirror = numbered.documents[source - 1], int(mirrors[source]) or None
        found.append((document.path, None if mirror else source, mirror, problem))
    return "problems", [(at, *place, *problem) for at, (*place, problem) in enumerate(found, 1)]
