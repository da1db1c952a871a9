"""Yields the rows of every table from numbered columns, in the schema's order of columns."""

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
from spack_cache_db.build.documents import installed_releases
from spack_cache_db.build.modules import Modules
from spack_cache_db.records import INSTALLED, ROOT, Problem
from spack_cache_db.releases import release_date, release_kind, snapshot_branches
from spack_cache_db.sources import as_json
from spack_cache_db.sources.columns import TABLES, Document
from spack_cache_db.spack import targets
from spack_cache_db.spack.normal_forms import Variant, readable_variant, split_compiler
from spack_cache_db.spack.versions import newest_version, version_key

TableRows = tuple[str, Iterable[tuple[Any, ...]]]
"""A table's name, and its rows in the order of the schema's columns."""

_MEANINGS = {name: meaning for columns in TABLES.values() for name, meaning in columns.items()}
"""The meaning of each column name, which is the same in every table of `sources.columns`."""


def table_rows(
    numbered: Numbered,
    counts: Counts,
    packages: PackageCatalogue,
    modules: Modules,
    problems: Iterable[tuple[int | str, Problem]],
) -> Iterator[TableRows]:
    """Yield the rows of every table except the tables of package data.

    Args:
        numbered: the numbered input.
        counts: the counts of releases, packages, stacks, configurations and specs.
        packages: the package data; `versions_behind` is computed from it.
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
    """Return whether each spec is external in one of these records."""
    external = np.array([False, *(node.external is not None for node in numbered.ids["nodes"])])
    is_external = np.zeros(len(numbered.hashes) + 1, bool)
    is_external[records["spec"][external[records["node"]]]] = True
    return is_external[1:]


def _rows(table: str, **columns: Iterable[Any]) -> TableRows:
    """Return the rows of a table from its columns, with ids that count from 1."""
    _, *names = schema.table(table).columns
    first, *columns_after = (columns[column.name] for column in names)
    first = [*first]
    return table, zip(range(1, len(first) + 1), first, *columns_after, strict=True)


def _frame_rows(numbered: Numbered, table: str, frame: Frame, **values: Sequence[Any]) -> TableRows:
    """Return the rows of a table from a frame that has its columns; 0 becomes NULL.

    Args:
        values: the values by number, for columns that are not in `sources.columns.TABLES`.
    """
    columns = schema.table(table).columns
    for column in columns:
        if column.nullable and column.name not in values:
            values[column.name] = [None, *_things(numbered, column.name, frame[column.name])]
    return table, frame.rows(*(column.name for column in columns), **values)


def _things(numbered: Numbered, column: str, values: Numbers) -> Iterable[Any]:
    """Return the values behind the numbers of a column, from 1: ids, texts or other numbers."""
    of = _MEANINGS[column].of
    return numbered.ids[of].values() if of in numbered.ids else numbered.texts.things()[of]


def _name_rows(numbered: Numbered, packages: PackageCatalogue) -> Iterator[TableRows]:
    """Yield the rows of the tables that name a configuration's words, except tables with counts."""
    ids = numbered.ids
    versions, compilers = ids["versions"], [*map(split_compiler, ids["compilers"])]
    oldest_first = sorted(versions, key=lambda version: (version[0], version_key(version[1])))
    positions = {
        version: position
        for _, group in groupby(oldest_first, itemgetter(0))
        for position, version in enumerate(group, start=1)
    }
    extra_columns: Mapping[str, dict[str, Iterable[Any]]] = {
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
            yield _rows(table, **{"name": ids[table], **extra_columns.get(table, {})})
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
    """Return each package's newest version with a binary, or else with an external."""
    names: tuple[dict[str, set[str]], ...] = {}, {}
    configurations = [*numbered.ids["configurations"]]
    for versions_of_package, is_counted in zip(
        names, (is_binary, numbered.specs["is_listed"] > 0), strict=True
    ):
        for at in np.unique(numbered.specs["configuration"][is_counted]).tolist():
            configuration = configurations[at - 1]
            versions_of_package.setdefault(configuration.package, set()).add(configuration.version)
    binaries, externals = names
    packages = numbered.ids["packages"]
    return [newest_version(binaries.get(name, externals.get(name, set()))) for name in packages]


def _stack_set_rows(numbered: Numbered) -> Iterator[TableRows]:
    stacks, sets = numbered.ids["stacks"], numbered.ids["stack_sets"]
    without_root = ([name for name in names if name != ROOT] for names in sets)
    yield _rows("stack_sets", stacks=map(as_json, sets), shown=map(as_json, without_root))
    yield "stack_set_members", [(at, stacks[name]) for names, at in sets.items() for name in names]


def _variant_rows(numbered: Numbered) -> Iterator[TableRows]:
    variants, sets = numbered.ids["variants"], numbered.ids["variant_sets"]
    parsed = [readable_variant(text) or Variant(text, ("",), "single") for text in variants]
    yield _rows(
        "variants",
        name=[variant.name for variant in parsed],
        value=[variant.value for variant in parsed],
        text=variants,
    )
    yield (
        "variant_values",
        [
            (at, value)
            for at, variant in enumerate(parsed, start=1)
            for value in sorted(set(variant.values))
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
        url=[tarball.url for tarball in tarballs],
        is_whole=[tarball.is_whole for tarball in tarballs],
    )
    yield _frame_rows(numbered, "listings", numbered.listings)
    listings, document = numbered.document_listings, numbered.document_listings["document"]
    mirror = mirrors[document]
    listings = listings.having(
        id=np.arange(1, len(listings) + 1), page=np.where(mirror > 0, 0, document), mirror=mirror
    )
    columns = schema.table("document_listings").columns
    values = {
        column.name: [None, *_things(numbered, column.name, listings[column.name])]
        for column in columns
        if column.name in ("size", "tarball")
    }
    values |= {name: [None, *range(1, len(mirrors) + 1)] for name in ("page", "mirror")}
    yield "document_listings", listings.rows(*(column.name for column in columns), **values)


def _page_rows(numbered: Numbered) -> TableRows:
    pages, documents = numbered.pages, numbered.documents[: len(numbered.pages)]
    spec_counts = np.bincount(numbered.listings["document"], minlength=len(pages) + 1)
    return _rows(
        "pages",
        release=pages["release"].tolist(),
        package=pages["package"].tolist(),
        path=[document.path for document in documents],
        sha256=[document.sha256 for document in documents],
        format=[document.page.format for document in documents if document.page],
        spec_count=spec_counts[1 : len(pages) + 1].tolist(),
    )


def _mirror_ids(documents: Sequence[Document]) -> Numbers:
    """Return the mirror id of each document by its number; 0 if it is not an index."""
    indexes = (number for number, document in enumerate(documents, start=1) if document.index_facts)
    return places(numbers(indexes), len(documents))


def _mirror_rows(numbered: Numbered) -> TableRows:
    ids, documents = numbered.ids, numbered.documents
    recorded = np.bincount(numbered.records["document"], minlength=len(documents) + 1).tolist()
    rows = [
        (
            ids["releases"][document.release],
            ids["stacks"][document.index_facts.stack],
            document.path,
            document.sha256,
            document.index_facts.format,
            document.index_facts.url,
            document.index_facts.is_named,
            recorded[number],
            document.index_facts.binaries,
        )
        for number, document in enumerate(documents, start=1)
        if document.index_facts
    ]
    return "mirrors", [(at, *row) for at, row in enumerate(rows, start=1)]


def _record_rows(numbered: Numbered, mirrors: Numbers, modules: Modules) -> Iterator[TableRows]:
    yield "nodes", [(at, *node) for node, at in numbered.ids["nodes"].items()]
    records = numbered.records.having(mirror=mirrors[numbered.records["document"]])
    yield _frame_rows(numbered, "records", records)
    installs = records.where(records["install"] > 0)
    installs_of_input = numbered.texts.installs.things
    yield (
        "installs",
        [
            (spec, mirror, *installs_of_input[at - 1], modules.loading.get((spec, document)))
            for spec, mirror, document, at in installs.rows("spec", "mirror", "document", "install")
        ],
    )
    releases = numbered.ids["releases"]
    yield (
        "modules",
        [
            (at, module.path, releases[str(module.release)], *module[2:])
            for at, module in enumerate(modules.modules, start=1)
        ],
    )
    yield _frame_rows(numbered, "splices", records.where(records["build_spec"] > 0))


def _dependency_rows(numbered: Numbered) -> Iterator[TableRows]:
    uses, edges = numbered.ids["uses"], numbered.edges
    types = _distinct(",".join(use.types) for use in uses)
    virtuals = _distinct(",".join(use.virtuals) for use in uses)
    yield _rows("dependency_types", types=types)
    yield _rows("dependency_virtuals", virtuals=virtuals)
    use = edges["use"]
    yield _frame_rows(
        numbered,
        "dependencies",
        edges.having(types=use, virtuals=use, direct=use),
        types=[0, *(types[",".join(use.types)] for use in uses)],
        virtuals=[0, *(virtuals[",".join(use.virtuals)] for use in uses)],
        direct=[None, *(use.direct for use in uses)],
    )


def _distinct(texts: Iterable[str]) -> dict[str, int]:
    return {text: at for at, text in enumerate(sorted(set(texts)), start=1)}


def _problem_rows(
    numbered: Numbered,
    mirrors: Numbers,
    problems: Iterable[tuple[int | str, Problem]],
) -> TableRows:
    """Return the rows of `problems`, each with its source."""
    problem_rows: list[tuple[str | None, int | None, int | None, Problem]] = []
    for source, problem in problems:
        if isinstance(source, str):
            problem_rows.append((source, None, None, problem))
            continue
        document, mirror = numbered.documents[source - 1], int(mirrors[source]) or None
        problem_rows.append((document.path, None if mirror else source, mirror, problem))
    return "problems", [
        (at, *columns, *problem) for at, (*columns, problem) in enumerate(problem_rows, 1)
    ]
