"""What commands do, as files: an environment (`spack.yaml`), and a Dockerfile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spack_cache_db.model import Configuration
from spack_cache_db.query.commands.install import (
    PLACEHOLDER,
    TRUST_KEYS,
    mirror_names,
    mirrors_of,
)
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.stored.mirrors import Mirror

# From `share/spack/docker` and `container/images.json` of Spack 1.0.
IMAGES: Mapping[str, str] = {
    "almalinux8": "spack/almalinux8",
    "almalinux9": "spack/almalinux9",
    "amzn2": "spack/amazon-linux",
    "fedora39": "spack/fedora39",
    "fedora40": "spack/fedora40",
    "opensuse-leap15": "spack/leap15",
    "rocky8": "spack/rockylinux8",
    "rocky9": "spack/rockylinux9",
    "ubuntu20.04": "spack/ubuntu-focal",
    "ubuntu22.04": "spack/ubuntu-jammy",
    "ubuntu24.04": "spack/ubuntu-noble",
}
"""The images with Spack that its developers publish, by the operating systems of
specs.
"""


def environment_text(commands: Commands, specs: Sequence[str]) -> str:
    """Return a `spack.yaml` with some specs, and the mirrors of commands.

    For example:

        spack:
          specs:
          - "hdf5@1.14.6 +mpi %gcc@13.2.0 ..."
          mirrors:
            develop: {"url": "https://binaries.example.org/develop"}
    """
    lines = ["spack:", "  specs:"]
    for spec in specs:
        # JSON is YAML too.
        lines.append(f"  - {json.dumps(spec)}")
    if len(specs) > 1:
        # Binaries of one compiler may have different dependencies of one name.
        lines += ["  concretizer:", "    unify: when_possible"]
    lines.append("  mirrors:")
    mirrors = mirrors_of(commands.closures)
    for mirror, name in zip(mirrors, mirror_names(mirrors), strict=True):
        properties = json.dumps(_properties(mirror))
        lines.append(f"    {name}: {properties}")
    if TRUST_KEYS in commands.setup:
        # An environment cannot trust keys: that is a command.
        lines.insert(0, f"# Once: {TRUST_KEYS}")
    return "\n".join(lines)


def _properties(mirror: Mirror) -> dict[str, Any]:
    """Return a mirror as `mirrors.yaml` has it."""
    properties: dict[str, Any] = {"url": mirror.url or PLACEHOLDER}
    if mirror.is_signed is False:
        properties["signed"] = False
    return {**properties, **mirror.settings}


def dockerfile_text(commands: Commands, configuration: Configuration) -> str | None:
    """Return a Dockerfile that runs commands; None if they are not for Linux.

    The image is one that Spack's developers publish for the system of the build.
    """
    if configuration.platform != "linux":
        return None
    image = IMAGES.get(configuration.os)
    if image is None:
        first = f"# Begin with an image of {configuration.os} that has Spack."
    else:
        first = f"FROM {image}:latest"
    steps = " \\\n && ".join(commands.commands)
    return f"{first}\nRUN {steps}"
