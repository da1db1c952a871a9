"""The progress bar of long commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from spack_cache_db.cli.signals import when_stopped, write_error

_STEPS = 1000
"""Steps of the bar for one unit of work, because Click counts whole steps."""

_SHOW_CURSOR = "\x1b[?25h"
"""The control sequence by which a terminal shows its cursor again."""


@contextmanager
def progress_bar(
    label: str = "Reading",
) -> Iterator[Callable[[float, int], None] | None]:
    """Yield a function that moves a progress bar on a terminal; None elsewhere.

    The function takes how much is done and how much there is: `move(1.5, 12)`.
    """
    if not sys.stderr.isatty():
        yield None
        return

    def show_cursor() -> str:
        # Click hides the cursor while a bar moves.
        write_error(f"{_SHOW_CURSOR}\n")
        return ""

    with (
        when_stopped(show_cursor),
        click.progressbar(length=1, label=label, file=sys.stderr) as bar,
    ):

        def move(done: float, total: int) -> None:
            bar.length = _STEPS * total
            # The total may grow after the bar was full.
            bar.finished = False
            # Click wants the steps since the last call.
            bar.update(int(_STEPS * done) - bar.pos)

        yield move
