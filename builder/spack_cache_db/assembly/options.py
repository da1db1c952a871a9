"""Columns → the published file: merged, numbered, counted and written, completely or
not at all.

`pipeline`, and all that it needs (NumPy, msgspec, sqlite-utils), is loaded when
something is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from spack_cache_db.arguments import texts
from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE, AnyPath, checked_paths
from spack_cache_db.errors import ArgumentError
from spack_cache_db.model import is_name

if TYPE_CHECKING:
    from concurrent.futures import Executor


Progress = Callable[[float, int], None]
"""Called with (units read, units in all); of an index that is being read, with its
part.
"""


class ReadOptions(TypedDict, total=False):
    """The options of `build`, `check` and `verify` for reading the input (see
    `build`).
    """

    jobs: int
    max_page_size: int
    release: str | None
    stack: str | None
    snapshot: str | date | None
    keep_snapshots: int | None
    drop: Iterable[str]
    installations: Iterable[tuple[str, AnyPath]]
    modules: Iterable[AnyPath | tuple[str, AnyPath]]
    progress: Progress | None


class Snapshots(NamedTuple):
    """The options about snapshots, and the snapshots that they added and removed.

    Snapshots are added on a `day`, `YYYY-MM-DD`; of each branch, the newest `keep` are
    not thinned. The releases `drop` of databases are left out.
    """

    day: str | None = None
    keep: int | None = None
    drop: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


NO_SNAPSHOTS = Snapshots()


class Input(NamedTuple):
    """The input and how it is read: see the arguments of `build`."""

    paths: list[str]
    jobs: int = 1
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE
    release: str | None = None
    stack: str | None = None
    progress: Progress | None = None
    first: str | None = None
    recipes: Mapping[str, str] = MappingProxyType({})
    without_paths: bool = False
    executor: Executor | None = None
    snapshots: Snapshots = NO_SNAPSHOTS
    installations: tuple[tuple[str, str], ...] = ()
    modules: tuple[tuple[str | None, str], ...] = ()

    @classmethod
    def checked(
        cls,
        paths: AnyPath | Iterable[AnyPath],
        *,
        installations: Iterable[tuple[str, AnyPath]] = (),
        modules: Iterable[AnyPath | tuple[str, AnyPath]] = (),
        snapshot: str | date | None = None,
        keep_snapshots: int | None = None,
        drop: Iterable[str] = (),
        recipes: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Input:
        """Return the input that a caller names; `ArgumentError` for a wrong path, name
        or day.
        """
        day = None if snapshot is None else str(snapshot)
        if day is not None:
            _require_day(day)
        if keep_snapshots is not None and day is None:
            expected = (
                "expected a day of today's sources as well: --snapshot DATE (snapshot=)"
            )
            raise ArgumentError(f"keep_snapshots is {keep_snapshots}, {expected}")
        trees = tuple((name, checked_paths(path)[0]) for name, path in installations)
        names = [(key, options.get(key)) for key in ("release", "stack")]
        for kind, name in (*names, *(("installation", name) for name, _ in trees)):
            if name is not None and not is_name(name):
                expected = "printable characters, no blank at either end, none of = + - @ first"
                raise ArgumentError(f"{kind} is {name!r}, expected a name: {expected}")
        for namespace, url in (recipes or {}).items():
            if not is_name(namespace):
                raise ArgumentError(
                    f"recipes names {namespace!r}, expected a namespace"
                )
            if not re.fullmatch(r"https?://[^/\s]\S*", url):
                expected = "an address such as https://example.org/packages/{package}"
                raise ArgumentError(
                    f"recipes of {namespace} are at {url!r}, expected {expected}"
                )
        lists = (path if isinstance(path, tuple) else (None, path) for path in modules)
        return cls(
            checked_paths(paths) if paths or not trees else [],
            snapshots=Snapshots(day, keep_snapshots, texts("drop", drop)),
            installations=trees,
            modules=tuple((release, checked_paths(path)[0]) for release, path in lists),
            recipes=recipes or {},
            **options,
        )

    @property
    def every_path(self) -> list[str]:
        """All paths, those of installations with names and of modules included."""
        return [
            *self.paths,
            *(path for _, path in (*self.installations, *self.modules)),
        ]


def _require_day(day: str) -> None:
    """Raise ArgumentError if a text is not a day, or a day that has begun nowhere
    yet.
    """
    # `--help` should not wait for the order of releases.
    from spack_cache_db.releases import release_date

    if release_date(f"x-{day}") != day:
        raise ArgumentError(f"snapshot is {day!r}, expected a day such as 2026-11-25")
    # `date +%F` and `date -u +%F` are both in use.
    today = max(date.today(), datetime.now(UTC).date()).isoformat()
    if day > today:
        raise ArgumentError(
            f"snapshot is {day}, expected a day that is not after today, {today}"
        )
