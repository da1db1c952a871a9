"""The target, operating system and platform of this machine, as Spack names them."""

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
_MACOS = {
    "11": "bigsur", "12": "monterey", "13": "ventura", "14": "sonoma", "15": "sequoia",
    "26": "tahoe",
}  # fmt: skip
_RENAMED = {"ol": "oracle", "opensuse-leap": "opensuse"}
"""Names that the package distro changes, from which Spack takes names."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as Spack names it; `unknown` has the reasons for values that are
    None.
    """

    target: str
    os: str | None
    platform: str | None
    unknown: tuple[str, ...] = ()


def this_machine() -> Machine:
    """Return the machine on which this program runs."""
    system = platform.system()
    platform_name = _PLATFORMS.get(system)
    # The operating system, and why it is None.
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
    target = str(archspec.cpu.host().name)
    unknown = (reason,) if os_name is None else ()
    return Machine(target, os_name, platform_name, unknown)


def os_of_release(values: Mapping[str, str]) -> str | None:
    """Return Spack's name of the Linux in an os-release file.

    It is ID and the first part of VERSION_ID, such as `rhel8` and `debian12`; Ubuntu
    has two parts.
    """
    name = values.get("ID", "")
    version_parts = re.findall(r"\w+", values.get("VERSION_ID", ""))
    # Python returns "linux" if there is no ID; Tumbleweed has the day as its version.
    if not version_parts or name in ("", "linux", "opensuse-tumbleweed"):
        return None
    version = version_parts[0]
    if name == "ubuntu":
        version = ".".join(version_parts[:2])
    spack_name = _RENAMED.get(name, name).replace("-", "_")
    return f"{spack_name}{version}"
