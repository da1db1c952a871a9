"""The arguments and options that `build`, `check` and `verify` share: their input."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.parameters import ByteSize, F, GivenPath, value_option


def input_options(command: F) -> F:
    """Add the arguments PATH... and the options about the input.

    The function of the command gets `paths`, `as_json`, and options with the names of
    the arguments of `spack_cache_db.build`.
    """
    # Each decorator puts its option before those that were added earlier.
    for add_option in reversed(_INPUT_OPTIONS):
        command = add_option(command)
    return command


def _given(
    ctx: click.Context, parameter: click.Parameter, paths: tuple[str, ...]
) -> Any:
    """Return the paths.

    They may be missing only with `--example` or `--installation`, which are other
    input. Both are eager: Click reads them before the paths.
    """
    if not (paths or ctx.params.get("example") or ctx.params.get("installations")):
        raise click.MissingParameter(ctx=ctx, param=parameter)
    return paths


def pairs(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the name and the value in each text of an option such as NAME=PATH."""
    names_and_values = []
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            expected = getattr(parameter, "metavar", "")
            raise click.BadParameter(
                f"{text!r} is not a pair, expected {expected}", ctx
            )
        names_and_values.append((name, value))
    return tuple(names_and_values)


def _modules(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> list[str | tuple[str, str]]:
    """Return a path for each text PATH, and a name and a path for NAME=PATH."""
    paths: list[str | tuple[str, str]] = []
    for text in texts:
        name, _, path = text.partition("=")
        # A = may also be in the path, after the name of a folder.
        is_pair = path and os.sep not in name
        paths.append((name, path) if is_pair else text)
    return paths


_INPUT_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    value_option(
        "--release",
        "NAME",
        "Release of the indexes and mirrors; by default, the name of their folder.",
    ),
    value_option(
        "--stack",
        "NAME",
        "Stack of the indexes and mirrors; by default, the name of their folder.",
    ),
    value_option(
        "--snapshot",
        "DATE",
        "Also list mirrors as snapshots of this day, such as 2026-11-25.",
    ),
    value_option(
        "--modules",
        "[NAME=]PATH",
        "Modules of an installation: Spack's module-index.yaml, or JSON of Lmod's spider. "
        "Repeatable.",
        multiple=True,
        callback=_modules,
    ),
    value_option(
        "--drop",
        "RELEASE",
        "Leave out a release of the databases among the input, such as a snapshot. Repeatable.",
        multiple=True,
    ),
    value_option(
        "--keep-snapshots",
        "N",
        "Keep N daily snapshots of a branch, then N weekly ones, then monthly ones. Needs "
        "--snapshot.",
        type=click.IntRange(1),
    ),
    click.option(
        "--installation",
        "installations",
        metavar="NAME=PATH",
        help="Installation, and the name of its release, such as a machine. Repeatable.",
        multiple=True,
        callback=pairs,
        is_eager=True,
    ),
    value_option(
        "--jobs",
        "N",
        "Number of processes that read the input.",
        type=click.IntRange(1),
        default=lambda: os.cpu_count() or 1,
        show_default="number of cores",
    ),
    value_option(
        "--max-page-size",
        "SIZE",
        "Refuse larger pages (bytes, or 64M, 1G).",
        type=ByteSize(),
        default=f"{DEFAULT_MAX_PAGE_SIZE >> 20}M",
        show_default=True,
    ),
    shared_options("json"),
    click.argument(
        "paths", nargs=-1, type=GivenPath(), metavar="PATH...", callback=_given
    ),
)
"""Decorators, in the order of the help."""
