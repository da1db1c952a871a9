"""The first page, the page about the site, and the pages of a release, a stack and its
gaps.

Functions return the variables of a template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from spack_cache_db.errors import counted
from spack_cache_db.query.answers.install import choose_example
from spack_cache_db.query.commands.load import explicit_count
from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.open.lookups import Lookups, Release, Stack, releases_of_stack
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.mirrors import mirrored_release
from spack_cache_db.query.stored.origin import read_examples, read_origin
from spack_cache_db.query.stored.presence import packages_in_stacks
from spack_cache_db.query.stored.totals import (
    PAGES,
    count_by,
    facet_counts,
    newest_snapshot,
    read_mirrors,
    read_totals,
)
from spack_cache_db.site.filters import (
    AddressFields,
    NameCounts,
    Pairs,
    data_links,
    most_first,
    paginated,
    value_of,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.changes import latest_changes
from spack_cache_db.site.pages.feeds import Topic, date_of, load_feed
from spack_cache_db.site.pages.lists import LIST_ROWS
from spack_cache_db.site.pages.missing import missing
from spack_cache_db.site.site import Site

OLD = 30
"""Days after which a snapshot is called old."""
BARS = 12
"""Stacks in the chart of the largest stacks."""
COVERAGE_ROWS = 100
COLUMN_KINDS = ("family", "target", "stack")


def load_home(lookups: Lookups) -> dict[str, Any]:
    """Return the first page, with the age of the newest snapshot if it is old."""
    changes = load_feed(lookups, Topic())["entries"]
    return {
        "owner": read_origin(lookups.conn).owner,
        "examples": read_examples(lookups.conn),
        "totals": lookups.once(read_totals, lambda: read_totals(lookups.conn)),
        "targets": len(lookups.families),
        "age": age_of(newest_snapshot(lookups), date.today()),
        "change": changes[0] if changes else None,
    }


def age_of(day: str | None, today: date) -> str | None:
    """Return the age of a day in words; None if it is not older than `OLD` days."""
    snapshot = date_of(day)
    days = (today - snapshot).days if snapshot else 0
    if days <= OLD:
        return None
    months, years = days // 30, days // 365
    age = counted(months, "month") if months < 12 else counted(years or 1, "year")
    return f"{age} old"


def load_about(lookups: Lookups) -> dict[str, Any]:
    """Return the page about the site, with the binaries of each snapshot, the oldest
    first.
    """
    snapshots = sorted(
        (release.date, release.name, release.spec_count)
        for release in lookups.releases.values()
        if release.date
    )
    families: Counter[str] = Counter()
    for target, count in facet_counts(lookups.conn)["target"].items():
        families[lookups.families[target]] += count
    stacks = most_first(
        {stack.name: stack.spec_count for stack in lookups.stacks.values()}
    )
    return {
        "totals": lookups.once(read_totals, lambda: read_totals(lookups.conn)),
        "over_time": [(name, count) for _, name, count in snapshots],
        "families": most_first(families),
        "stacks": stacks[:BARS],
        "first_snapshot": snapshots[0][0] if snapshots else None,
        "pages": [*select(lookups.conn, PAGES)],
        "mirrors": read_mirrors(lookups.conn),
    }


def load_release(lookups: Lookups, release: Release, _: Pairs) -> dict[str, Any]:
    """Return the page of a release, with the releases before and after."""
    after = (
        item.name for item in lookups.releases.values() if item.previous == release.id
    )
    return {
        "release": release,
        "packages": sorted(_counts(lookups, release.id, None, "package").items()),
        "charts": _charts(facet_counts(lookups.conn, release.id)),
        "before": getattr(lookups.before(release), "name", None),
        "after": next(after, None),
        "chosen": choose_example(lookups, release),
        "mirror": mirrored_release(lookups, release),
        "gone": gone_among(lookups, (Condition("release", release.name, release.id),)),
        "explicit_count": explicit_count(lookups.conn, release.name),
    }


def load_stack(lookups: Lookups, stack: Stack, _: Pairs) -> dict[str, Any]:
    """Return the page of a stack, with its binaries in each release."""
    facets = {
        facet: _counts(lookups, None, stack.id, facet)
        for facet in ("target", "compiler")
    }
    in_releases = releases_of_stack(lookups.conn, stack.name)
    return {
        "stack": stack,
        "packages": sorted(_counts(lookups, None, stack.id, "package").items()),
        "gone": gone_among(lookups, (Condition("stack", stack.name, stack.id),)),
        "charts": _charts(facets),
        "releases": [
            (release.name, in_releases[key])
            for key, release in lookups.releases.items()
            if key in in_releases
        ],
        "changes": latest_changes(lookups, stack=stack.name),
    }


def _counts(
    lookups: Lookups, release: int | None, stack: int | None, column: str
) -> dict[str, int]:
    """Return the number of binaries for each word of a column."""
    counts = count_by(lookups, release, stack, column)
    return {word: count.specs for (word,), count in counts.items()}


def _charts(facets: Mapping[str, Mapping[str, int]]) -> dict[str, NameCounts]:
    """Return the values of each filter with their numbers of binaries, the most
    first.
    """
    return {
        facet: most_first(
            {value_of(facet, word): count for word, count in counts.items()}
        )
        for facet, counts in facets.items()
    }


@dataclass(frozen=True, slots=True)
class CoverageFilters(AddressFields):
    """The kind of columns, the reference, and the page of rows."""

    by: str = ""
    reference: str = ""
    page: str = ""

    @property
    def kind(self) -> str:
        """The kind of the columns; families by default."""
        return self.by if self.by in COLUMN_KINDS else COLUMN_KINDS[0]


def load_coverage(lookups: Lookups, release: Release, pairs: Pairs) -> dict[str, Any]:
    """Return the gaps of a release.

    A gap is a package without a binary in a column where the reference has one. The
    reference is a column, by default the one with most packages, or another release.
    """
    filters, fault = CoverageFilters.parse(pairs), None
    binaries = _binaries(lookups, release, filters.kind)
    packages = Counter(column for _, column in binaries)
    reference = filters.reference
    other = lookups.release(reference)
    if other is not None:
        expected = {*_binaries(lookups, other, filters.kind)}
    else:
        if reference not in packages:
            fault = (
                f"Neither a release nor a column is called {reference}."
                if reference
                else None
            )
            reference = most_first(packages)[0][0] if packages else ""
        names = [package for package, column in binaries if column == reference]
        expected = {(package, column) for package in names for column in packages}
    if filters.by not in ("", *COLUMN_KINDS):
        fault = (
            f"There are no columns by {filters.by}: choose {', '.join(COLUMN_KINDS)}."
        )
    gaps = expected - binaries.keys()
    gap_counts = Counter(column for _, column in gaps)
    columns = most_first({column: packages[column] for column in packages | gap_counts})
    rows = sorted({package for package, _ in gaps})
    window = paginated(len(rows), filters.page, COVERAGE_ROWS)
    return {
        "release": release,
        "filters": filters,
        "reference": reference,
        "columns": columns,
        "gaps": gaps,
        "gap_counts": gap_counts,
        "binaries": binaries,
        "rows": rows[window.rows],
        "row_count": len(rows),
        "window": window,
        "fault": fault,
    }


def _binaries(
    lookups: Lookups, release: Release, kind: str
) -> Counter[tuple[str, str]]:
    """Return the number of binaries in a release, by package and column."""
    if kind == "stack":
        rows = packages_in_stacks(lookups.conn, release.id)
        return Counter({(package, stack): count for package, stack, count in rows})
    binaries: Counter[tuple[str, str]] = Counter()
    counts = count_by(lookups, release.id, None, "package", "target")
    for (package, target), count in counts.items():
        binaries[package, lookups.families[target] if kind == "family" else target] += (
            count.specs
        )
    return binaries


def home(site: Site, request: PageRequest) -> PageResponse:
    """Return `/`."""
    page = load_home(site.lookups)
    look_day = site.look_day
    return site.page(
        request, "home.html", page=page, feed=Topic().feed, look_day=look_day
    )


OVERVIEWS: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "release": (load_release, "build_listings"),
    "stack": (load_stack, "spec_stacks"),
    "coverage": (load_coverage, "release_counts"),
}
"""The functions of pages about a release or a stack, and the tables of their data."""


def overview(
    site: Site, request: PageRequest, subject: str, **names: str
) -> PageResponse:
    """Return `/release/<name>`, `/stack/<name>` or `/coverage/<release>`."""
    load, table = OVERVIEWS[subject]
    ((kind, name),) = names.items()
    record = (
        site.lookups.release(name) if kind == "release" else site.lookups.stack(name)
    )
    if record is None:
        return missing(site, request, kind, name)
    page = load(site.lookups, record, request.pairs)
    links = data_links(site.settings.route, table, [(kind, name)], many=True)
    feed = Topic(stack=name).feed if kind == "stack" else None
    return site.page(
        request,
        f"{subject}.html",
        page=page,
        links=links,
        feed=feed,
        first_rows=LIST_ROWS,
    )


def about(site: Site, request: PageRequest) -> PageResponse:
    """Return `/about`."""
    page = load_about(site.lookups)
    look_day = site.look_day
    others = request.databases
    return site.page(request, "about.html", page=page, others=others, look_day=look_day)
