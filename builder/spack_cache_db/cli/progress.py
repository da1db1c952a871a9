"""The progress bar of long commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from spack_cache_db.cli.signals import when_stopped, write_error


@contextmanager
def progress_bar(
    label: str = "Reading",
) -> Iterator[Callable[[float, int], None] | None]:
    """Yield a function that moves a progress bar on a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return

    def show_cursor() -> str:
        # Click hides the cursor while a bar moves.
        write_error("\x1b[?25h\n")
        return ""

    with (
        when_stopped(show_cursor),
        click.progressbar(length=1, label=label, file=sys.stderr) as bar,
    ):

        def move(done: float, total: int) -> None:
            # Click counts whole steps. The total may grow after the bar was full.
            bar.length, bar.finished = 1000 * total, False
            bar.update(int(1000 * done) - bar.pos)

        yield move
