"""The releases of an invented site: weekly snapshots, the branch, and the real `v…` releases.

Weeks are counted from the first snapshot, so releases made before it have negative ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

DEVELOP_WEEKS = 30
"""How long `develop` keeps a hash after its last snapshot."""

LAST_SNAPSHOT = date(2025, 7, 13)
ERA_B_FROM = date(2025, 1, 1)
ERA_A_FROM = date(2025, 4, 20)
NAMED_RELEASES = (
    ("v0.18", date(2022, 5, 28)),
    ("v0.19", date(2022, 11, 11)),
    ("v0.20", date(2023, 5, 21)),
    ("v0.21", date(2023, 11, 11)),
    ("v0.22", date(2024, 5, 12)),
    ("v0.22.1", date(2024, 7, 4)),
    ("v0.23", date(2024, 11, 13)),
    ("v0.23.1", date(2025, 2, 19)),
    ("v2025.06.0", date(2025, 6, 22)),
)
LAST_ERA_C_RELEASE = 5


@dataclass(frozen=True, slots=True)
class Release:
    """One release: the week it was made in, and for how many weeks back it keeps hashes."""

    name: str
    era: str
    week: int
    weeks_kept: int = 1

    @property
    def is_named(self) -> bool:
        """Whether this is a `v…` release rather than the branch or a snapshot of it."""
        return self.name.startswith("v")


def releases(snapshots: int) -> tuple[Release, ...]:
    """Return the branch, so many snapshots and the named releases, sorted by name."""
    first = _first(snapshots)
    days = [first + timedelta(weeks=week) for week in range(snapshots)]
    found = [Release(f"develop-{day}", _era(day), week) for week, day in enumerate(days)]
    found.append(Release("develop", "A", snapshots - 1, DEVELOP_WEEKS))
    for number, (name, day) in enumerate(NAMED_RELEASES):
        era = "C" if number <= LAST_ERA_C_RELEASE else _era(max(day, ERA_B_FROM))
        found.append(Release(name, era, _week(day, first)))
    return tuple(sorted(found, key=lambda release: release.name))


def first_week_of_era_a(snapshots: int) -> int:
    """Return the week from which specs name compilers as Spack 1.0 does."""
    return _week(ERA_A_FROM, _first(snapshots))


def _first(snapshots: int) -> date:
    return LAST_SNAPSHOT - timedelta(weeks=snapshots - 1)


def _week(day: date, first: date) -> int:
    return (day - first).days // 7


def _era(day: date) -> str:
    if day < ERA_B_FROM:
        return "C"
    return "B" if day < ERA_A_FROM else "A"
