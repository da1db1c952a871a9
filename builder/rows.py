"""Numbered catalogue → rows, one function per table or family of tables, in the schema's order.

Rows are tuples in the order of the schema's columns. Everything that is counted is counted in
`counting.py`; here it only finds its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from .catalogue import Catalogue
from .counting import Statistics
from .normal import VariantRow, variant_row
from .numbering import Numbered
from .records import Problem
from .releases import release_date, release_kind
from .spack import targets
from .spack.variants import split_compiler
from .spack.versions import newest_version

ROOT = "root"
"""The top-level index that lists everything: kept, and never shown as a stack."""

UNKNOWN_SIZE = "-"
"""What pages print where they do not know a size; NULL in the table."""

Rows = Iterable[tuple[Any, ...]]


def all_rows(
    catalogue: Catalogue, numbered: Numbered, statistics: Statistics, refused: Iterable[str]
) -> Iterator[tuple[str, Rows]]:
    """Yield (table name, rows) in the order in which foreign keys can be satisfied.

    Args:
        refused: what there is to say of pages that were left out, one message each.
    """
    dictionaries = numbered.dictionaries
    yield "releases", _release_rows(numbered, statistics)
    yield "packages", _package_rows(numbered, statistics)
    yield "versions", _version_rows(numbered)
    yield (
        "compilers",
        [(at, name, *split_compiler(name)) for name, at in dictionaries.compilers.items()],
    )
    yield "operating_systems", [(at, name) for name, at in dictionaries.operating_systems.items()]
    yield "platforms", [(at, name) for name, at in dictionaries.platforms.items()]
    yield "targets", [(at, name, targets.family(name)) for name, at in dictionaries.targets.items()]
    yield "target_runs_on", _runs_on_rows(dictionaries.targets)
    yield from _stack_rows(numbered, statistics)
    yield from _variant_rows(numbered)
    yield "configurations", _configuration_rows(numbered, statistics)
    yield "specs", _spec_rows(numbered, statistics)
    yield from _listing_rows(catalogue, numbered)
    yield "configuration_releases", statistics.configuration_releases
    yield "configuration_stacks", statistics.configuration_stacks
    yield "pages", _page_rows(numbered)
    yield "facet_counts", [(at, *row) for at, row in enumerate(statistics.facets, start=1)]
    yield "problems", _problem_rows(catalogue, numbered, refused)


def _release_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    for name, at in numbered.dictionaries.releases.items():
        counts = statistics.release_counts[at]
        yield at, name, release_kind(name), release_date(name), at, counts.packages, counts.specs


def _package_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    names: dict[str, list[str]] = {}
    for package, version in numbered.dictionaries.versions:
        names.setdefault(package, []).append(version)
    for name, at in numbered.dictionaries.packages.items():
        counts = statistics.package_counts[at]
        newest = newest_version(names.get(name, []))
        yield (
            at, name, counts.specs, counts.configurations, counts.releases, newest,
            counts.first_seen, counts.last_seen,
        )  # fmt: skip


def _version_rows(numbered: Numbered) -> Rows:
    packages = numbered.dictionaries.packages
    position, previous = 0, ""
    for (package, name), at in numbered.dictionaries.versions.items():
        position = position + 1 if package == previous else 1
        previous = package
        yield at, packages[package], name, position


def _runs_on_rows(ids: dict[str, int]) -> Rows:
    hosts = sorted({*targets.known_targets(), *ids})
    return [(host, ids[name]) for host in hosts for name in ids if targets.runs_on(name, host)]


def _stack_rows(numbered: Numbered, statistics: Statistics) -> Iterator[tuple[str, Rows]]:
    stacks, sets = numbered.dictionaries.stacks, numbered.dictionaries.stack_sets
    counts = statistics.stack_counts
    yield (
        "stacks",
        [
            (at, name, name == ROOT, counts[at].releases, counts[at].specs)
            for name, at in stacks.items()
        ],
    )
    yield "stack_sets", [(at, _json(names), _json(_shown(names))) for names, at in sets.items()]
    yield "stack_set_members", [(at, stacks[name]) for names, at in sets.items() for name in names]


def _variant_rows(numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    variants, sets = numbered.dictionaries.variants, numbered.dictionaries.variant_sets
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
    for at, configuration in enumerate(numbered.configurations, start=1):
        counts = statistics.configuration_counts[at]
        yield (
            at, *numbered.dictionaries.configuration_key(configuration), counts.specs,
            counts.releases, counts.first_seen, counts.last_seen,
        )  # fmt: skip


def _spec_rows(numbered: Numbered, statistics: Statistics) -> Rows:
    return zip(
        range(1, len(numbered.hashes) + 1),
        numbered.hashes,
        numbered.spec_configuration,
        numbered.spec_stacks,
        statistics.spec_releases,
        statistics.spec_first_seen,
        statistics.spec_last_seen,
        strict=True,
    )


def _listing_rows(catalogue: Catalogue, numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    tarballs = catalogue.tarballs
    used = {number for page in numbered.pages for number in catalogue.tarball[_slice(page)]} - {0}
    ids = [0] * (len(tarballs) + 1)
    rows = []
    for at, number in enumerate(sorted(used, key=lambda number: tarballs[number - 1]), start=1):
        ids[number] = at
        rows.append((at, *tarballs[number - 1]))
    yield "tarball_prefixes", rows
    yield "listings", _listings(catalogue, numbered, [each or None for each in ids])
    yield "listing_configurations", _listing_configurations(catalogue, numbered)


def _listings(catalogue: Catalogue, numbered: Numbered, tarball_id: list[int | None]) -> Rows:
    sizes = [None if size == UNKNOWN_SIZE else size for size in catalogue.sizes]
    releases = numbered.dictionaries.releases
    for page in numbered.pages:
        at = _slice(page)
        release = releases[page.release]
        specs = map(numbered.spec_id.__getitem__, catalogue.spec[at])
        stacks = map(numbered.stack_set_id.__getitem__, catalogue.stacks[at])
        size = map(sizes.__getitem__, catalogue.size[at])
        tarball = map(tarball_id.__getitem__, catalogue.tarball[at])
        yield from sorted(
            zip([release] * page.spec_count, specs, stacks, size, tarball, strict=True)
        )


def _listing_configurations(catalogue: Catalogue, numbered: Numbered) -> Rows:
    if not catalogue.doubtful:
        return
    for page in numbered.pages:
        release = numbered.dictionaries.releases[page.release]
        for spec, found in _disagreements(catalogue, numbered, page):
            yield release, spec, found


def _page_rows(numbered: Numbered) -> Rows:
    dictionaries = numbered.dictionaries
    for at, page in enumerate(numbered.pages, start=1):
        release, package = dictionaries.releases[page.release], dictionaries.packages[page.package]
        yield at, release, package, page.path, page.sha256, page.format, page.spec_count


def problems(catalogue: Catalogue, numbered: Numbered) -> Iterator[tuple[int, Problem]]:
    """Yield (page id, problem) for whatever does not add up in pages that are kept."""
    for at, page in enumerate(numbered.pages, start=1):
        for problem in page.problems:
            yield at, problem
        if catalogue.doubtful:
            for spec, _ in _disagreements(catalogue, numbered, page):
                yield at, _two_configurations(numbered.hashes[spec - 1])


def _problem_rows(catalogue: Catalogue, numbered: Numbered, refused: Iterable[str]) -> Rows:
    rows: list[tuple[int | None, Problem]] = [*problems(catalogue, numbered)]
    rows += [(None, Problem("refused", message)) for message in refused]
    for at, (page_id, problem) in enumerate(rows, start=1):
        yield at, page_id, *problem


def _two_configurations(spec_hash: str) -> Problem:
    message = f"the spec {spec_hash} has another configuration here than in a foremost release"
    return Problem("two_configurations", message)


def _disagreements(catalogue: Catalogue, numbered: Numbered, page: Any) -> list[tuple[int, int]]:
    """Return (spec id, configuration id) where a page says otherwise than `specs` does."""
    at = _slice(page)
    pairs = zip(catalogue.spec[at], catalogue.configuration[at], strict=True)
    found = ((numbered.spec_id[spec], numbered.configuration_id[each]) for spec, each in pairs)
    return sorted(pair for pair in found if numbered.spec_configuration[pair[0] - 1] != pair[1])


def _slice(page: Any) -> slice:
    return slice(page.start, page.start + page.spec_count)


def _shown(stacks: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stack for stack in stacks if stack != ROOT)


def _json(texts: tuple[str, ...]) -> str:
    return msgspec.json.encode(texts).decode()
