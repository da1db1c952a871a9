"""spack.targets: what Spack calls this machine."""

from __future__ import annotations

from typing import NoReturn

import pytest

from spack_cache_db.spack.targets import os_of_release, this_machine


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
def test_names_of_linux(name: str | None, version: str | None, spack: str | None) -> None:
    """An os-release file gives Spack's name, or none where it does not say enough."""
    values = {"ID": name, "VERSION_ID": version}
    assert os_of_release({key: value for key, value in values.items() if value}) == spack


@pytest.mark.parametrize(
    ("release", "name"), [("15.3.1", "sequoia"), ("14.0", "sonoma"), ("99.1", None), ("", None)]
)
def test_names_of_macos(monkeypatch: pytest.MonkeyPatch, release: str, name: str | None) -> None:
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
