"""What the commands that read an input share: their options, the progress bar, counts in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

import click

from spack_cache_db.cli.stopping import when_stopped, write_error
from spack_cache_db.sources.units import DEFAULT_MAX_PAGE_SIZE

F = TypeVar("F", bound=Callable[..., Any])


class ByteSize(click.ParamType[int]):
    """Bytes, with an optional K, M or G (powers of 1024)."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        if isinstance(value, int):
            return value
        number, unit = str(value)[:-1], str(value)[-1:].upper()
        factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(unit)
        digits = number if factor else str(value)
        if not digits.isdecimal() or int(digits) < 1:
            self.fail(f"{value!r} is no size, expected bytes such as 500000, 64M or 1G", param, ctx)
        return int(digits) * (factor or 1)


class GivenPath(click.Path):
    """A path of at least one character: an empty one is a variable of a script that is not set."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path."""
        if value == "":
            self.fail("it is empty, expected a path", param, ctx)
        return super().convert(value, param, ctx)


def input_options(command: F) -> F:
    """Add what `build` and `check` share."""
    for option in (
        click.argument("paths", nargs=-1, type=GivenPath(), metavar="PATH...", callback=_given),
        click.option(
            "--jobs",
            type=click.IntRange(1),
            default=lambda: os.cpu_count() or 1,
            show_default="the machine's cores",
            help="Processes that read the input.",
        ),
        click.option(
            "--max-page-size",
            type=ByteSize(),
            default=DEFAULT_MAX_PAGE_SIZE,
            show_default="64M",
            help="Refuse larger pages (bytes, or 64M, 1G).",
        ),
        click.option("--release", help="The release of indexes and mirrors."),
        click.option("--stack", help="The stack of indexes and mirrors."),
        click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
    ):
        command = option(command)
    return command


def _given(
    ctx: click.Context, parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the paths; there is at least one, unless `build --example` names its own."""
    if not paths and not ctx.params.get("example"):
        raise click.MissingParameter(ctx=ctx, param=parameter)
    return paths


class Bar:
    """A progress bar on a terminal, nothing in a pipe. Gives the function that moves it."""

    def __init__(self, label: str = "Reading") -> None:
        self._label = label

    def __enter__(self) -> Callable[[float, int], None] | None:
        self._bar: Any = None
        self._end = ExitStack()
        return self._move if sys.stderr and sys.stderr.isatty() else None

    def _move(self, done: float, total: int) -> None:
        # Click counts in whole steps.
        done, total = int(1000 * done), 1000 * total
        if self._bar is None:
            self._end.enter_context(when_stopped(_show_cursor))
            self._bar = click.progressbar(length=total, label=self._label, file=sys.stderr)
            self._end.enter_context(self._bar)
        # A total that grows: what was all of it need not be any longer.
        self._bar.length, self._bar.finished = total, False
        self._bar.update(done - self._bar.pos)

    def __exit__(self, *error: object) -> None:
        self._end.close()


def _show_cursor() -> str:
    # Click hides it while a bar moves.
    write_error("\x1b[?25h\n")
    return ""


def counted(number: int, word: str, words: str | None = None) -> str:
    """Return a number and its word, such as `1 page` and `2,000 pages`."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"


def documents_read(pages: int, indexes: int, records: int) -> list[str]:
    """Return what was read, counted: pages, and indexes with their records."""
    found = [counted(pages, "page")] if pages or not indexes else []
    if indexes:
        found += [counted(indexes, "index", "indexes"), counted(records, "record")]
    return found
