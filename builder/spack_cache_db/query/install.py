"""The commands that install a binary, ready to paste into a shell."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

MIRRORS = "https://binaries.spack.io"
TRUST_KEYS = "spack buildcache keys --install --trust"
SHORTEST_HASH = 7
EXAMPLE = "spack install --cache-only hdf5"


@dataclass(frozen=True, slots=True)
class Install:
    """The three commands, and the release whose mirror they use."""

    release: str
    mirror: str
    trust: str
    install: str


def mirror_command(release: str, tarball: str | None = None) -> str:
    """Return the command that adds the mirror of a release.

    A tarball's address tells where its mirror was; without one, the mirror of a release is
    called like the release.
    """
    url = f"{MIRRORS}/{release}"
    if tarball and "/build_cache/" in tarball:
        url = tarball.partition("/build_cache/")[0]
    return shlex.join(["spack", "mirror", "add", release, url])


def install_example(release: str) -> Install:
    """Return the commands for a new user of a release."""
    return Install(release, mirror_command(release), TRUST_KEYS, EXAMPLE)


def install_spec(package: str, prefix: str, release: str, tarball: str | None) -> Install:
    """Return the commands that install one spec, known by a prefix of its hash."""
    command = shlex.join(["spack", "install", f"{package}/{prefix}"])
    return Install(release, mirror_command(release, tarball), TRUST_KEYS, command)


def shortest_prefix(hash_: str, neighbours: tuple[str, ...]) -> str:
    """Return the shortest prefix, of 7 characters or more, that no neighbouring hash shares."""
    length = SHORTEST_HASH
    while length < len(hash_) and any(each.startswith(hash_[:length]) for each in neighbours):
        length += 1
    return hash_[:length]
