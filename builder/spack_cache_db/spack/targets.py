"""CPU targets: which of them run on which, and which satisfy a `target=`.

A target is a processor (`zen3`), a family (`x86_64`) or a level of a family
(`x86_64_v3`). The package archspec knows them and their order: each target has
ancestors, whose binaries also run on it. A target that archspec does not know is its
own family and runs nothing but itself, as in Spack.

A machine has a platform too, and Spack installs no binary of another one. The
processor tells whether the machine is a Mac (`is_mac`): `m2` is in Macs only, `zen3`
in none. So `aarch64` runs on `m2` and on `neoverse_v2`, but a binary of macOS for
`aarch64` runs on `m2` alone (`build_runs_on`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import archspec.cpu

MAC = "darwin"
"""Spack's name of the platform of macOS."""
_LAST_OF_INTEL = ("cascadelake", "icelake")
"""Intel's processors in the last Macs that had one, of 2019 and 2020."""
_FAMILIES_OF_MACS = ("aarch64", "x86_64")
"""The families of targets for which Spack builds on macOS."""

_COMMON_MAKERS = {
    "AuthenticAMD": "AMD",
    "GenuineIntel": "Intel",
    "ARM": "Arm",
    "Apple": "Apple",
}
"""The makers that come first in lists, by archspec's names for them."""

_OTHER_MAKERS = {"Nvidia": "NVIDIA"}
"""The names of other makers that archspec writes differently."""

_MAKERS = _COMMON_MAKERS | _OTHER_MAKERS

_YEARS = {
    # AMD
    "k10": 2007,
    "bulldozer": 2011,
    "piledriver": 2012,
    "steamroller": 2014,
    "excavator": 2015,
    "zen": 2017,
    "zen2": 2019,
    "zen3": 2020,
    "zen4": 2022,
    "zen5": 2024,
    # Intel
    "nocona": 2004,
    "core2": 2006,
    "nehalem": 2008,
    "westmere": 2010,
    "sandybridge": 2011,
    "ivybridge": 2012,
    "haswell": 2013,
    "broadwell": 2014,
    "skylake": 2015,
    "mic_knl": 2016,
    "skylake_avx512": 2017,
    "cannonlake": 2018,
    "cascadelake": 2019,
    "icelake": 2021,
    "alderlake": 2021,
    "sapphirerapids": 2023,
    "arrowlake": 2024,
    "arrowlake_s": 2024,
    # Arm
    "cortex_a72": 2016,
    "neoverse_n1": 2019,
    "neoverse_v1": 2021,
    "neoverse_n2": 2022,
    "neoverse_v2": 2023,
}
"""The years since which machines with a processor can be bought, where the number of
its ancestors does not tell the order. Processors that are not listed are newer.
"""

_ANY = "Any "
"""Start of the text that stands for a maker where a target has none: `Any x86_64`."""

_ALL_BELOW = re.compile(r":([^:,]+)")
"""A `target=` with everything that runs on one target: `:zen4`."""


class Build(NamedTuple):
    """What a binary was built for: a platform and a target."""

    platform: str
    target: str


def known_targets() -> tuple[str, ...]:
    """Return the names of all targets that archspec knows, sorted."""
    return tuple(sorted(archspec.cpu.TARGETS))


@cache
def ancestors(name: str) -> tuple[str, ...]:
    """Return the other targets whose binaries run on a target, the nearest first.

    Those of zen3 are zen2, zen, x86_64_v3, x86_64_v2 and x86_64.
    """
    target = archspec.cpu.TARGETS.get(name)
    if target is None:
        return ()
    return tuple(ancestor.name for ancestor in target.ancestors)


def hosts_of(builds: Iterable[Build]) -> dict[str, tuple[str, ...]]:
    """Return the targets of machines that run at least one of `builds`, by maker.

    Common makers come first, and of one maker the newest processors.
    """
    builds = set(builds)
    targets = {build.target for build in builds}
    candidates = sorted(targets.union(known_targets()), key=_newest_first)
    hosts: dict[str, list[str]] = {}
    for host in candidates:
        if any(build_runs_on(build, host) for build in builds):
            hosts.setdefault(_maker(host), []).append(host)

    makers = sorted(hosts)
    makers.sort(key=_rank_of_maker)
    return {maker: tuple(hosts[maker]) for maker in makers}


def _newest_first(name: str) -> tuple[float, int, str]:
    """Return what sorts processors, the newest first: by year, and those of one year or
    without one by the number of their ancestors, because newer ones have more.
    """
    year = _YEARS.get(name, math.inf)
    return (-year, -len(ancestors(name)), name)


@cache
def _maker(name: str) -> str:
    """Return the maker of a processor, or `Any x86_64` for a family or its levels."""
    target = archspec.cpu.TARGETS.get(name)
    if target is None or target.vendor == "generic":
        return f"{_ANY}{family(name)}"
    return _MAKERS.get(target.vendor, str(target.vendor))


def _rank_of_maker(maker: str) -> int:
    """Return the place of a maker in lists: AMD, Intel, Arm, Apple, others, and then
    families.
    """
    common = list(_COMMON_MAKERS.values())
    if maker in common:
        return common.index(maker)
    if maker.startswith(_ANY):
        return len(common) + 1
    return len(common)


def is_known(name: str) -> bool:
    """Return whether archspec knows the target."""
    return name in archspec.cpu.TARGETS


def is_generic(name: str) -> bool:
    """Return whether a target is a family or a level of one, not a processor.

    A target that archspec does not know is neither.
    """
    target = archspec.cpu.TARGETS.get(name)
    return target is not None and target.vendor == "generic"


@cache
def family(name: str) -> str:
    """Return the family of a target: `x86_64` for `zen3`."""
    target = archspec.cpu.TARGETS.get(name)
    if target is None:
        return name
    return str(target.family.name)


@cache
def runs_on(target: str, host: str) -> bool:
    """Return whether a processor of type `host` runs what is built for `target`.

    It does if the target is the host or one of its ancestors. That is a partial order:
    of zen3 and haswell, neither runs on the other.
    """
    return target == host or target in ancestors(host)


@cache
def is_mac(host: str) -> bool | None:
    """Return whether a machine with a processor is a Mac; None if it may be one.

    Processors of Apple are in Macs only. Spack also runs on Linux on these, but hardly
    any build cache has binaries for that: `target=:m2` finds them.

    Macs had processors of Intel until 2020, in the last years also Xeons: a machine
    with `cascadelake`, `icelake` or one of their ancestors may be a Mac. Intel's later
    processors and its Xeon Phi (`mic_knl`) were in none, and neither were those of
    AMD, Arm and other makers. Generic targets such as `aarch64` may be a Mac, and so
    may a target that archspec does not know.
    """
    target = archspec.cpu.TARGETS.get(host)
    if target is None:
        return None
    if target.vendor == "Apple":
        return True
    if target.vendor == "GenuineIntel":
        may_be = any(runs_on(host, last) for last in _LAST_OF_INTEL)
    else:
        may_be = target.vendor == "generic" and family(host) in _FAMILIES_OF_MACS
    return None if may_be else False


def macs_of(hosts: Iterable[str]) -> dict[str, bool]:
    """Return whether each machine is a Mac, without machines that may be one."""
    macs = {}
    for host in hosts:
        mac = is_mac(host)
        if mac is not None:
            macs[host] = mac
    return macs


def has_platform(host: str, platform: str) -> bool:
    """Return whether a machine with a processor can have a platform.

    A Mac has `darwin`, and all other machines have another one.
    """
    mac = is_mac(host)
    return mac is None or mac == (platform == MAC)


def build_runs_on(build: Build, host: str) -> bool:
    """Return whether a machine of type `host` runs the binaries of a build.

    It does if it runs the target and can have the platform.
    """
    return runs_on(build.target, host) and has_platform(host, build.platform)


def machine_of(constraint: str) -> str | None:
    """Return the target of a constraint that means all that runs on it, else None.

    That is zen4 for `:zen4`. A single name (`zen4`) is a target but no machine, because
    other binaries run on zen4 too. Lists and other ranges, such as `:` for any target,
    name no machine.
    """
    match = _ALL_BELOW.fullmatch(constraint)
    return None if match is None else match[1]


def unknown_bounds(constraint: str) -> tuple[str, ...]:
    """Return the bounds of ranges that archspec does not know, so they have no order.

    Args:
        constraint: the value of a `target=`; see `target_matches`.
    """
    unknown = []
    for part in constraint.split(","):
        low, colon, high = part.partition(":")
        # A name alone is compared as a text, so it may be unknown.
        if not colon:
            continue
        for bound in (low, high):
            if bound and not is_known(bound):
                unknown.append(bound)
    return tuple(unknown)


def target_matches(constraint: str | None, target: str) -> bool:
    """Return whether the target of a binary satisfies a `target=`, as in Spack 1.1.

    Args:
        constraint: a name, a range `low:`, `:high` or `low:high`, or several of these
            with commas between them; None is any target. A range with an unknown bound,
            which Spack refuses, contains that bound only; see `unknown_bounds`.
        target: the target of a binary.
    """
    if constraint is None:
        return True
    return any(_part_matches(part, target) for part in constraint.split(","))


def _part_matches(part: str, target: str) -> bool:
    """Return whether a target is the one that a part names, or in its range."""
    low, colon, high = part.partition(":")
    if not colon:
        return target == part
    if low and not runs_on(low, target):
        return False
    return not high or runs_on(target, high)
