"""Numbered input → rows, one function per table or family of tables.

Rows are tuples in the order of the schema's columns. Everything that is counted is counted in
`counting.py`; here it only finds its column. The tables without counts can be filled before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from spack_cache_db.build.arrays import rows_of
from spack_cache_db.build.counting import Statistics
from spack_cache_db.build.graph_rows import graph_rows, mirror_ids
from spack_cache_db.build.ids import Numbered
from spack_cache_db.build.problems import problems
from spack_cache_db.records import ROOT, Problem
from spack_cache_db.releases import release_date, release_kind
from spack_cache_db.spack import targets
from spack_cache_db.spack.compilers import split_compiler
from spack_cache_db.spack.variants import VariantRow, variant_row
from spack_cache_db.spack.versions import newest_version

Rows = Iterable[tuple[Any, ...]]


def plain_rows(numbered: Numbered, refused: Iterable[str]) -> Iterator[tuple[str, Rows]]:
    """Yield (table name, rows) of the tables in which nothing is counted.

    Args:
        refused: what there is to say of pages that were left out, one message each.
    """
    names = numbered.names
    yield "versions", _version_rows(numbered)
    yield "compilers", [(at, name, *split_compiler(name)) for name, at in names.compilers.items()]
    yield "operating_systems", [(at, name) for name, at in names.operating_systems.items()]
    yield "platforms", [(at, name) for name, at in names.platforms.items()]
    yield "targets", [(at, name, targets.family(name)) for name, at in names.targets.items()]
    yield "target_runs_on", _runs_on_rows(names.targets)
    yield from _stack_set_rows(numbered)
    yield from _variant_rows(numbered)
    yield from _listing_rows(numbered)
    yield "pages", _page_rows(numbered)
    yield from graph_rows(numbered)
    yield "problems", _problem_rows(numbered, refused)


def counted_rows(numbered: Numbered, statistics: Statistics) -> Iterator[tuple[str, Rows]]:
    """Yield (table name, rows) of the other tables."""
    yield "releases", _release_rows(numbered, statistics)
    yield "packages", _package_rows(numbered, statistics)
    yield "stacks", _stack_rows(numbered, statistics)
    yield "configurations", _configuration_rows(numbered, statistics)
    yield "specs", _spec_rows(numbered, statistics)
    yield "configuration_releases", statistics.configuration_releases.rows()
    yield "configuration_stacks", statistics.configuration_stacks.rows()
    yield "facet_counts", [(at, *row) for at, row in enumerate(statistics.facets, start=1)]


def _release_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    counts = zip(statistics.release_packages, statistics.release_specs, strict=True)
    for (name, at), count in zip(numbered.names.releases.items(), counts, strict=True):
        yield at, name, release_kind(name), release_date(name), at, *count


def _package_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    names: dict[str, set[str]] = {}
    for each, count in zip(numbered.configurations, statistics.configuration_specs, strict=True):
        if count:
            names.setdefault(each.package, set()).add(each.version)
    packages = numbered.names.packages
    return zip(
        packages.values(),
        packages,
        statistics.package_specs,
        statistics.package_configurations,
        statistics.package_seen.releases,
        [newest_version(names.get(name, ())) for name in packages],
        statistics.package_seen.first,
        statistics.package_seen.last,
        strict=True,
    )


def _version_rows(numbered: Numbered) -> Rows:
    packages = numbered.names.packages
    position, previous = 0, ""
    for (package, name), at in numbered.names.versions.items():
        position = position + 1 if package == previous else 1
        previous = package
        yield at, packages[package], name, position


def _runs_on_rows(ids: dict[str, int]) -> Rows:
    hosts = sorted({*targets.known_targets(), *ids})
    return [(host, ids[name]) for host in hosts for name in ids if targets.runs_on(name, host)]


def _stack_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    counts = zip(statistics.stack_releases, statistics.stack_specs, strict=True)
    for (name, at), count in zip(numbered.names.stacks.items(), counts, strict=True):
        yield at, name, name == ROOT, *count


def _stack_set_rows(numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    stacks, sets = numbered.names.stacks, numbered.names.stack_sets
    yield "stack_sets", [(at, _json(names), _json(_shown(names))) for names, at in sets.items()]
    yield "stack_set_members", [(at, stacks[name]) for names, at in sets.items() for name in names]


def _variant_rows(numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    variants, sets = numbered.names.variants, numbered.names.variant_sets
    parsed = {text: variant_row(text) or VariantRow(text, "", ("",)) for text in variants}
    yield (
        "variants",
        [(at, parsed[text].name, parsed[text].value, text) for text, at in variants.items()],
    )
    yield (
        "variant_values",
        [
            (at, value)
            for text, at in variants.items()
            for value in sorted(set(parsed[text].values))
        ],
    )
    yield "variant_sets", [(at, " ".join(texts)) for texts, at in sets.items()]
    yield (
        "variant_set_members",
        [(at, variants[text]) for texts, at in sets.items() for text in texts],
    )


def _configuration_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    counts = zip(statistics.configuration_specs, *statistics.configuration_seen, strict=True)
    for at, (each, count) in enumerate(zip(numbered.configurations, counts, strict=True), start=1):
        yield at, *numbered.names.configuration_row(each), *count


def _spec_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    return zip(
        range(1, len(numbered.hashes) + 1),
        numbered.hashes,
        numbered.spec_configuration.tolist(),
        numbered.spec_stacks.tolist(),
        *statistics.spec_seen,
        strict=True,
    )


def _listing_rows(numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    tarballs, listings = numbered.names.tarballs, numbered.listings
    sizes = [None, *numbered.sizes]
    columns = (listings.release, listings.spec, listings.stacks, listings.size, listings.tarball)
    yield "tarball_prefixes", [(at, *tarball) for tarball, at in tarballs.items()]
    yield (
        "listings",
        (
            (release, spec, stacks, sizes[size], tarball or None)
            for release, spec, stacks, size, tarball in rows_of(*columns)
        ),
    )
    odd = numbered.disagreements
    yield "listing_configurations", rows_of(odd.release, odd.spec, odd.configuration)


def _page_rows(numbered: Numbered) -> Rows:
    keys = zip(numbered.page_release.tolist(), numbered.page_package.tolist(), strict=True)
    listed = np.bincount(numbered.listings.document, minlength=len(numbered.documents)).tolist()
    for at, (each, key) in enumerate(zip(numbered.documents, keys, strict=False), start=1):
        if each.page:
            yield at, *key, each.path, each.sha256, each.page.format, listed[at - 1]


def _problem_rows(numbered: Numbered, refused: Iterable[str]) -> Rows:
    """Yield what does not add up, each with its page or its mirror; others name the document."""
    mirrors = mirror_ids(numbered)
    found: list[tuple[int | None, int | None, Problem]] = []
    for document, problem in problems(numbered):
        each = numbered.documents[document]
        if not each.page and document not in mirrors:
            problem = problem._replace(message=f"{each.path}: {problem.message}")
        found.append((document + 1 if each.page else None, mirrors.get(document), problem))
    found += [(None, None, Problem("refused", message)) for message in refused]
    for at, (page, mirror, problem) in enumerate(found, start=1):
        yield at, page, mirror, *problem


def _shown(stacks: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stack for stack in stacks if stack != ROOT)


def _json(texts: tuple[str, ...]) -> str:
    return msgspec.json.encode(texts).decode()
