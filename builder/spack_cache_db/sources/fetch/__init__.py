"""The room of `fetch`: downloads indexes of mirrors and package data. Read `batch` first.

Its public names stand here and load nothing; `batch` is loaded when something is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spack_cache_db.arguments import AnyPath, checked_file
from spack_cache_db.errors import Fault

if TYPE_CHECKING:
    from spack_cache_db.sources.fetch.addresses import Map

Progress = Callable[[int, int], None]
"""Called with the bytes that came, and the bytes that are known to come in all."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of a run; sizes in bytes, times in seconds.

    Args:
        jobs: mirrors at once.
        max_size: of one index.
        max_total: of all that is received.
        max_mirrors: mirrors that all URLs together name.
        timeout: without a byte, after which a connection is given up.
        deadline: for one file, with all retries.
        retries: how often what failed is asked for again.
        pause: before the first retry; each is twice as long as the one before.
    """

    jobs: int = 4
    max_size: int = 2**30
    max_total: int = 2**36
    max_mirrors: int = 5000
    timeout: float = 30.0
    deadline: float = 3600.0
    retries: int = 4
    pause: float = 0.5


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """The mirrors and package data to fetch.

    Args:
        release: the release of a mirror; of a manifest of releases, the only one that is wanted.
        stack: the stack, in the same way.
        views: names of views that are wanted of a mirror beside its index.
        maps: addresses that are others here.
        plain_http: whether an OCI registry on this machine is asked without TLS.
        mirrors: a `mirrors.yaml` or `spack.yaml` whose mirrors are wanted as well; a mirror's name
            is then its release, unless `release` says another.
        packages: where package data comes from: an archive, a list, or a packages site.
        sizes: whether the sizes of binaries are wanted, which takes a request for each new one.
        package_names: the packages whose files of a packages site are wanted.
    """

    release: str | None = None
    stack: str | None = None
    views: tuple[str, ...] = ()
    maps: tuple[Map, ...] = ()
    plain_http: bool = False
    mirrors: AnyPath | None = None
    packages: str | None = None
    package_names: tuple[str, ...] | None = None
    sizes: bool = False


@dataclass(frozen=True, slots=True)
class FetchReport:
    """The result of a run: mirrors in all, those without a fault, those that had something new.

    A mirror is also counted if its configuration is faulty. `size` are the bytes received,
    `seconds` the time of the run.

    `vanished` has the folders whose stacks no manifest names any longer; `faults` are sorted.
    `notes` name the mirrors without binaries and count the binaries that filters leave out.
    """

    mirrors: int
    brought: int
    changed: int
    size: int
    seconds: float
    vanished: tuple[Path, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()


def fetch(
    urls: str | Iterable[str],
    output: AnyPath,
    options: FetchOptions | None = None,
    limits: FetchLimits | None = None,
    progress: Progress | None = None,
) -> FetchReport:
    """Bring the indexes of mirrors into a folder, `<release>/<stack>/` below it for each.

    Args:
        urls: any number: mirrors, images of OCI registries, manifests of releases; known by what is
            there.
        output: the folder, made if there is none.
        options: what is wanted of them.
        limits: sizes, times, how many at once.
        progress: called with bytes received and expected.

    Returns:
        The report; mirrors with a fault are in its `faults`.

    Raises:
        ArgumentError: the output is not a path.
        OutputError: the folder cannot be made, or another run writes into it.
    """
    given = [urls] if isinstance(urls, str) else [*urls]
    folder = checked_file("output", output, "the folder to write into")
    from spack_cache_db.sources.fetch import batch

    return batch.fetch(given, folder, options or FetchOptions(), limits or FetchLimits(), progress)
