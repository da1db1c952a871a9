"""spack.targets: families, what runs where, target constraints, and this machine."""

from typing import NoReturn

import archspec.cpu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.spack.machine import os_of_release, this_machine
from spack_cache_db.spack.targets import (
    Build,
    ancestors,
    build_runs_on,
    family,
    has_platform,
    hosts_of,
    is_known,
    is_mac,
    known_targets,
    machine_of,
    runs_on,
    target_matches,
    unknown_bounds,
)

NAMES = st.sampled_from([*sorted(archspec.cpu.TARGETS), "toaster"])
PLATFORMS = st.sampled_from(["linux", "darwin", "cray", "windows", "freebsd"])


def builds(platform: str, *targets: str) -> list[Build]:
    """Return a build for each target."""
    return [Build(platform, target) for target in targets]


@pytest.mark.parametrize(
    ("constraint", "target", "expected"),
    [
        (None, "zen3", True),
        ("zen3", "zen3", True),
        ("zen3", "zen4", False),
        ("zen2:", "zen3", True),
        ("zen2:", "zen", False),
        (":zen3", "x86_64_v3", True),
        (":zen3", "haswell", False),
        ("x86_64_v2:zen3", "zen2", True),
        ("x86_64_v2:zen3", "zen4", False),
        ("x86_64:", "m2", False),
        (":", "toaster", True),
        ("haswell,zen3:", "zen4", True),
        ("haswell,zen3:", "broadwell", False),
        ("x86_64", "zen3", False),
    ],
)
def test_constraints(constraint: str | None, target: str, expected: bool) -> None:
    """Names are equal or not, ranges follow the partial order, and a list is a
    union.
    """
    assert target_matches(constraint, target) is expected


def test_unknown_bounds_are_named() -> None:
    """Only names that bound a range must be known to archspec."""
    assert unknown_bounds("toaster,zen2:zen3") == ()
    assert unknown_bounds("zen2:toaster,:") == ("toaster",)
    # A range has two bounds: the second one is all that comes after the first colon.
    assert unknown_bounds(":zen3:") == ("zen3:",)


@pytest.mark.parametrize(
    ("constraint", "machine"),
    [
        (":zen4", "zen4"),
        (":", None),
        (":,zen", None),
        (":zen3,:zen4", None),
        ("zen4", None),
        ("zen2:zen4", None),
        (":zen3:", None),
    ],
)
def test_only_all_below_one_target_is_a_machine(
    constraint: str, machine: str | None
) -> None:
    """`:zen4` is all that runs on zen4; other constraints are about no one machine."""
    assert machine_of(constraint) == machine


@given(NAMES, NAMES, NAMES)
def test_partial_order(a: str, b: str, c: str) -> None:
    """What runs on what is reflexive, antisymmetric, transitive, and archspec's own
    order.
    """
    assert runs_on(a, a)
    assert not (runs_on(a, b) and runs_on(b, a)) or a == b
    assert not (runs_on(a, b) and runs_on(b, c)) or runs_on(a, c)
    if is_known(a) and is_known(b):
        assert runs_on(a, b) == (archspec.cpu.TARGETS[a] <= archspec.cpu.TARGETS[b])
        assert not runs_on(a, b) or family(a) == family(b)


@pytest.mark.parametrize(
    ("host", "mac"),
    [
        ("m1", True),
        ("m4", True),
        ("neoverse_v2", False),
        ("cortex_a72", False),
        ("a64fx", False),
        ("thunderx2", False),
        ("zen3", False),
        ("power9le", False),
        ("ppc64le", False),
        ("u74mc", False),
        ("riscv64", False),
        # Intel's processors, of which Macs had some until 2020.
        ("core2", None),
        ("skylake", None),
        ("skylake_avx512", None),
        ("cascadelake", None),
        ("icelake", None),
        ("mic_knl", False),
        ("sapphirerapids", False),
        ("alderlake", False),
        # Generic targets, and one that archspec does not know.
        ("aarch64", None),
        ("armv9.2a", None),
        ("x86_64", None),
        ("x86_64_v4", None),
        ("toaster", None),
    ],
)
def test_which_machines_are_macs(host: str, mac: bool | None) -> None:
    """Those of Apple's processors are, and those with a processor that Apple never used
    are not.
    """
    assert is_mac(host) is mac


@given(NAMES, NAMES, PLATFORMS)
def test_a_machine_runs_targets_on_its_platforms(
    target: str, host: str, platform: str
) -> None:
    """A Mac runs binaries of macOS only, another machine all others, and any machine
    binaries for the targets of its processor.
    """
    if is_mac(host) is None:
        expected = runs_on(target, host)
    elif is_mac(host):
        expected = runs_on(target, host) and platform == "darwin"
    else:
        expected = runs_on(target, host) and platform != "darwin"

    assert build_runs_on(Build(platform, target), host) is expected
    assert has_platform(host, platform) is build_runs_on(Build(platform, host), host)


def test_each_machine_has_a_platform() -> None:
    """No target of archspec is one on which nothing runs."""
    for host in known_targets():
        assert has_platform(host, "linux") or has_platform(host, "darwin"), host


def test_machines_run_a_build() -> None:
    """A database without binaries of macOS has no Mac among its machines, and one
    without others only Macs and machines that may be one.
    """
    on_linux = hosts_of(builds("linux", "aarch64"))
    on_macos = hosts_of(builds("darwin", "aarch64"))

    assert list(on_linux)[:1] == ["Arm"] and "Apple" not in on_linux
    assert list(on_macos) == ["Apple", "Any aarch64"]


def test_machines_are_grouped_by_maker_the_newest_first() -> None:
    """The makers whom most people have come first, and generic targets last."""
    hosts = hosts_of(builds("linux", "x86_64", "aarch64") + builds("darwin", "aarch64"))
    makers = list(hosts)

    assert makers[:4] == ["AMD", "Intel", "Arm", "Apple"]
    assert makers[-2:] == ["Any aarch64", "Any x86_64"]
    assert [host for host in hosts["AMD"] if host < "zen5"][:2] == ["zen4", "zen3"]
    intel = ("arrowlake", "sapphirerapids", "icelake", "skylake", "haswell")
    assert [host for host in hosts["Intel"] if host in intel] == list(intel)


def test_no_machine_comes_before_a_newer_one_of_its_maker() -> None:
    """A processor that runs all binaries of another one is newer."""
    for hosts in hosts_of(builds("linux", *known_targets())).values():
        for place, host in enumerate(hosts):
            assert not set(ancestors(host)) & set(hosts[:place]), host


@pytest.mark.parametrize(
    ("name", "version", "spack"),
    [
        ("ubuntu", "24.04", "ubuntu24.04"),
        ("rhel", "8.10", "rhel8"),
        ("debian", "12", "debian12"),
        ("rocky", "9.4", "rocky9"),
        ("amzn", "2023", "amzn2023"),
        ("sles", "15.5", "sles15"),
        ("ol", "8.9", "oracle8"),
        ("opensuse-leap", "15.6", "opensuse15"),
        ("opensuse-tumbleweed", "20250401", None),
        ("arch", None, None),
        (None, "12", None),
    ],
)
def test_names_of_linux(
    name: str | None, version: str | None, spack: str | None
) -> None:
    """An os-release file gives Spack's name, or none where it does not say enough."""
    values = {"ID": name, "VERSION_ID": version}
    assert (
        os_of_release({key: value for key, value in values.items() if value}) == spack
    )


@pytest.mark.parametrize(
    ("release", "name"),
    [("15.3.1", "sequoia"), ("14.0", "sonoma"), ("99.1", None), ("", None)],
)
def test_names_of_macos(
    monkeypatch: pytest.MonkeyPatch, release: str, name: str | None
) -> None:
    """A release of macOS has Spack's name, or none and a reason."""
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.mac_ver", lambda: (release, ("", "", ""), ""))
    found = this_machine()
    assert (found.os, found.platform) == (name, "darwin")
    assert bool(found.unknown) is (name is None)


def test_linux_without_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Linux without an os-release file has no name, and the reason is given."""

    def missing() -> NoReturn:
        raise FileNotFoundError

    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.freedesktop_os_release", missing)

    found = this_machine()

    assert (found.os, found.platform) == (None, "linux")
    assert "cannot be read" in found.unknown[0]
