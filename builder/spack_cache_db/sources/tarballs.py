"""The addresses of tarballs, in parts.

A tarball of the old layout is at
`https://mirror/build_cache/linux-rhel8-zen2/gcc-13.2.0/zlib-1.3/…-HASH.spack`. Its
prefix, the mirror, is stored; the rest follows from the configuration and the hash.
"""

from __future__ import annotations

from collections.abc import Sequence

from spack_cache_db.model import Configuration
from spack_cache_db.schema.tarballs import TARBALL_PATH
from spack_cache_db.sources.facts import Tarball

_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")


def tarball_url(tarball: Tarball, spec: Configuration, dag_hash: str) -> str:
    """Return the complete URL of a tarball."""
    if tarball.is_whole:
        return tarball.url
    return f"{tarball.url}{_path_before_hash(spec)}{dag_hash}{_AFTER_HASH}"


class TarballParts:
    """Splits the URLs of tarballs.

    Args:
        configurations: all configurations; the first has the number 1.
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations
        self._path_of_configuration: dict[int, str] = {}
        self._latest = Tarball("", is_whole=False)

    def split(self, url: str, configuration: int, dag_hash: str) -> Tarball:
        """Return the stored part of a URL; `configuration` is a number."""
        path = self._path_of_configuration.get(configuration)
        if path is None:
            path = _path_before_hash(self._configurations[configuration - 1])
            self._path_of_configuration[configuration] = path
        end = f"{path}{dag_hash}{_AFTER_HASH}"

        # Consecutive tarballs usually belong to the same mirror.
        if url == self._latest.url + end:
            return self._latest
        if not url.endswith(end):
            return Tarball(url, is_whole=True)
        self._latest = Tarball(url.removesuffix(end), is_whole=False)
        return self._latest


def _path_before_hash(spec: Configuration) -> str:
    """Return the part of a tarball's URL between the mirror's prefix and the hash."""
    words = spec._asdict()
    words["compiler"] = spec.compiler.replace("@", "-")
    return _BEFORE_HASH.format(**words)
