"""site.pages.hosts: the machines to choose from."""

from __future__ import annotations

from spack_cache_db.site.pages.hosts import hosts_of
from spack_cache_db.spack.targets import runs_on

TARGETS = ("x86_64_v3", "neoverse_v1")


def test_every_machine_runs_something() -> None:
    """Machines stand by family, sorted, and each runs what was built for one of the targets."""
    hosts = hosts_of(TARGETS)

    assert [*hosts] == ["aarch64", "x86_64"]
    assert {"zen3", "icelake"} <= {*hosts["x86_64"]}
    assert "x86_64" not in hosts["x86_64"]
    for names in hosts.values():
        assert [*names] == sorted(names)
        assert all(any(runs_on(target, host) for target in TARGETS) for host in names)


def test_a_target_that_archspec_does_not_know_is_its_own_machine() -> None:
    """What was built for a processor of another name runs there, and of nothing nothing runs."""
    assert [*hosts_of(["mine"]).values()] == [("mine",)]
    assert hosts_of([]) == {}
