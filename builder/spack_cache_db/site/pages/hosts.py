"""Machines on which something of a file runs, to choose one's own from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from spack_cache_db.spack.targets import family, known_targets, runs_on


def hosts_of(targets: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the CPU targets of machines on which something built for `targets` runs, by family."""
    return _hosts_of(tuple(sorted(targets)))


@lru_cache(maxsize=256)
def _hosts_of(targets: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    hosts: dict[str, list[str]] = {}
    for host in sorted({*known_targets(), *targets}):
        if any(runs_on(target, host) for target in targets):
            hosts.setdefault(family(host), []).append(host)
    return {name: tuple(hosts[name]) for name in sorted(hosts)}
