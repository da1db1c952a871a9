"""machine: what Spack calls this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_cache_db import machine
from spack_cache_db.machine import os_of_release, this_machine


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ID=ubuntu\nVERSION_ID="24.04"\n', "ubuntu24.04"),
        ('ID="rhel"\nVERSION_ID="8.10"\n', "rhel8"),
        ('ID="centos"\nVERSION_ID="7"\n', "centos7"),
        ('# a comment\nID=debian\nVERSION_ID="12"\n', "debian12"),
        ('ID="rocky"\nVERSION_ID="9.4"\n', "rocky9"),
        ('ID="almalinux"\nVERSION_ID="9.3"\n', "almalinux9"),
        ('ID="amzn"\nVERSION_ID="2"\n', "amzn2"),
        ('ID="amzn"\nVERSION_ID="2023"\n', "amzn2023"),
        ('ID="sles"\nVERSION_ID="15.5"\n', "sles15"),
        ('ID="ol"\nVERSION_ID="8.9"\n', "oracle8"),
        ('ID="opensuse-leap"\nVERSION_ID="15.6"\n', "opensuse15"),
        ('ID=opensuse-tumbleweed\nVERSION_ID="20250401"\n', None),
        ("ID=arch\n", None),
        ("VERSION_ID=12\n", None),
        ("ID='broken\nVERSION_ID=12", None),
        ("", None),
    ],
)
def test_names_of_linux(text: str, name: str | None) -> None:
    """An os-release file gives Spack's name, or none where it does not say enough."""
    assert os_of_release(text) == name


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


def test_linux_without_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Linux without an os-release file has no name, and the reason is given."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr(machine, "OS_RELEASE", (tmp_path / "os-release",))

    found = this_machine()

    assert (found.os, found.platform) == (None, "linux")
    assert "cannot be read" in found.unknown[0]
