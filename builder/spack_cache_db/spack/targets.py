"""CPU targets of the archspec package, and the target and operating system of this
machine.

A target that archspec does not know is its own family and is compatible with itself
only, as in Spack. The names of systems are those of Spack 1.1's `operating_systems/`
and `platforms/`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import archspec.cpu

_MAKERS = {
    "AuthenticAMD": "AMD",
    "GenuineIntel": "Intel",
    "ARM": "Arm",
    "Nvidia": "NVIDIA",
}
"""Common names of makers, by archspec's names."""

_COMMON_MAKERS = ("AMD", "Intel", "Arm", "Apple")
_ANY = "Any "
"""Start of the name of a family in place of a maker."""


def known_targets() -> tuple[str, ...]:
    """Return the names of all targets that archspec knows, sorted."""
    return tuple(sorted(archspec.cpu.TARGETS))


@cache
def ancestors(name: str) -> tuple[str, ...]:
    """Return the targets whose binaries also run on `name`, nearest first, without
    itself.
    """
    target = archspec.cpu.TARGETS.get(name)
    if target is None:
        return ()
    return tuple(ancestor.name for ancestor in target.ancestors)


def hosts_of(targets: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the CPU targets that can run binaries for at least one of `targets`, by
    maker.

    The newest processors come first.
    """
    targets = set(targets)
    # A newer processor has more ancestors.
    candidates = sorted(targets.union(known_targets()))
    candidates.sort(key=lambda name: len(ancestors(name)), reverse=True)
    hosts: dict[str, list[str]] = {}
    for host in candidates:
        if any(runs_on(target, host) for target in targets):
            hosts.setdefault(_maker(host), []).append(host)
    makers = sorted(hosts)
    makers.sort(key=_rank_of_maker)
    return {maker: tuple(hosts[maker]) for maker in makers}


@cache
def _maker(name: str) -> str:
    """Return the common name of a processor's maker; `Any x86_64` for a level of a
    family.
    """
    target = archspec.cpu.TARGETS.get(name)
    if target is None or target.vendor == "generic":
        return f"{_ANY}{family(name)}"
    return _MAKERS.get(target.vendor, str(target.vendor))


def _rank_of_maker(maker: str) -> int:
    """Return the place of a maker in lists: the common ones, others, then families."""
    if maker in _COMMON_MAKERS:
        return 0
    return 2 if maker.startswith(_ANY) else 1


def is_known(name: str) -> bool:
    """Return whether archspec knows the target."""
    return name in archspec.cpu.TARGETS


def is_generic(name: str) -> bool:
    """Return whether a target is a family or a level of one, such as `x86_64_v3`, not a
    processor.

    Returns False for a target that archspec does not know.
    """
    target = archspec.cpu.TARGETS.get(name)
    return target is not None and target.vendor == "generic"


@cache
def family(name: str) -> str:
    """Return the family of a target: `x86_64` for `zen3`; an unknown target is its
    own.
    """
    target = archspec.cpu.TARGETS.get(name)
    if target is None:
        return name
    return str(target.family.name)


@cache
def runs_on(target: str, host: str) -> bool:
    """Return whether a binary built for `target` runs on a machine of type `host`.

    It does if the target is the host or one of its ancestors; neither of zen3 and
    haswell is an ancestor of the other.
    """
    return target == host or target in ancestors(host)


def unknown_bounds(constraint: str) -> tuple[str, ...]:
    """Return the bounds of ranges in a target constraint that archspec does not
    know.
    """
    ranges = [part for part in constraint.split(",") if ":" in part]
    bounds = [bound for part in ranges for bound in part.split(":")]
    return tuple(bound for bound in bounds if bound and not is_known(bound))


def target_matches(constraint: str | None, target: str) -> bool:
    """Return whether the target of a binary satisfies a `target=`, as in Spack 1.1.

    Args:
        constraint: a name, a range `low:`, `:high` or `low:high` in archspec's partial
            order, or a comma list of these; None is any. A range with an unknown bound,
            which Spack refuses, contains its bound only (see `unknown_bounds`).
        target: the target of a binary.
    """
    if constraint is None:
        return True
    return any(_part_matches(part, target) for part in constraint.split(","))


def _part_matches(part: str, target: str) -> bool:
    """Return whether a target is the one of a part, or in its range."""
    low, colon, high = part.partition(":")
    if not colon:
        return target == part
    if low and not runs_on(low, target):
        return False
    return not high or runs_on(target, high)
