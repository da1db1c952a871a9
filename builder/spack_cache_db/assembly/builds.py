"""The functions `build` and `check`; what they need is imported late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from spack_cache_db.arguments import checked_with
from spack_cache_db.assembly.options import (
    BuildKeywords,
    BuildOptions,
    ReadKeywords,
    ReadOptions,
    checked_input,
)
from spack_cache_db.assembly.report import Report
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.errors import Fault


@checked_with(BuildOptions, BuildKeywords)
def build(
    paths: AnyPath | Iterable[AnyPath],
    output: AnyPath,
    **options: Unpack[BuildKeywords],
) -> Report:
    """Build a database from pages, indexes, mirrors and package data, and its inspect
    file.

    Args:
        paths: one path or many, as text or `Path`.
        output: the file to write. An older database is replaced once the new one is
            whole.
        options: the attributes of `ReadOptions` and `BuildOptions`, as keywords.

    Raises:
        ArgumentError: a path has a wrong type, or a name or a day is not one.
        BuilderError: a worker died, or differs in what it needs.
        InputError: the input has faults (with `keep_going`: it has nothing else).
            `HistoryError`, also with `keep_going`: a database of the input cannot be
            read.
        OutputError: the file cannot be written, is another program's, or has releases
            that the input does not have. In any case the old file stays.
    """
    inputs = checked_input(paths, **options)
    file = checked_file("output", output, "the database to write")
    from spack_cache_db.assembly.build_if_new import build_if_new

    return build_if_new(inputs, file)


@checked_with(ReadOptions, ReadKeywords)
def check(
    paths: AnyPath | Iterable[AnyPath], **options: Unpack[ReadKeywords]
) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Return (faults, problems) of the input without building; a problem comes as a
    `Fault`.

    Args:
        paths: one path or many, as text or `Path`.
        options: the attributes of `ReadOptions`, as keywords.

    Raises:
        ArgumentError: a path has a wrong type, or a name is not one.
        InputError: a path does not exist, or it has no files.
    """
    inputs = checked_input(paths, **options)
    from spack_cache_db.assembly import pipeline

    return pipeline.check(inputs)
