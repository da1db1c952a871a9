"""This machine in Spack's terms: CPU target, operating system, platform.

Names are made as Spack 1.1 makes them (`operating_systems/` and `platforms/` there). What cannot
be known is None, and `unknown` says why; nothing is guessed.
"""

from __future__ import annotations

import platform
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from spack_cache_db.bounded_files import read_file
from spack_cache_db.spack.targets import host_target

OS_RELEASE = (Path("/etc/os-release"), Path("/usr/lib/os-release"))
PLATFORMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "windows", "FreeBSD": "freebsd"}
MACOS = {
    "11": "bigsur",
    "12": "monterey",
    "13": "ventura",
    "14": "sonoma",
    "15": "sequoia",
    "26": "tahoe",
}
_MAX_OS_RELEASE = 2**16
"""Bytes of an os-release file; one has a few hundred."""

# Spack takes names from the package distro, which renames these.
_RENAMED = {"ol": "oracle", "opensuse-leap": "opensuse"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine in Spack's words; None where it cannot be known."""

    target: str
    os: str | None
    platform: str | None
    unknown: tuple[str, ...] = ()


def this_machine() -> Machine:
    """Return the machine that this runs on."""
    kind = PLATFORMS.get(platform.system())
    system: str | None = None
    reason = f"Spack's name of {platform.system() or 'this system'} is not known"
    if kind == "darwin":
        release = platform.mac_ver()[0]
        system = MACOS.get(release.partition(".")[0])
        reason = f"Spack's name of macOS {release} is not known"
    elif kind == "linux":
        system, reason = _linux()
    return Machine(host_target(), system, kind, () if system else (reason,))


def _linux() -> tuple[str | None, str]:
    for path in OS_RELEASE:
        try:
            text = read_file(path, _MAX_OS_RELEASE).decode(errors="replace")
        except OSError:
            continue
        system = os_of_release(text)
        return system, f"{path} has no ID and VERSION_ID that make a name"
    return None, f"{OS_RELEASE[0]} cannot be read"


def os_of_release(text: str) -> str | None:
    """Return Spack's name of the Linux that `text`, an os-release file, describes.

    It is ID and the first part of VERSION_ID, such as `rhel8` and `debian12`; Ubuntu has two parts.
    """
    values = dict(_assignments(text))
    name, version = values.get("ID", ""), values.get("VERSION_ID", "")
    parts = re.findall(r"\w+", version)
    if not name or not parts or name == "opensuse-tumbleweed":
        return None
    name = _RENAMED.get(name, name)
    shown = ".".join(parts[:2]) if name == "ubuntu" else parts[0]
    return name.replace("-", "_") + shown


def _assignments(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if not equals or key.startswith("#"):
            continue
        try:
            found.append((key, "".join(shlex.split(value))))
        except ValueError:
            continue
    return found
