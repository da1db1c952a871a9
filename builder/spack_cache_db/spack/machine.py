"""The target, operating system and platform of this machine, as Spack names them.

A laptop may be `zen3`, `ubuntu24.04` and `linux`. The names are those of Spack 1.1's
`operating_systems/` and `platforms/`.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass

import archspec.cpu

_PLATFORMS = {
    "Linux": "linux",
    "Darwin": "darwin",
    "Windows": "windows",
    "FreeBSD": "freebsd",
}
"""Spack's names of platforms, by what Python's `platform.system()` returns."""

_MACOS = {
    "11": "bigsur", "12": "monterey", "13": "ventura", "14": "sonoma", "15": "sequoia",
    "26": "tahoe",
}  # fmt: skip
"""Spack's names of macOS, by the first number of its version."""

_RENAMED = {"ol": "oracle", "opensuse-leap": "opensuse"}
"""Spack's names of Linux distributions whose file os-release has another ID.

Spack takes the names from the Python package `distro`, which changes these two.
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as Spack names it.

    Attributes:
        target: the CPU target, such as `zen3`.
        os: the operating system, such as `rhel8`; None if Spack's name is unknown.
        platform: such as `linux`; None if Spack's name is unknown.
        unknown: the reasons for values that are None, as texts for people.
    """

    target: str
    os: str | None
    platform: str | None
    unknown: tuple[str, ...] = ()


def this_machine() -> Machine:
    """Return the machine on which this program runs."""
    system = platform.system()
    platform_name = _PLATFORMS.get(system)
    target = str(archspec.cpu.host().name)

    # The operating system, or else the reason why it is unknown.
    os_name: str | None = None
    reason = f"Spack's name of {system or 'this system'} is unknown"
    if platform_name == "darwin":
        version = platform.mac_ver()[0]
        major = version.partition(".")[0]
        os_name = _MACOS.get(major)
        reason = f"Spack's name of macOS {version} is unknown"
    elif platform_name == "linux":
        reason = "os-release has no ID and VERSION_ID that make a name"
        try:
            os_name = os_of_release(platform.freedesktop_os_release())
        except OSError:
            reason = "/etc/os-release cannot be read"
    if os_name is None:
        return Machine(target, None, platform_name, unknown=(reason,))
    return Machine(target, os_name, platform_name)


def os_of_release(values: Mapping[str, str]) -> str | None:
    """Return Spack's name of the Linux in an os-release file; None if it has none.

    The name is ID and the first part of VERSION_ID, such as `rhel8` for 8.10. Ubuntu's
    has two parts: `ubuntu24.04`.
    """
    name = values.get("ID", "")
    # Python returns "linux" for a file without an ID.
    if name in ("", "linux"):
        return None
    # This distribution has no versions: its VERSION_ID is a day.
    if name == "opensuse-tumbleweed":
        return None
    version_parts = re.findall(r"\w+", values.get("VERSION_ID", ""))
    if not version_parts:
        return None
    version = version_parts[0]
    if name == "ubuntu":
        version = ".".join(version_parts[:2])
    spack_name = _RENAMED.get(name, name).replace("-", "_")
    return f"{spack_name}{version}"
