"""The options and limits of `fetch`, which downloads indexes of mirrors.

The command imports this module to describe its options. So it imports none of the
libraries that download: `batch`, which runs `fetch`, is imported when it begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spack_cache_db.arguments import (
    number,
    optional_text,
    switch,
    texts,
    whole_number,
    wrong,
)
from spack_cache_db.bounded_files import AnyPath, checked_file

Progress = Callable[[int, int], None]
"""Called with the number of bytes received, and the number of bytes expected in all."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of a run; sizes in bytes, times in seconds.

    Args:
        jobs: mirrors that are fetched at the same time.
        max_size: size of one index.
        max_total: size of all downloads together.
        max_mirrors: mirrors that all URLs together name.
        timeout: time without data after which a connection is dropped.
        deadline: time for one file, with all retries.
        retries: number of retries after a failure.
        pause: time before the first retry; it doubles with every retry.
    """

    jobs: int = 4
    max_size: int = 2**30
    max_total: int = 2**36
    max_mirrors: int = 5000
    timeout: float = 30.0
    deadline: float = 3600.0
    retries: int = 4
    pause: float = 0.5

    def __post_init__(self) -> None:
        """Raise `ArgumentError` for a limit that is not a number, or allows nothing."""
        whole_number("jobs", self.jobs, least=1)
        whole_number("max_size", self.max_size, least=1)
        whole_number("max_total", self.max_total, least=1)
        whole_number("max_mirrors", self.max_mirrors, least=1)
        whole_number("retries", self.retries, least=0)
        number("timeout", self.timeout, is_more=True)
        number("deadline", self.deadline, is_more=True)
        number("pause", self.pause)


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """The mirrors and package data to fetch.

    A manifest of releases is a file that lists the mirrors of many releases and stacks.

    Args:
        release: release of a mirror; from a manifest of releases, only this release is
            fetched.
        stack: stack of a mirror; from a manifest, only this stack is fetched.
        views: names of views to fetch in addition to the index.
        maps: pairs of a URL prefix and its replacement.
        plain_http: whether to use HTTP for an OCI registry on this machine.
        mirrors: a `mirrors.yaml` or `spack.yaml` whose mirrors are fetched too; the
            name of a mirror is its release, unless `release` is set.
        packages: URL of package data: an archive, a list, or a packages site.
        sizes: whether to fetch the sizes of binaries, with one request for each new
            binary.
        package_names: packages whose files are fetched from a packages site.
    """

    release: str | None = None
    stack: str | None = None
    views: tuple[str, ...] = ()
    maps: tuple[tuple[str, str], ...] = ()
    plain_http: bool = False
    mirrors: AnyPath | None = None
    packages: str | None = None
    sizes: bool = False
    package_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raise `ArgumentError` for an option of a wrong type."""
        optional_text("release", self.release)
        optional_text("stack", self.stack)
        optional_text("packages", self.packages)
        switch("plain_http", self.plain_http)
        switch("sizes", self.sizes)
        texts("views", self.views)
        texts("package_names", self.package_names or ())
        for pair in self.maps:
            if len(texts("maps", pair)) != 2:
                expected = "a pair of a URL prefix and its replacement"
                raise wrong("one of maps", pair, expected)
        if self.mirrors is not None:
            checked_file("mirrors", self.mirrors, "a mirrors.yaml")
