"""The functions `build` and `check`; the pipeline is imported late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Unpack

from spack_cache_db.arguments import checked, checked_with
from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE, AnyPath, checked_file
from spack_cache_db.errors import Fault

if TYPE_CHECKING:
    from concurrent.futures import Executor
from spack_cache_db.assembly.options import Input, Progress, ReadOptions
from spack_cache_db.assembly.report import Report


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
    """Build a database from pages, indexes, mirrors and package data, and its inspect
    file.

    Args:
        paths: one path or many, as text or `Path`.
        output: the file to write. An older database is replaced once the new one is
            whole.
        jobs: how many processes read. The calling script is not run again in them. With
            an executor: how many units of the input it can read at the same time.
        keep_going: build what is good; the faults of the rest are in the report, and in
            `problems`.
        force: replace the output also if it has releases that the input does not have,
            or if it is a file that this program did not make; allow a snapshot before
            the newest one.
        max_page_size: refuse larger pages; bytes.
        release: that of indexes and mirrors, whatever folders they lie in.
        stack: the same.
        first: the release that stands before all others; else installed trees do.
        recipes: by namespace, the address of the recipes of its packages; `{package}`
            in it stands for the name of one.
        without_paths: leave out where installed specs and externals lie.
        snapshot: a day, `YYYY-MM-DD`. The releases of other sources then replace those
            of databases, and each mirror is also listed in the snapshot
            `<release>-<snapshot>`, unless its newest snapshot has the same binaries.
            The output, if built on, may be missing. The day may not be after today, and
            not before the newest snapshot of a mirror (`force` allows that).
        keep_snapshots: keep so many of the newest snapshots of each branch, of older
            ones the first of each week for as many weeks, and of still older ones the
            first of each month. Needs `snapshot`.
        drop: releases of databases of the input that are left out, snapshots or others.
        installations: pairs of a release and the path of an installation. An upstream
            has the release of the installation that uses it.
        modules: files and folders with lists of environment modules: Spack's
            `module-index.yaml`, or what Lmod's `spider -o jsonSoftwarePage` prints.
            With several installations, pairs of a release and a path.
        progress: called with (units read, units in all), in this process.
        executor: what reads the input, instead of processes that are started here. Its
            workers need the same versions of this package and of archspec, and the same
            paths.

    Raises:
        ArgumentError: a path has a wrong type, or a name or a day is not one.
        BuilderError: a worker died, or differs in what it needs.
        InputError: the input has faults (with `keep_going`: it has nothing else).
            `HistoryError`, also with `keep_going`: a database of the input cannot be
            read.
        OutputError: the file cannot be written, is another program's, or has releases
            that the input does not have. In any case the old file stays.
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
    from spack_cache_db.assembly import pipeline

    return pipeline.build(inputs, file, keep_going=keep_going, force=force)


@checked_with(ReadOptions.__annotations__)
def check(
    paths: AnyPath | Iterable[AnyPath], **options: Unpack[ReadOptions]
) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Return (faults, problems) of the input without building; a problem comes as a
    `Fault`.

    Args:
        paths: one path or many, as text or `Path`.
        options: those of `build` for reading the input.

    Raises:
        ArgumentError: a path has a wrong type, or a name is not one.
        InputError: a path does not exist, or it has no files.
    """
    inputs = Input.checked(paths, **options)
    from spack_cache_db.assembly import pipeline

    return pipeline.check(inputs)
