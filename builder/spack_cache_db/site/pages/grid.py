"""The grid of a package: versions by targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spack_cache_db.query.configurations import Counted

GRID_ROWS = 8


@dataclass(frozen=True, slots=True)
class Grid:
    """Counts of specs by version and target; `None` where there are none."""

    targets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    version_count: int


def grid_of(matching: Sequence[Counted], every_version: bool) -> Grid:
    """Return how many of the matching specs there are by version and target."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in matching:
        counts[each.configuration.version, each.configuration.target] += each.spec_count
    newest_first = sorted(matching, key=lambda each: -each.position)
    versions = list(dict.fromkeys(each.configuration.version for each in newest_first))
    targets = tuple(sorted({each.configuration.target for each in matching}))
    return Grid(
        targets=targets,
        rows=tuple(
            (version, tuple(counts.get((version, target)) for target in targets))
            for version in (versions if every_version else versions[:GRID_ROWS])
        ),
        version_count=len(versions),
    )
