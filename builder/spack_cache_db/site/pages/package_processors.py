"""The processors for which caches have binaries, as columns that are always the same.

The columns are those of the public cache. A package may also have binaries for other
targets, such as `zen3`: each of the commonest of them is a column behind these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.filters import Filters
from spack_cache_db.spack import processors
from spack_cache_db.spack.processors import LINUX
from spack_cache_db.spack.targets import Build, ancestors, build_runs_on, is_mac

MOST_OTHERS = 3
"""Maximum of columns for targets that are not in `PROCESSORS`."""
_NOTES = {
    "x86-64-v3": "Zen+, Haswell+",
    "x86-64-v4": "Zen 4+, Skylake-X+",
    "aarch64": "any Arm",
    "neoverse v1": "Graviton3",
    "neoverse v2": "Grace, Graviton4",
    "macOS": "M1 to M4",
}
"""Well-known processors, by the name of their column."""


class Processor(NamedTuple):
    """A kind of processor with binaries of its own.

    Attributes:
        name: its name, such as `x86-64-v3`.
        note: processors that are such, for people who know these only.
        short: the name on a phone.
        target: the target of its binaries; empty for any target of the platform.
        platform: their platform.
    """

    name: str
    note: str
    short: str
    target: str
    platform: str

    def has(self, build: Build) -> bool:
        """Return whether a binary was built for this processor."""
        return build.platform == self.platform and self.target in ("", build.target)

    def runs(self, build: Build) -> bool:
        """Return whether a binary runs on this processor, with its platform."""
        if build.platform != self.platform:
            return False
        return not self.target or build_runs_on(build, self.target)

    def filters(self, *, with_platform: bool) -> Filters:
        """Return the filters that only its own binaries satisfy.

        `with_platform` is needed if a package has binaries for several platforms.
        """
        platform = self.platform if with_platform or not self.target else None
        return Filters(target=self.target or None, platform=platform)

    def host_filters(self, builds: Iterable[Build]) -> Filters:
        """Return the filters that all binaries satisfy that run on it.

        `builds` are those of the package: the platform is a filter if any of them for
        another one runs on it. Any Arm may be a Mac, but a `neoverse_v2` is not.
        """
        if not self.target:
            return Filters(platform=self.platform)
        platforms = {
            build.platform for build in builds if build_runs_on(build, self.target)
        }
        has_others = bool(platforms - {self.platform})
        platform = self.platform if has_others else None
        return Filters(host=self.target, platform=platform)


def _always() -> Iterator[Processor]:
    """Yield the processors of `processors.PROCESSORS` that have a filter."""
    for column in processors.PROCESSORS:
        if column is not processors.OTHERS:
            yield Processor(
                name=column.name,
                note=_NOTES[column.name],
                short=column.short,
                target=column.target,
                platform=column.platform,
            )


PROCESSORS = tuple(_always())
"""The columns that every package has."""


def processors_of(
    lookups: Lookups, counts: Mapping[Build, int]
) -> tuple[Processor, ...]:
    """Return `PROCESSORS`, and those of the commonest other binaries.

    Installations are for their own machines, so processors without a spec are left out.

    Args:
        lookups: the database.
        counts: the number of binaries for each platform and target.
    """
    others = {}
    for build, count in counts.items():
        if count and not any(processor.has(build) for processor in PROCESSORS):
            others[build] = count
    most_first = sorted(others, key=lambda build: (-others[build], build))
    columns = []
    for processor in PROCESSORS:
        own = [count for build, count in counts.items() if processor.has(build)]
        if any(own) or not lookups.is_installed:
            columns.append(processor)
    for build in most_first[:MOST_OTHERS]:
        name = build.target
        if build.platform != LINUX:
            name = f"{build.platform} {build.target}"
        columns.append(Processor(name, "", "", build.target, build.platform))
    return tuple(columns)


def nearest_first(
    columns: tuple[Processor, ...], host: str | None
) -> tuple[Processor, ...]:
    """Return processors with the one first whose binaries suit a machine best.

    The order stays if no machine is chosen, or if none of them suits it.
    """
    if host is None:
        return columns
    nearest = nearest_to(columns, host)
    if nearest is None:
        return columns
    others = [processor for processor in columns if processor != nearest]
    return (nearest, *others)


def nearest_to(columns: tuple[Processor, ...], host: str) -> Processor | None:
    """Return the processor whose binaries suit a machine best; None if none does."""
    by_target = {processor.target: processor for processor in reversed(columns)}
    # The column of macOS has all of its targets.
    if is_mac(host):
        return by_target.get("")
    for target in (host, *ancestors(host)):
        if target in by_target:
            return by_target[target]
    return None
