"""Compares a file with its sources; only this room knows both.

What callers use stands here and loads nothing; `comparison` is loaded when a file is verified.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from spack_cache_db.arguments import AnyPath, checked_file
from spack_cache_db.build import Input, Progress
from spack_cache_db.errors import Fault
from spack_cache_db.sources import DEFAULT_MAX_PAGE_SIZE


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was held against the file, and what came out, sorted.

    `records` are those of indexes, `packages` those of package data. A difference is a `Fault` of a
    source: what it says, and what the file says instead; or one of the file: what it should have
    counted. Of `others`, documents of the file that were not given, listings are not counted,
    except those of pages.
    """

    pages: int = 0
    indexes: int = 0
    listings: int = 0
    records: int = 0
    packages: int = 0
    faults: tuple[Fault, ...] = ()
    differences: tuple[Fault, ...] = ()
    others: int = 0

    def __add__(self, other: Verification) -> Verification:
        return Verification(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )

    def as_dict(self) -> dict[str, Any]:
        """Return this as plain values, faults and differences as texts."""
        told = {key: [*map(str, getattr(self, key))] for key in ("faults", "differences")}
        return asdict(self) | told


def verify(
    file: AnyPath,
    paths: AnyPath | Iterable[AnyPath],
    *,
    jobs: int = 1,
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE,
    release: str | None = None,
    stack: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Hold a built file against its input: does it say all of that, and nothing else of it?

    Texts are compared in normal form (see `sources.pages.page_reader`). If all is there that the
    input says, and nothing else, it is built again: what is counted and computed has to be the
    same. The file may hold more than the input; then its counts are of more, and are not compared.

    Args:
        file: a file made by `build`.
        paths: pages, indexes, mirrors, package data, folders and archives; one path or many, as
            text or `Path`.
        jobs: how many processes read.
        max_page_size: refuse larger pages; bytes.
        release: that of indexes and mirrors, as it was given to `build`.
        stack: the same.
        progress: called with (units read, units in all), in this process.

    Raises:
        ArgumentError: an argument has a wrong type or value.
        DatabaseError: the file is not one of this builder, or is damaged.
        InputError: a path does not exist, or there is no file at all.
    """
    given = Input.checked(paths, jobs, max_page_size, release, stack, progress)
    database = checked_file("file", file)
    from spack_cache_db.verify import comparison

    return comparison.verify(database, given)
