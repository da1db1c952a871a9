"""The addresses of tarballs, in parts."""

from __future__ import annotations

from collections.abc import Sequence

from spack_cache_db.model import Configuration
from spack_cache_db.schema.tarballs import TARBALL_PATH
from spack_cache_db.sources.facts import Tarball

_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")


def _suffix(spec: Configuration) -> str:
    """Return the part of a tarball's URL between the mirror's prefix and the hash."""
    parts = spec._asdict() | {"compiler": spec.compiler.replace("@", "-")}
    return _BEFORE_HASH.format(**parts)


def tarball_url(tarball: Tarball, spec: Configuration, dag_hash: str) -> str:
    """Return the complete URL of a tarball."""
    url, is_whole = tarball
    return url if is_whole else f"{url}{_suffix(spec)}{dag_hash}{_AFTER_HASH}"


class TarballParts:
    """Splits URLs into prefix and suffix; `configurations` are in the order of their
    numbers.
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations
        self._suffixes: dict[int, str] = {}
        self._mirror = Tarball("", is_whole=False)

    def split(self, url: str, configuration: int, dag_hash: str) -> Tarball:
        """Return the stored part of a URL; `configuration` is a number."""
        suffix = self._suffixes.get(configuration)
        if suffix is None:
            suffix = _suffix(self._configurations[configuration - 1])
            self._suffixes[configuration] = suffix
        end = f"{suffix}{dag_hash}{_AFTER_HASH}"
        # Consecutive tarballs usually belong to the same mirror.
        if url != self._mirror.url + end:
            if not url.endswith(end):
                return Tarball(url, is_whole=True)
            self._mirror = Tarball(url[: -len(end)], is_whole=False)
        return self._mirror
