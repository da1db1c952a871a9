"""Columns → the published file: merged, numbered, counted and written, completely or not at all.

`pipeline`, and all that it needs (NumPy, msgspec, sqlite-utils), is loaded when something is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from spack_cache_db.arguments import checked, checked_with, texts
from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE, AnyPath, checked_file, checked_paths
from spack_cache_db.errors import ArgumentError, Fault
from spack_cache_db.model import is_name

if TYPE_CHECKING:
    from concurrent.futures import Executor

Progress = Callable[[float, int], None]
"""Called with (units read, units in all); of an index that is being read, with its part."""


class ReadOptions(TypedDict, total=False):
    """The options of `build`, `check` and `verify` for reading the input (see `build`)."""

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

    Snapshots are added on a `day`, `YYYY-MM-DD`; of each branch, the newest `keep` are not thinned.
    The releases `drop` of databases are left out.
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
        """Return the input that a caller names; `ArgumentError` for a wrong path, name or day."""
        day = None if snapshot is None else str(snapshot)
        if day is not None:
            _require_day(day)
        if keep_snapshots is not None and day is None:
            expected = "expected a day of today's sources as well: --snapshot DATE (snapshot=)"
            raise ArgumentError(f"keep_snapshots is {keep_snapshots}, {expected}")
        trees = tuple((name, checked_paths(path)[0]) for name, path in installations)
        names = [(key, options.get(key)) for key in ("release", "stack")]
        for kind, name in (*names, *(("installation", name) for name, _ in trees)):
            if name is not None and not is_name(name):
                expected = "printable characters, no blank at either end, none of = + - @ first"
                raise ArgumentError(f"{kind} is {name!r}, expected a name: {expected}")
        for namespace, url in (recipes or {}).items():
            if not is_name(namespace):
                raise ArgumentError(f"recipes names {namespace!r}, expected a namespace")
            if not re.fullmatch(r"https?://[^/\s]\S*", url):
                expected = "an address such as https://example.org/packages/{package}"
                raise ArgumentError(f"recipes of {namespace} are at {url!r}, expected {expected}")
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
        return [*self.paths, *(path for _, path in (*self.installations, *self.modules))]


def _require_day(day: str) -> None:
    """Raise ArgumentError if a text is not a day, or a day that has begun nowhere yet."""
    # `--help` should not wait for the order of releases.
    from spack_cache_db.releases import release_date

    if release_date(f"x-{day}") != day:
        raise ArgumentError(f"snapshot is {day!r}, expected a day such as 2026-11-25")
    # `date +%F` and `date -u +%F` are both in use.
    today = max(date.today(), datetime.now(UTC).date()).isoformat()
    if day > today:
        raise ArgumentError(f"snapshot is {day}, expected a day that is not after today, {today}")


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a build. `seconds` and `stages` are wall time, in all and by stage.

    `records` is how many specs the indexes tell of, a spec of two indexes counted twice; `specs`,
    `configurations` and `packages` are those that some release has; `package_entries` is how
    many packages the files of package data tell of, a package of two files counted twice.
    `notes` count the binaries that the filters of mirrors leave out. If the new database is the
    old one, byte for byte, the file is not replaced, and `is_unchanged` is true.
    """

    pages: int
    indexes: int
    records: int
    listings: int
    specs: int
    configurations: int
    packages: int
    releases: int
    problems: int
    package_entries: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    bytes_read: int
    file_size: int
    sha256: str
    seconds: float
    stages: dict[str, float] = field(default_factory=dict)
    snapshots: Snapshots = NO_SNAPSHOTS
    is_unchanged: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, faults as texts."""
        faults = [str(fault) for fault in self.faults]
        return {**asdict(self), "faults": faults, "snapshots": self.snapshots._asdict()}


@checked
def build(
    paths: AnyPath | Iterable[AnyPath],
    output: AnyPath,
    *,
    jobs: int = 1,
    keep_going: bool = False,
    force: bool = False,
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE,
    release: str | None = None,
    stack: str | None = None,
    first: str | None = None,
    recipes: Mapping[str, str] | None = None,
    without_paths: bool = False,
    snapshot: str | date | None = None,
    keep_snapshots: int | None = None,
    drop: Iterable[str] = (),
    installations: Iterable[tuple[str, AnyPath]] = (),
    modules: Iterable[AnyPath | tuple[str, AnyPath]] = (),
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Report:
    """Build a database from pages, indexes, mirrors and package data, and its inspect file.

    Args:
        paths: one path or many, as text or `Path`.
        output: the file to write. An older database is replaced once the new one is whole.
        jobs: how many processes read. The calling script is not run again in them. With an
            executor: how many units of the input it can read at the same time.
        keep_going: build what is good; the faults of the rest are in the report, and in `problems`.
        force: replace the output also if it has releases that the input does not have, or if it is
            a file that this program did not make; allow a snapshot before the newest one.
        max_page_size: refuse larger pages; bytes.
        release: that of indexes and mirrors, whatever folders they lie in.
        stack: the same.
        first: the release that stands before all others; else installed trees do.
        recipes: by namespace, the address of the recipes of its packages; `{package}` in it stands
            for the name of one.
        without_paths: leave out where installed specs and externals lie.
        snapshot: a day, `YYYY-MM-DD`. The releases of other sources then replace those of
            databases, and each mirror is also listed in the snapshot `<release>-<snapshot>`, unless
            its newest snapshot has the same binaries. The output, if built on, may be missing. The
            day may not be after today, and not before the newest snapshot of a mirror (`force`
            allows that).
        keep_snapshots: keep so many of the newest snapshots of each branch, of older ones the first
            of each week for as many weeks, and of still older ones the first of each month. Needs
            `snapshot`.
        drop: releases of databases of the input that are left out, snapshots or others.
        installations: pairs of a release and the path of an installation. An upstream has the
            release of the installation that uses it.
        modules: files and folders with lists of environment modules: Spack's `module-index.yaml`,
            or what Lmod's `spider -o jsonSoftwarePage` prints. With several installations, pairs of
            a release and a path.
        progress: called with (units read, units in all), in this process.
        executor: what reads the input, instead of processes that are started here. Its workers
            need the same versions of this package and of archspec, and the same paths.

    Raises:
        ArgumentError: a path has a wrong type, or a name or a day is not one.
        BuilderError: a worker died, or differs in what it needs.
        InputError: the input has faults (with `keep_going`: it has nothing else). `HistoryError`,
            also with `keep_going`: a database of the input cannot be read.
        OutputError: the file cannot be written, is another program's, or has releases that the
            input does not have. In any case the old file stays.
    """
    inputs = Input.checked(
        paths,
        jobs=jobs,
        max_page_size=max_page_size,
        release=release,
        stack=stack,
        first=first,
        recipes=recipes,
        without_paths=without_paths,
        snapshot=snapshot,
        keep_snapshots=keep_snapshots,
        drop=drop,
        installations=installations,
        modules=modules,
        progress=progress,
        executor=executor,
    )
    file = checked_file("output", output, "the database to write")
    from spack_cache_db.build import pipeline

    return pipeline.build(inputs, file, keep_going=keep_going, force=force)


@checked_with(ReadOptions.__annotations__)
def check(
    paths: AnyPath | Iterable[AnyPath], **options: Unpack[ReadOptions]
) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Return (faults, problems) of the input without building; a problem comes as a `Fault`.

    Args:
        paths: one path or many, as text or `Path`.
        options: those of `build` for reading the input.

    Raises:
        ArgumentError: a path has a wrong type, or a name is not one.
        InputError: a path does not exist, or it has no files.
    """
    inputs = Input.checked(paths, **options)
    from spack_cache_db.build import pipeline

    return pipeline.check(inputs)
