"""The pages of a release and of a stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from spack_cache_db.query.database import (
    Lookups,
    Release,
    Stack,
    facets_of_release,
    releases_of_stack,
)
from spack_cache_db.query.installation import Commands, explicit_count, install_example
from spack_cache_db.query.totals import count_by
from spack_cache_db.site.pages.changes import Sides, latest_changes
from spack_cache_db.site.pages.filters import NameCounts, hosts_of, most_first, value_of

FACETS = {
    "target": "Targets",
    "compiler": "Compilers",
    "os": "Operating systems",
    "stack": "Stacks",
}
"""Facets of a release, which are filters as well, with their titles."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart of the specs for each value of a filter, the largest first.

    Attributes:
        addresses: for each value, the address of the packages that are counted.
    """

    title: str
    facet: str
    bars: NameCounts
    addresses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReleasePage:
    """The content of a release's page.

    Attributes:
        explicit_count: the number of explicitly installed specs.
    """

    release: Release
    packages: NameCounts
    hosts: Mapping[str, tuple[str, ...]]
    charts: tuple[Chart, ...]
    before: str | None
    after: str | None
    install: Commands
    explicit_count: int


@dataclass(frozen=True, slots=True)
class StackPage:
    """The content of a stack's page."""

    stack: Stack
    packages: NameCounts
    hosts: Mapping[str, tuple[str, ...]]
    charts: tuple[Chart, ...]
    releases: NameCounts
    changes: tuple[Sides, ...]


def load_release(lookups: Lookups, name: str) -> ReleasePage | None:
    """Return the page of a release; None if it does not exist."""
    release = lookups.release(name)
    if release is None:
        return None
    counts: dict[str, dict[str, int]] = {}
    for facet, value, count in facets_of_release(lookups.conn, release.id):
        counts.setdefault(facet, {})[value] = count
    stacks = {stack.name for stack in lookups.stacks.values()}
    counts["stack"] = {
        value: count for value, count in counts.get("stack", {}).items() if value in stacks
    }
    before = lookups.before(release)
    after = (item.name for item in lookups.releases.values() if item.previous == release.id)
    packages = count_by(lookups, release, None, "package")
    return ReleasePage(
        release=release,
        packages=tuple(sorted((package, count.specs) for (package,), count in packages.items())),
        hosts=hosts_of(counts.get("target", ())),
        charts=tuple(
            _chart(title, facet, counts[facet], {"release": name})
            for facet, title in FACETS.items()
            if counts.get(facet)
        ),
        before=before.name if before else None,
        after=next(after, None),
        install=install_example(lookups.conn, release.name),
        explicit_count=explicit_count(lookups.conn, name),
    )


def load_stack(lookups: Lookups, name: str) -> StackPage | None:
    """Return the page of a stack; None if it does not exist."""
    stack = lookups.stack(name)
    if stack is None:
        return None
    packages: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    compilers: Counter[str] = Counter()
    counts = count_by(lookups, None, stack, "package", "target", "compiler")
    for (package, target, compiler), count in counts.items():
        packages[package] += count.specs
        targets[target] += count.specs
        compilers[compiler] += count.specs
    in_releases = releases_of_stack(lookups.conn, name)
    return StackPage(
        stack=stack,
        packages=tuple(sorted(packages.items())),
        hosts=hosts_of(targets),
        charts=(
            _chart("Targets", "target", targets, {"stack": name}),
            _chart("Compilers", "compiler", compilers, {"stack": name}),
        ),
        releases=tuple(
            (release.name, in_releases[key])
            for key, release in lookups.releases.items()
            if key in in_releases
        ),
        changes=latest_changes(lookups, stack=name),
    )


def _chart(title: str, field: str, counts: Mapping[str, int], place: dict[str, str]) -> Chart:
    addresses = {
        word: f"/packages?{urlencode(place | {field: value_of(field, word)})}" for word in counts
    }
    return Chart(title, field, most_first(counts), addresses)
