"""Yields the rows of every table from numbered columns and counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from spack_cache_db.assembly.counts import Counts
from spack_cache_db.assembly.documents import installed_releases
from spack_cache_db.assembly.ids import Numbered
from spack_cache_db.assembly.known_packages import PackageCatalogue, versions_behind
from spack_cache_db.assembly.modules import Modules
from spack_cache_db.assembly.record_ranges import (
    MirrorOrder,
    mirror_order,
    record_ranges,
)
from spack_cache_db.assembly.snapshots import copied_releases
from spack_cache_db.model import INSTALLED, ROOT, Problem
from spack_cache_db.releases import release_date, release_kind, snapshot_branches
from spack_cache_db.schema import tables
from spack_cache_db.sources.frames import (
    Frame,
    Mask,
    Numbers,
    number_array,
    numbers_in,
    renumbering,
)
from spack_cache_db.sources.texts import as_json
from spack_cache_db.sources.writer import DICTIONARIES
from spack_cache_db.spack import targets
from spack_cache_db.spack.normal_forms import Variant, readable_variant, split_compiler
from spack_cache_db.spack.versions import newest_version, version_key

TableRows = tuple[str, Iterable[tuple[Any, ...]]]
"""A table's name, and its rows in the order of the schema's columns."""

_FRAME_COLUMNS = {"stack_set_id": "stacks", "tarball_prefix_id": "tarball"}
"""The names in frames of columns of tables. All other columns have the same name, but
without `_id`: `package_id` is `package` in a frame.
"""


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
    # The id of the mirror of each document; 0 for pages.
    indexes = []
    for number, document in enumerate(numbered.documents, start=1):
        if document.index_facts:
            indexes.append(number)
    mirrors = renumbering(number_array(indexes), len(numbered.documents))
    order = mirror_order(numbered.documents, numbered.ids["releases"])

    yield from _name_rows(numbered, packages)
    yield from _set_rows(numbered)
    yield from _listing_rows(numbered, mirrors)
    yield from _document_rows(numbered, order)
    yield from _record_rows(numbered, mirrors, order, modules)
    yield from _dependency_rows(numbered)
    yield "problems", _problem_rows(numbered, mirrors, problems)
    yield from _counted_rows(numbered, counts)


def _rows(table: str, **columns: Iterable[Any]) -> TableRows:
    """Return the rows of a table from its columns, with ids that count from 1."""
    # The first column of these tables is the id.
    values = [columns[column.name] for column in tables.table(table).columns[1:]]
    # The ids need the number of rows, and a column may be an iterator.
    first_column = list(values[0])
    ids = range(1, len(first_column) + 1)
    return table, zip(ids, first_column, *values[1:], strict=True)


def _frame_rows(
    numbered: Numbered, table: str, frame: Frame, **values: Sequence[Any]
) -> TableRows:
    """Return the rows of a table from a frame that has its columns; 0 becomes NULL.

    Args:
        numbered: the ids and texts of values.
        table: the name of the table.
        frame: the rows.
        values: the values by number, for columns that are not in
            `sources.writer.DICTIONARIES`.
    """
    names = []
    for column in tables.table(table).columns:
        name = _FRAME_COLUMNS.get(column.name, column.name.removesuffix("_id"))
        names.append(name)
        # A number in a nullable column stands for a value; other numbers are written.
        if column.nullable and name not in values:
            dictionary = DICTIONARIES[name]
            # Values with ids are written as their ids; sizes and other texts as texts.
            known: Iterable[Any] = numbered.texts.things().get(dictionary, ())
            if dictionary in numbered.ids:
                known = numbered.ids[dictionary].values()
            values[name] = [None, *known]
    return table, frame.rows(*names, **values)


def _name_rows(numbered: Numbered, packages: PackageCatalogue) -> Iterator[TableRows]:
    """Yield the rows of the tables that name a configuration's words, except tables
    with counts.
    """
    ids = numbered.ids
    versions = ids["versions"]
    compilers = [split_compiler(name) for name in ids["compilers"]]
    columns: dict[str, dict[str, Iterable[Any]]] = {
        table: {"name": ids[table]} for table in tables.CONFIGURATION.values()
    }
    columns["versions"] = {
        "package_id": [ids["packages"][package] for package, _ in versions],
        "name": [name for _, name in versions],
        "position": _positions(versions),
        "versions_behind": versions_behind(packages, versions),
    }
    columns["compilers"] = {
        "compiler": ids["compilers"],
        "name": [name for name, _ in compilers],
        "version": [version for _, version in compilers],
    }
    columns["targets"]["family"] = [targets.family(name) for name in ids["targets"]]
    for table in columns:
        # Packages and sets of variants have more columns, of other functions.
        if table not in ("packages", "variant_sets"):
            yield _rows(table, **columns[table])

    yield "target_runs_on", _runs_on(numbered)


def _runs_on(numbered: Numbered) -> list[tuple[str, int, int]]:
    """Return what each machine runs: targets with the platforms that they have in this
    database.
    """
    # The first number of each column stands for no configuration.
    target_of = numbered.configurations["target"][1:].tolist()
    platform_of = numbered.configurations["platform"][1:].tolist()
    pairs = sorted(set(zip(target_of, platform_of, strict=True)))

    target_names = list(numbered.ids["targets"])
    platform_names = list(numbered.ids["platforms"])
    rows = []
    for host in sorted({*targets.known_targets(), *target_names}):
        for target, platform in pairs:
            # Ids count from 1.
            build = targets.Build(
                platform_names[platform - 1], target_names[target - 1]
            )
            if targets.build_runs_on(build, host):
                rows.append((host, target, platform))
    return rows


def _positions(versions: Iterable[tuple[str, str]]) -> list[int]:
    """Return the position of each version of a package in Spack's order, from 1.

    The ids are in another order: that of Spack's preference.
    """

    def oldest_first(package_and_version: tuple[str, str]) -> Any:
        package, version = package_and_version
        return package, version_key(version)

    positions = {}
    ordered = sorted(versions, key=oldest_first)
    for _, group in groupby(ordered, itemgetter(0)):
        for position, version in enumerate(group, start=1):
            positions[version] = position
    return [positions[version] for version in versions]


def _set_rows(numbered: Numbered) -> Iterator[TableRows]:
    """Yield the rows of the tables of stack sets, variants and variant sets."""
    # Sets of stacks. The stack `root` has everything, so it is not shown.
    stack_ids = numbered.ids["stacks"]
    stack_sets = numbered.ids["stack_sets"]
    without_root = []
    stack_members = []
    for stacks, set_id in stack_sets.items():
        without_root.append(as_json([name for name in stacks if name != ROOT]))
        stack_members += [(set_id, stack_ids[name]) for name in stacks]
    yield _rows(
        "stack_sets",
        stacks=[as_json(stacks) for stacks in stack_sets],
        shown=without_root,
    )
    yield "stack_set_members", stack_members

    # Variants, each with its values.
    variant_ids = numbered.ids["variants"]
    variants = []
    values = []
    for text, variant_id in variant_ids.items():
        # A text that is not a variant has an empty value.
        variant = readable_variant(text) or Variant(text, ("",), "single")
        variants.append(variant)
        values += [(variant_id, value) for value in sorted(set(variant.values))]
    yield _rows(
        "variants",
        name=[variant.name for variant in variants],
        value=[variant.value for variant in variants],
        text=variant_ids,
    )
    yield "variant_values", values

    # Sets of variants.
    variant_sets = numbered.ids["variant_sets"]
    yield _rows("variant_sets", text=[" ".join(texts) for texts in variant_sets])
    variant_members = []
    for texts, set_id in variant_sets.items():
        variant_members += [(set_id, variant_ids[text]) for text in texts]
    yield "variant_set_members", variant_members


def _listing_rows(numbered: Numbered, mirrors: Numbers) -> Iterator[TableRows]:
    """Yield the rows of listings; `mirrors` has the mirror of each document."""
    tarballs = numbered.ids["tarballs"]
    yield _rows(
        "tarball_prefixes",
        url=[tarball.url for tarball in tarballs],
        is_whole=[tarball.is_whole for tarball in tarballs],
    )
    yield _frame_rows(numbered, "listings", numbered.listings)

    # The listings of single documents, which are pages or mirrors. The id of a page is
    # the number of its document, because pages are the first documents.
    listings = numbered.document_listings
    mirror = mirrors[listings["document"]]
    listings = listings.having(
        id=np.arange(1, len(listings) + 1),
        page=np.where(mirror > 0, 0, listings["document"]),
        mirror=mirror,
    )
    # Ids stay what they are, and 0 becomes NULL.
    ids = [None, *range(1, len(mirrors) + 1)]
    yield _frame_rows(numbered, "document_listings", listings, page=ids, mirror=ids)


def _document_rows(numbered: Numbered, order: MirrorOrder) -> Iterator[TableRows]:
    """Yield the rows of pages and mirrors; `order` has the positions of mirrors."""
    ids = numbered.ids
    documents = numbered.documents

    # Pages are the first documents.
    page_count = len(numbered.pages)
    pages = documents[:page_count]
    spec_counts = np.bincount(numbered.listings["document"], minlength=page_count + 1)
    yield _rows(
        "pages",
        release_id=numbered.pages["release"].tolist(),
        package_id=numbered.pages["package"].tolist(),
        path=[document.path for document in pages],
        sha256=[document.sha256 for document in pages],
        format=[document.page.format for document in documents if document.page],
        spec_count=spec_counts[1 : page_count + 1].tolist(),
    )

    # Indexes, with the number of their records and of the specs that they list.
    records = numbered.records
    listed = records.where(records["is_listed"] > 0)
    record_counts = np.bincount(records["document"], minlength=len(documents) + 1)
    listed_counts = np.bincount(listed["document"], minlength=len(documents) + 1)
    rows = []
    for number, document in enumerate(documents, start=1):
        facts = document.index_facts
        if facts:
            rows.append(
                {
                    "release_id": ids["releases"][document.release],
                    "stack_id": ids["stacks"][facts.stack],
                    "path": document.path,
                    "sha256": document.sha256,
                    "format": facts.format,
                    "url": facts.url,
                    "is_named": facts.is_named,
                    "is_signed": facts.is_signed,
                    "settings": facts.settings,
                    "record_count": int(record_counts[number]),
                    "spec_count": int(listed_counts[number]),
                    "position": int(order.position[number]),
                }
            )
    columns = {}
    for column in tables.table("mirrors").columns[1:]:
        columns[column.name] = [row[column.name] for row in rows]
    yield _rows("mirrors", **columns)


def _record_rows(
    numbered: Numbered, mirrors: Numbers, order: MirrorOrder, modules: Modules
) -> Iterator[TableRows]:
    """Yield the rows of records, installations and modules.

    Args:
        numbered: all columns.
        mirrors: the mirror of each document.
        order: the order of these mirrors.
        modules: the modules, and the specs that they load.
    """
    yield "nodes", [(number, *node) for node, number in numbered.ids["nodes"].items()]
    records = numbered.records.having(mirror=mirrors[numbered.records["document"]])
    yield _frame_rows(numbered, "record_ranges", record_ranges(records, order))

    # Installed specs, each with the module that loads it.
    installs = numbered.texts.installs.things
    install_rows = []
    installed = records.where(records["install"] > 0)
    for spec, mirror, document, number in installed.rows(
        "spec", "mirror", "document", "install"
    ):
        module_id = modules.loading.get((spec, document))
        install_rows.append((spec, mirror, *installs[number - 1], module_id))
    yield "installs", install_rows

    # Modules. All fields after the path and the release are columns.
    release_ids = numbered.ids["releases"]
    module_rows = []
    for number, module in enumerate(modules.modules, start=1):
        release = release_ids[str(module.release)]
        module_rows.append((number, module.path, release, *module[2:]))
    yield "modules", module_rows
    yield _frame_rows(numbered, "splices", records.where(records["build_spec"] > 0))


def _dependency_rows(numbered: Numbered) -> Iterator[TableRows]:
    """Yield the rows of dependencies, and of their types and virtual packages.

    A use has types, virtual packages, and whether it is direct. Each becomes a column
    with the number of the use, which stands for the id of the types or virtual packages
    of this use, or for its `direct`.
    """
    uses = numbered.ids["uses"]
    values: dict[str, list[Any]] = {"direct": [None, *(use.direct for use in uses)]}
    for column in ("types", "virtuals"):
        texts = [",".join(getattr(use, column)) for use in uses]
        ids = {text: number for number, text in enumerate(sorted(set(texts)), start=1)}
        name = f"dependency_{column}"
        values[name.removesuffix("s")] = [0, *(ids[text] for text in texts)]
        yield _rows(name, **{column: ids})
    use = numbered.edges["use"]
    edges = numbered.edges.having(
        dependency_type=use, dependency_virtual=use, direct=use
    )
    yield _frame_rows(numbered, "dependencies", edges, **values)


def _problem_rows(
    numbered: Numbered, mirrors: Numbers, problems: Iterable[tuple[int | str, Problem]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `problems`, each with its source.

    A source is the number of a page or an index, or the path of another file.
    """
    for row_id, (source, problem) in enumerate(problems, start=1):
        path = source
        page = None
        mirror = None
        if isinstance(source, int):
            path = numbered.documents[source - 1].path
            mirror = int(mirrors[source]) or None
            if mirror is None:
                page = source
        yield row_id, path, page, mirror, *problem


def _counted_rows(numbered: Numbered, counts: Counts) -> Iterator[TableRows]:
    """Yield the rows of the tables that have counts."""
    ids = numbered.ids
    columns = counts.columns
    yield _release_rows(numbered, counts)

    # Packages. A spec that a release lists is no binary if a document that lists it has
    # a record of it as an external.
    records = numbered.records
    is_listed = numbered.specs["is_listed"] > 0
    is_external_where_listed = _are_external(
        numbered, records.where(records["is_listed"] > 0)
    )
    is_binary = is_listed & ~is_external_where_listed
    is_gone = np.array(columns["specs"]["is_gone"], bool)
    yield _rows(
        "packages",
        name=ids["packages"],
        newest_version=_newest_versions(numbered, is_binary, is_gone),
        **columns["packages"],
    )

    # Stacks, configurations and specs.
    stacks = ids["stacks"]
    is_root = [name == ROOT for name in stacks]
    yield _rows("stacks", name=stacks, is_root=is_root, **columns["stacks"])
    configurations = {}
    for part in tables.CONFIGURATION:
        ids_of_part = numbered.configurations[part]
        configurations[tables.ID_COLUMNS[part]] = ids_of_part[1:].tolist()
    yield _rows("configurations", **configurations, **columns["configurations"])
    yield _rows(
        "specs",
        hash=numbered.hashes,
        configuration_id=numbered.specs["configuration"].tolist(),
        stack_set_id=numbered.specs["stacks"].tolist(),
        is_binary=is_binary.tolist(),
        is_external=_are_external(numbered, records).tolist(),
        **columns["specs"],
    )

    # Tables that have nothing but counts.
    for table, frame in counts.tables.items():
        yield table, frame.rows()
    facet_rows = enumerate(counts.facets, start=1)
    yield "facet_values", [(row_id, *facet) for row_id, facet in facet_rows]


def _release_rows(numbered: Numbered, counts: Counts) -> TableRows:
    """Return the rows of releases; an installation is known by its index."""
    releases = numbered.ids["releases"]
    installed = installed_releases(numbered.documents)
    branches = snapshot_branches(releases)
    copies = copied_releases(numbered.documents)
    kinds = []
    for name in releases:
        kind = INSTALLED if name in installed else release_kind(name, branches)
        kinds.append(kind)
    return _rows(
        "releases",
        name=releases,
        kind=kinds,
        date=[release_date(name) for name in releases],
        position=releases.values(),
        is_copy=[name in copies for name in releases],
        **counts.columns["releases"],
    )


def _are_external(numbered: Numbered, records: Frame) -> Mask:
    """Return whether each spec is external in one of these records."""
    is_external_node = [False]
    for node in numbered.ids["nodes"]:
        is_external_node.append(node.external is not None)
    is_external_record = np.array(is_external_node)[records["node"]]
    is_external = np.zeros(len(numbered.hashes) + 1, bool)
    is_external[records["spec"][is_external_record]] = True
    return is_external[1:]


def _newest_versions(
    numbered: Numbered, is_binary: Mask, is_gone: Mask
) -> list[str | None]:
    """Return each package's newest version with a binary, or else with an external.

    Binaries that the mirror has lost do not count.
    """
    configurations = list(numbered.ids["configurations"])
    is_listed = numbered.specs["is_listed"] > 0
    newest: dict[str, str | None] = {}
    # Versions with a binary replace those that are only external.
    for is_counted in (is_listed & ~is_gone, is_binary & ~is_gone):
        versions: dict[str, set[str]] = defaultdict(set)
        counted = numbered.specs["configuration"][is_counted]
        for number in numbers_in(counted).tolist():
            configuration = configurations[number - 1]
            versions[configuration.package].add(configuration.version)
        for package, names in versions.items():
            newest[package] = newest_version(names)
    return [newest.get(name) for name in numbered.ids["packages"]]
