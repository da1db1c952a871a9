"""Splits the URL of a binary's tarball into the part that is stored and the rest.

In a mirror of the layout before Spack 1.0, the whole URL follows from the mirror, the
configuration of the binary and its hash:

    https://mirror/build_cache/linux-rhel8-zen2/gcc-13.2.0/zlib-1.3/
        linux-rhel8-zen2-gcc-13.2.0-zlib-1.3-HASH.spack

So only `https://mirror` is stored, once for all of its binaries. A URL of any other
form is stored as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from spack_cache_db.model import Configuration
from spack_cache_db.schema.tarballs import TARBALL_PATH
from spack_cache_db.sources.facts import Tarball

# The pattern of a path below the mirror, before and after the hash of the binary.
_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")


def tarball_url(tarball: Tarball, configuration: Configuration, dag_hash: str) -> str:
    """Return the whole URL of a tarball from its stored part.

    Args:
        tarball: the stored part.
        configuration: the configuration of the binary.
        dag_hash: the hash of the binary.
    """
    if tarball.is_whole:
        return tarball.url
    path = _path_before_hash(configuration) + dag_hash + _AFTER_HASH
    return tarball.url + path


class TarballParts:
    """Returns the parts of URLs that are stored.

    Many binaries share a configuration, and successive ones usually a mirror. So the
    path of each configuration, and the last mirror, are remembered.

    Args:
        configurations: all configurations, to which others may be added; they are
            numbered from 1.
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations
        self._path_of_configuration: dict[int, str] = {}
        self._last_mirror = Tarball("", is_whole=False)

    def split(self, url: str, configuration: int, dag_hash: str) -> Tarball:
        """Return the part of a URL that is stored.

        Args:
            url: the whole URL.
            configuration: the number of the binary's configuration.
            dag_hash: the hash of the binary.
        """
        # The end that the URL has if it is of the old layout.
        path = self._path_of_configuration.get(configuration)
        if path is None:
            path = _path_before_hash(self._configurations[configuration - 1])
            self._path_of_configuration[configuration] = path
        end = path + dag_hash + _AFTER_HASH

        if url == self._last_mirror.url + end:
            return self._last_mirror
        if not url.endswith(end):
            return Tarball(url, is_whole=True)
        self._last_mirror = Tarball(url.removesuffix(end), is_whole=False)
        return self._last_mirror


def _path_before_hash(configuration: Configuration) -> str:
    """Return the path of a tarball below its mirror, up to the hash of the binary."""
    words = configuration._asdict()
    # A compiler has a dash in paths: gcc-13.2.0.
    words["compiler"] = configuration.compiler.replace("@", "-")
    return _BEFORE_HASH.format(**words)
