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
    kind = _PLATFORMS.get(platform.system())
    system: str | None = None
    reason = f"Spack's name of {platform.system() or 'this system'} is unknown"
    if kind == "darwin":
        release = platform.mac_ver()[0]
        system = _MACOS.get(release.partition(".")[0])
        reason = f"Spack's name of macOS {release} is unknown"
    elif kind == "linux":
        reason = "os-release has no ID and VERSION_ID that make a name"
        try:
            system = os_of_release(platform.freedesktop_os_release())
        except OSError:
            reason = "/etc/os-release cannot be read"
    return Machine(
        str(archspec.cpu.host().name), system, kind, () if system else (reason,)
    )


def os_of_release(values: Mapping[str, str]) -> str | None:
    """Return Spack's name of the Linux in an os-release file.

    It is ID and the first part of VERSION_ID, such as `rhel8` and `debian12`; Ubuntu
    has two parts.
    """
    name, version = values.get("ID", ""), values.get("VERSION_ID", "")
    parts = re.findall(r"\w+", version)
    # Python returns "linux" if there is no ID.
    if not parts or name in ("", "linux", "opensuse-tumbleweed"):
        return None
    number = ".".join(parts[:2]) if name == "ubuntu" else parts[0]
    return _RENAMED.get(name, name).replace("-", "_") + number
