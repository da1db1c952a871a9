"""A tarball's URL, taken apart: what a listing says of it that its other columns do not give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spack_cache_db.records import Configuration
from spack_cache_db.schema import TARBALL_PATH

_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")


class Tarball(NamedTuple):
    """The part of a URL that has to be stored: all of it, or only the mirror's prefix."""

    url: str
    is_whole: bool


def tarball_suffix(spec: Configuration) -> str:
    """Return what follows a mirror's prefix in a tarball's URL, up to the hash."""
    parts = spec._asdict() | {"compiler": spec.compiler.replace("@", "-")}
    return _BEFORE_HASH.format(**parts)


def tarball_url(tarball: Tarball, spec: Configuration, dag_hash: str) -> str:
    """Return the whole URL again."""
    return tarball.url if tarball.is_whole else _joined(tarball.url, tarball_suffix(spec), dag_hash)


class TarballParts:
    """Takes URLs apart; what they have in common is made once.

    Args:
        configurations: those of the specs, in the order of their numbers; it may grow.
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations
        self._suffixes: dict[int, str] = {}
        self._mirror = Tarball("", is_whole=False)

    def split(self, url: str, configuration: int, dag_hash: str) -> Tarball:
        """Return what has to be stored of a URL; `configuration` is the number of the spec's."""
        suffix = self._suffixes.get(configuration)
        if suffix is None:
            suffix = tarball_suffix(self._configurations[configuration - 1])
            self._suffixes[configuration] = suffix
        # Tarballs that are listed together lie in one mirror: mostly it is the one seen last.
        if url == _joined(self._mirror.url, suffix, dag_hash):
            return self._mirror
        end = _joined("", suffix, dag_hash)
        if not url.endswith(end):
            return Tarball(url, is_whole=True)
        self._mirror = Tarball(url[: -len(end)], is_whole=False)
        return self._mirror


def _joined(prefix: str, suffix: str, dag_hash: str) -> str:
    return f"{prefix}{suffix}{dag_hash}{_AFTER_HASH}"
