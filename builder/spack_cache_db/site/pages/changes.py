"""The page `/diff/<old>...<new>`: the changes between two releases or stacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from spack_cache_db.query.answers.diff import Changes
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import grouped
from spack_cache_db.site.pages.filters import AddressFields

MOST_EXPLAINED = 5_000
"""Limit of added and removed hashes up to which causes are searched; more would take seconds."""
MOST_LISTED = 15_000
"""Limit of configurations in JSON or CSV; 15,000 take some 60 MB."""
TOO_MANY = (
    "{:,} configurations differ, but this site lists at most {:,}: add package, stack, target or"
    " host, or use the command diff on the downloaded file"
)
MOST_ROWS = 150
"""Limit of configurations that are listed; beyond it, packages link to their own comparison."""


@dataclass(frozen=True, slots=True)
class Sides(AddressFields):
    """The names in the address of a comparison: two releases, and names that narrow it."""

    old: str = ""
    new: str = ""
    stack: str | None = None
    package: str | None = None
    target: str | None = None
    host: str | None = None

    def address(self, form: str = "", **changes: str | None) -> str:
        """Return the address of the comparison after some changes, as a page or in a form."""
        sides = replace(self, **changes)  # type: ignore[arg-type]
        old, new = (quote(side, safe=":") for side in (sides.old, sides.new))
        return f"/diff/{old}...{new}{form and f'.{form}'}{sides.query(old='', new='')}"


def load_changes(lookups: Lookups, changes: Changes, package: str | None) -> dict[str, Any]:
    """Return the variables of the page: `counts` and `rows` are configurations by package.

    There are rows for one package or for few changes. Causes are None beyond `MOST_EXPLAINED`.
    """
    names, package_of = lookups.words["package"], lookups.column("configurations", "package")
    counts = {
        change: Counter(sorted(names[package_of[key]] for key in keys))
        for change, keys in changes.by_change.items()
    }
    rows = {}
    # Two snapshots may differ in thousands of configurations.
    if package or len(changes.amounts) <= MOST_ROWS:
        for change, changed in changes.configurations().items():
            rows[change] = grouped((row.configuration.package, row) for row in changed[:MOST_ROWS])
    versions = {change: grouped(pairs) for change, pairs in changes.versions._asdict().items()}
    return {
        "diff": changes,
        "counts": counts,
        "rows": rows,
        "versions": versions,
        "upgrades": sorted(versions["added"].keys() & versions["removed"].keys()),
        "causes": changes.causes(MOST_EXPLAINED),
    }


def with_defaults(lookups: Lookups, sides: Sides) -> Sides:
    """Return sides completed with the two newest snapshots, or the first two releases."""
    releases = lookups.releases.values()
    names = [release.name for release in releases if release.kind == "snapshot"]
    if len(names) < 2:
        names = [release.name for release in releases]
    new, old, *_ = *names, "", ""
    return replace(sides, old=sides.old or old, new=sides.new or new)


def latest_changes(lookups: Lookups, **narrowed: str) -> tuple[Sides, ...]:
    """Return the comparison of the newest release of each kind with the one before it."""
    first: dict[str, Sides] = {}
    for release in lookups.releases.values():
        if before := lookups.before(release):
            first.setdefault(release.kind, Sides(before.name, release.name, **narrowed))
    return tuple(first.values())
