"""Yields the rows of every table, and the words of full-text search, from numbered
columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from spack_cache_db.assembly.counts import Counts
from spack_cache_db.assembly.documents import installed_releases
from spack_cache_db.assembly.frames import Frame, Mask, Numbers, numbers, places
from spack_cache_db.assembly.ids import Numbered
from spack_cache_db.assembly.known_packages import PackageCatalogue, versions_behind
from spack_cache_db.assembly.modules import Modules
from spack_cache_db.assembly.snapshots import copied_releases
from spack_cache_db.model import INSTALLED, ROOT, Problem
from spack_cache_db.releases import release_date, release_kind, snapshot_branches
from spack_cache_db.schema import tables
from spack_cache_db.sources.texts import as_json
from spack_cache_db.sources.writer import DICTIONARIES
from spack_cache_db.spack import targets
from spack_cache_db.spack.normal_forms import Variant, readable_variant, split_compiler
from spack_cache_db.spack.versions import newest_version, version_key

TableRows = tuple[str, Iterable[tuple[Any, ...]]]
"""A table's name, and its rows in the order of the schema's columns."""


def table_rows(
    numbered: Numbered,
    counts: Counts,
    packages: PackageCatalogue,
    modules: Modules,
    problems: Iterable[tuple[int | str, Problem]],
) -> Iterator[TableRows]:
    """Yield the rows of every table except the tables of package data.

    Each problem comes with the number of its document, or with the path of its file.
    """
    documents = enumerate(numbered.documents, start=1)
    indexes = [number for number, document in documents if document.index_facts]
    mirrors = places(numbers(indexes), len(numbered.documents))
    yield from _name_rows(numbered, packages)
    yield from _set_rows(numbered)
    yield from _listing_rows(numbered, mirrors)
    yield from _document_rows(numbered)
    yield from _record_rows(numbered, mirrors, modules)
    yield from _dependency_rows(numbered)
    yield "problems", _problem_rows(numbered, mirrors, problems)
    yield from _counted_rows(numbered, counts)


def _rows(table: str, **columns: Iterable[Any]) -> TableRows:
    """Return the rows of a table from its columns, with ids that count from 1."""
    _, *names = tables.table(table).columns
    first, *columns_after = (columns[column.name] for column in names)
    first = [*first]
    return table, zip(range(1, len(first) + 1), first, *columns_after, strict=True)


def _frame_rows(
    numbered: Numbered, table: str, frame: Frame, **values: Sequence[Any]
) -> TableRows:
    """Return the rows of a table from a frame that has its columns; 0 becomes NULL.

    Args:
        values: the values by number, for columns that are not in
            `sources.columns.DICTIONARIES`.
    """
    columns = tables.table(table).columns
    for name in (column.name for column in columns if column.nullable):
        if name not in values:
            of = DICTIONARIES[name]
            ids = numbered.ids.get(of)
            texts = numbered.texts.things()[of] if ids is None else ids.values()
            values[name] = [None, *texts]
    return table, frame.rows(*(column.name for column in columns), **values)


def _name_rows(numbered: Numbered, packages: PackageCatalogue) -> Iterator[TableRows]:
    """Yield the rows of the tables that name a configuration's words, except tables
    with counts.
    """
    ids = numbered.ids
    versions, compilers = ids["versions"], [*map(split_compiler, ids["compilers"])]
    oldest_first = sorted(
        versions, key=lambda version: (version[0], version_key(version[1]))
    )
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
    for table in tables.CONFIGURATION.values():
        if table not in ("packages", "variant_sets"):
            yield _rows(table, **{"name": ids[table], **extra_columns.get(table, {})})
    runs_on = [
        (host, at)
        for host in sorted({*targets.known_targets(), *ids["targets"]})
        for name, at in ids["targets"].items()
        if targets.runs_on(name, host)
    ]
    yield "target_runs_on", runs_on


def _set_rows(numbered: Numbered) -> Iterator[TableRows]:
    """Yield the rows of the tables of stack sets, variants and variant sets."""
    stacks, sets = numbered.ids["stacks"], numbered.ids["stack_sets"]
    without_root = ([name for name in names if name != ROOT] for names in sets)
    yield _rows(
        "stack_sets", stacks=map(as_json, sets), shown=map(as_json, without_root)
    )
    yield (
        "stack_set_members",
        [(at, stacks[name]) for names, at in sets.items() for name in names],
    )
    variants, sets = numbered.ids["variants"], numbered.ids["variant_sets"]
    parsed = [
        readable_variant(text) or Variant(text, ("",), "single") for text in variants
    ]
    yield _rows(
        "variants",
        name=[variant.name for variant in parsed],
        value=[variant.value for variant in parsed],
        text=variants,
    )
    values = (sorted(set(variant.values)) for variant in parsed)
    yield (
        "variant_values",
        [(at, value) for at, names in enumerate(values, 1) for value in names],
    )
    yield _rows("variant_sets", text=map(" ".join, sets))
    members = [(at, variants[text]) for texts, at in sets.items() for text in texts]
    yield "variant_set_members", members


def _listing_rows(numbered: Numbered, mirrors: Numbers) -> Iterator[TableRows]:
    tarballs = numbered.ids["tarballs"]
    yield _rows(
        "tarball_prefixes",
        url=[tarball.url for tarball in tarballs],
        is_whole=[tarball.is_whole for tarball in tarballs],
    )
    yield _frame_rows(numbered, "listings", numbered.listings)
    listings, document = (
        numbered.document_listings,
        numbered.document_listings["document"],
    )
    mirror = mirrors[document]
    listings = listings.having(
        id=np.arange(1, len(listings) + 1),
        page=np.where(mirror > 0, 0, document),
        mirror=mirror,
    )
    ids = [None, *range(1, len(mirrors) + 1)]
    yield _frame_rows(numbered, "document_listings", listings, page=ids, mirror=ids)


def _document_rows(numbered: Numbered) -> Iterator[TableRows]:
    """Yield the rows of pages and mirrors."""
    ids, documents, pages = numbered.ids, numbered.documents, numbered.pages
    spec_counts = np.bincount(numbered.listings["document"], minlength=len(pages) + 1)
    yield _rows(
        "pages",
        release=pages["release"].tolist(),
        package=pages["package"].tolist(),
        path=[document.path for document in documents[: len(pages)]],
        sha256=[document.sha256 for document in documents[: len(pages)]],
        format=[document.page.format for document in documents if document.page],
        spec_count=spec_counts[1 : len(pages) + 1].tolist(),
    )
    records = numbered.records
    recorded, listed = (
        np.bincount(rows["document"], minlength=len(documents) + 1).tolist()
        for rows in (records, records.where(records["is_listed"] > 0))
    )
    indexes = [
        (number, document, document.index_facts)
        for number, document in enumerate(documents, start=1)
        if document.index_facts
    ]
    yield _rows(
        "mirrors",
        release=[ids["releases"][document.release] for _, document, _ in indexes],
        stack=[ids["stacks"][facts.stack] for *_, facts in indexes],
        path=[document.path for _, document, _ in indexes],
        sha256=[document.sha256 for _, document, _ in indexes],
        format=[facts.format for *_, facts in indexes],
        url=[facts.url for *_, facts in indexes],
        is_named=[facts.is_named for *_, facts in indexes],
        is_signed=[facts.is_signed for *_, facts in indexes],
        settings=[facts.settings for *_, facts in indexes],
        record_count=[recorded[number] for number, *_ in indexes],
        spec_count=[listed[number] for number, *_ in indexes],
    )


def _record_rows(
    numbered: Numbered, mirrors: Numbers, modules: Modules
) -> Iterator[TableRows]:
    yield "nodes", [(at, *node) for node, at in numbered.ids["nodes"].items()]
    records = numbered.records.having(mirror=mirrors[numbered.records["document"]])
    yield _frame_rows(numbered, "records", records)
    names, details = (
        ("spec", "mirror", "document", "install"),
        numbered.texts.installs.things,
    )
    installs = [
        (spec, mirror, *details[at - 1], modules.loading.get((spec, document)))
        for spec, mirror, document, at in records.where(records["install"] > 0).rows(
            *names
        )
    ]
    yield "installs", installs
    releases = numbered.ids["releases"]
    module_rows = [
        (at, module.path, releases[str(module.release)], *module[2:])
        for at, module in enumerate(modules.modules, start=1)
    ]
    yield "modules", module_rows
    yield _frame_rows(numbered, "splices", records.where(records["build_spec"] > 0))


def _dependency_rows(numbered: Numbered) -> Iterator[TableRows]:
    uses, use = numbered.ids["uses"], numbered.edges["use"]
    values: dict[str, list[Any]] = {"direct": [None, *(use.direct for use in uses)]}
    for column in ("types", "virtuals"):
        texts = [",".join(getattr(use, column)) for use in uses]
        ids = {text: at for at, text in enumerate(sorted({*texts}), start=1)}
        values[column] = [0, *(ids[text] for text in texts)]
        yield _rows(f"dependency_{column}", **{column: ids})
    edges = numbered.edges.having(types=use, virtuals=use, direct=use)
    yield _frame_rows(numbered, "dependencies", edges, **values)


def _problem_rows(
    numbered: Numbered, mirrors: Numbers, problems: Iterable[tuple[int | str, Problem]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `problems`, each with its source."""
    for at, (source, problem) in enumerate(problems, start=1):
        if isinstance(source, str):
            yield at, source, None, None, *problem
        else:
            document, mirror = (
                numbered.documents[source - 1],
                int(mirrors[source]) or None,
            )
            yield at, document.path, None if mirror else source, mirror, *problem


def _counted_rows(numbered: Numbered, counts: Counts) -> Iterator[TableRows]:
    """Yield the rows of the tables that have counts."""
    ids, columns = numbered.ids, counts.columns
    releases, packages, stacks = ids["releases"], ids["packages"], ids["stacks"]
    trees, branches = (
        installed_releases(numbered.documents),
        snapshot_branches(releases),
    )
    copies = copied_releases(numbered.documents)
    kinds = (
        INSTALLED if name in trees else release_kind(name, branches)
        for name in releases
    )
    yield _rows(
        "releases",
        name=releases,
        kind=kinds,
        date=map(release_date, releases),
        position=releases.values(),
        is_copy=[name in copies for name in releases],
        **columns["releases"],
    )
    listing = numbered.records.where(numbered.records["is_listed"] > 0)
    is_binary = (numbered.specs["is_listed"] > 0) & ~_are_external(numbered, listing)
    is_gone = np.array(columns["specs"]["is_gone"], bool)
    newest = _newest_versions(numbered, is_binary, is_gone)
    yield _rows("packages", name=packages, newest_version=newest, **columns["packages"])
    is_root = [name == ROOT for name in stacks]
    yield _rows("stacks", name=stacks, is_root=is_root, **columns["stacks"])
    yield _rows(
        "configurations",
        **{
            column: numbered.configurations[column][1:].tolist()
            for column in tables.CONFIGURATION
        },
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
    external = np.array(
        [False, *(node.external is not None for node in numbered.ids["nodes"])]
    )
    is_external = np.zeros(len(numbered.hashes) + 1, bool)
    is_external[records["spec"][external[records["node"]]]] = True
    return is_external[1:]


def _newest_versions(
    numbered: Numbered, is_binary: Mask, is_gone: Mask
) -> list[str | None]:
    """Return each package's newest version with a binary, or else with an external.

    Binaries that the mirror has lost do not count.
    """
    is_listed = (numbered.specs["is_listed"] > 0) & ~is_gone
    configurations = [*numbered.ids["configurations"]]
    newest: dict[str, str | None] = {}
    for is_counted in (is_listed, is_binary & ~is_gone):
        versions: dict[str, set[str]] = {}
        for at in np.unique(numbered.specs["configuration"][is_counted]).tolist():
            configuration = configurations[at - 1]
            versions.setdefault(configuration.package, set()).add(configuration.version)
        newest |= {name: newest_version(names) for name, names in versions.items()}
    return [newest.get(name) for name in numbered.ids["packages"]]
