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
from spack_cache_db.query.installation import (
    Install,
    Installation,
    explicit_count,
    install_example,
)
from spack_cache_db.site.pages.changes import Sides, latest_changes
from spack_cache_db.site.pages.filters import NameCounts, hosts_of, value_of
from spack_cache_db.site.pages.lists import counts

FACETS = (
    ("targets", "target", "Targets"),
    ("compilers", "compiler", "Compilers"),
    ("oss", "os", "Operating systems"),
    ("stacks", "stack", "Stacks"),
)


@dataclass(frozen=True, slots=True)
class Chart:
    """Counts of specs by the values of one facet, the largest first.

    Attributes:
        addresses: for each value, where what it counts is shown.
    """

    title: str
    facet: str
    bars: NameCounts
    addresses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReleasePage:
    """Everything the page of a release shows.

    `explicit_count` is how much of an installed tree somebody asked for.
    """

    release: Release
    packages: NameCounts
    hosts: Mapping[str, tuple[str, ...]]
    charts: tuple[Chart, ...]
    before: str | None
    after: str | None
    install: Install | Installation
    explicit_count: int


@dataclass(frozen=True, slots=True)
class StackPage:
    """Everything the page of a stack shows."""

    stack: Stack
    packages: NameCounts
    hosts: Mapping[str, tuple[str, ...]]
    charts: tuple[Chart, ...]
    releases: NameCounts
    changes: tuple[Sides, ...]


def load_release(lookups: Lookups, name: str) -> ReleasePage | None:
    """Return the page of the release called `name`; None if there is none."""
    release = lookups.release(name)
    if release is None:
        return None
    rows = [*facets_of_release(lookups.conn, release.id)]
    charts = []
    for source, facet, title in FACETS:
        stacks = {each.name for each in lookups.stacks.values()}
        bars = tuple(
            (value, count)
            for kind, value, count in rows
            if kind == source and (source != "stacks" or value in stacks)
        )
        charts.append(_chart(title, facet, dict(bars), {"release": name}))
    before = lookups.before(release)
    after = (each.name for each in lookups.releases.values() if each.previous == release.id)
    packages = counts(lookups, release, None, "package")
    return ReleasePage(
        release=release,
        packages=tuple(sorted((package, count.specs) for (package,), count in packages.items())),
        hosts=hosts_of(value for kind, value, _ in rows if kind == "targets"),
        charts=tuple(each for each in charts if each.bars),
        before=before.name if before else None,
        after=next(after, None),
        install=install_example(lookups.conn, release.name),
        explicit_count=explicit_count(lookups.conn, name),
    )


def load_stack(lookups: Lookups, name: str) -> StackPage | None:
    """Return the page of the stack called `name`; None if there is none."""
    stack = lookups.stack(name)
    if stack is None:
        return None
    packages: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    compilers: Counter[str] = Counter()
    found = counts(lookups, None, stack, "package", "target", "compiler")
    for (package, target, compiler), count in found.items():
        packages[package] += count.specs
        targets[target] += count.specs
        compilers[compiler] += count.specs
    listed = releases_of_stack(lookups.conn, name)
    return StackPage(
        stack=stack,
        packages=tuple(sorted(packages.items())),
        hosts=hosts_of(targets),
        charts=(
            _chart("Targets", "target", targets, {"stack": name}),
            _chart("Compilers", "compiler", compilers, {"stack": name}),
        ),
        releases=tuple(
            (release.name, listed[key])
            for key, release in lookups.releases.items()
            if key in listed
        ),
        changes=latest_changes(lookups, stack=name),
    )


def _chart(title: str, facet: str, counts: Mapping[str, int], place: dict[str, str]) -> Chart:
    ordered = tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
    addresses = {
        word: f"/packages?{urlencode(place | {facet: value_of(facet, word)})}" for word in counts
    }
    return Chart(title, facet, ordered, addresses)
