"""The options of `build`, `check` and `verify`: their meanings, defaults and checks.

A caller gives keywords (`BuildKeywords`); the functions of this package take the
checked options (`BuildOptions`). `help` and the reference of the API show the
attributes of the options as the arguments of `build`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

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


class ReadKeywords(TypedDict, total=False):
    """The keywords of `build`, `check` and `verify`: see `ReadOptions`."""

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


class BuildKeywords(ReadKeywords, total=False):
    """The keywords of `build`: see `BuildOptions`."""

    keep_going: bool
    force: bool
    first: str | None
    recipes: Mapping[str, str] | None
    without_paths: bool
    executor: Executor | None


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


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How the input is read: the options of `build`, `check` and `verify`.

    Attributes:
        jobs: number of processes that read the input. They do not run the calling
            script again. With an executor: number of units of the input that it can
            read at the same time.
        max_page_size: largest page that is read, in bytes; larger pages are faults.
        release: release of all indexes and mirrors; by default, the name of their
            folder.
        stack: stack of all indexes and mirrors; by default, the name of their folder.
        snapshot: a day, `YYYY-MM-DD`. The releases of other sources then replace those
            of databases, and each mirror is also listed in the snapshot
            `<release>-<snapshot>`, unless its newest snapshot has the same binaries.
            If the output is among the paths, it may be missing. The day may not be
            after today, and not before the newest snapshot of a mirror (`force` allows
            that).
        keep_snapshots: number of the newest snapshots of each branch that are kept; of
            older ones, the first of each week is kept for as many weeks, and of still
            older ones the first of each month. Needs `snapshot`.
        drop: releases of databases of the input that are left out, snapshots or others.
        installations: pairs of a release and the path of an installation. An upstream
            has the release of the installation that uses it.
        modules: files and folders with lists of environment modules: Spack's
            `module-index.yaml`, or the output of Lmod's `spider -o jsonSoftwarePage`.
            With several installations, pairs of a release and a path.
        progress: function that is called with (units read, units in all), in this
            process.
    """

    jobs: int = 1
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE
    release: str | None = None
    stack: str | None = None
    snapshot: str | None = None
    keep_snapshots: int | None = None
    drop: tuple[str, ...] = ()
    installations: tuple[tuple[str, str], ...] = ()
    # The release of a list is None if the caller names no installation.
    modules: tuple[tuple[str | None, str], ...] = ()
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions(ReadOptions):
    """How a database is built: the options of `build`.

    Attributes:
        keep_going: whether to skip faulty input. Its faults are in the report, and in
            the table `problems`.
        force: whether to replace the output also if it has releases that the input does
            not have, or if another program made it, to allow a snapshot before the
            newest one, and to build even if nothing is new.
        first: release that stands before all others; by default, installations do.
        recipes: for each namespace, the URL of the recipes of its packages, with
            `{package}` for the name of the package.
        without_paths: whether to leave out the paths of installed specs and externals.
        executor: executor that reads the input instead of processes of this machine.
            Its workers need the same versions of this package and of archspec, and the
            same paths.
    """

    keep_going: bool = False
    force: bool = False
    first: str | None = None
    recipes: Mapping[str, str] = field(default_factory=dict)
    without_paths: bool = False
    executor: Executor | None = None

    @property
    def snapshots(self) -> Snapshots:
        """The options about snapshots."""
        return Snapshots(self.snapshot, self.keep_snapshots, self.drop)


class Input(NamedTuple):
    """The paths that are read, and the options of reading and building them."""

    paths: list[str]
    options: BuildOptions = BuildOptions()

    @property
    def every_path(self) -> list[str]:
        """All paths, those of installations with names and of modules included."""
        paths = list(self.paths)
        paths += [path for _, path in self.options.installations]
        paths += [path for _, path in self.options.modules]
        return paths


def checked_input(
    paths: AnyPath | Iterable[AnyPath], **keywords: Unpack[BuildKeywords]
) -> Input:
    """Return the input that a caller names.

    Raises:
        ArgumentError: a path has a wrong type, or a name, an address or a day is not
            one.
    """
    options = _checked_options(keywords)
    # An installation with a name is an input too, so there may be no other path.
    if not paths and options.installations:
        return Input([], options)
    return Input(checked_paths(paths), options)


def _checked_options(keywords: BuildKeywords) -> BuildOptions:
    """Return the keywords in the forms of `BuildOptions`."""
    options: dict[str, Any] = {**keywords}

    # The day of the snapshots, as text.
    day = keywords.get("snapshot")
    if day is not None:
        options["snapshot"] = str(day)
        _require_day(str(day))
    kept = keywords.get("keep_snapshots")
    if kept is not None and day is None:
        expected = (
            "expected a day of today's sources as well: --snapshot DATE (snapshot=)"
        )
        raise ArgumentError(f"keep_snapshots is {kept}, {expected}")
    options["drop"] = texts("drop", keywords.get("drop", ()))

    # Paths of installations and modules, as texts.
    installations = []
    for name, path in keywords.get("installations", ()):
        installations.append((name, checked_paths(path)[0]))
    options["installations"] = tuple(installations)
    modules = []
    for entry in keywords.get("modules", ()):
        release, path = entry if isinstance(entry, tuple) else (None, entry)
        modules.append((release, checked_paths(path)[0]))
    options["modules"] = tuple(modules)

    # Names.
    _require_name("release", keywords.get("release"))
    _require_name("stack", keywords.get("stack"))
    for name, _ in installations:
        _require_name("installation", name)

    # Recipes.
    recipes = keywords.get("recipes") or {}
    for namespace, url in recipes.items():
        _require_recipes(namespace, url)
    options["recipes"] = dict(recipes)
    return BuildOptions(**options)


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


def _require_name(kind: str, name: str | None) -> None:
    """Raise ArgumentError if a name of this kind is given, but is not one."""
    if name is not None and not is_name(name):
        expected = "printable characters, no blank at either end, none of = + - @ first"
        raise ArgumentError(f"{kind} is {name!r}, expected a name: {expected}")


def _require_recipes(namespace: str, url: str) -> None:
    """Raise ArgumentError if a namespace is not a name, or its recipes have no URL."""
    if not is_name(namespace):
        raise ArgumentError(f"recipes names {namespace!r}, expected a namespace")
    if not re.fullmatch(r"https?://[^/\s]\S*", url):
        expected = "an address such as https://example.org/packages/{package}"
        raise ArgumentError(
            f"recipes of {namespace} are at {url!r}, expected {expected}"
        )
