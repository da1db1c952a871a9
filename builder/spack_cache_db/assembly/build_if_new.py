"""Builds a database, unless its sources have nothing new."""

from __future__ import annotations

from pathlib import Path

from spack_cache_db.assembly.clock import Clock
from spack_cache_db.assembly.options import Input
from spack_cache_db.assembly.output_lock import alone_at, state_of
from spack_cache_db.assembly.replacement import (
    require_own_inspect_file,
    require_replaceable,
)
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.unchanged import report_if_unchanged, way_of
from spack_cache_db.assembly.workers import uncollected
from spack_cache_db.inspect_file import inspect_path
from spack_cache_db.sqlite_connection import require_sqlite


def build_if_new(inputs: Input, output: Path) -> Report:
    """Build `output` (see `spack_cache_db.assembly.builds.build`)."""
    require_sqlite()
    for path in (output, inspect_path(output)):
        require_replaceable(path, inputs.every_path, force=inputs.options.force)
    require_own_inspect_file(output)
    with uncollected(), alone_at(output):
        return _build_if_new(inputs, output)


def _build_if_new(inputs: Input, output: Path) -> Report:
    """Build `output`, which no other build writes at the same time."""
    clock = Clock()
    state_before = state_of(output)

    # The output stays if it was built in the same way, by options and program, from the
    # same sources.
    way = way_of(inputs, output)
    if not inputs.options.force:
        report = report_if_unchanged(inputs, way, output, clock)
        if report is not None:
            return report

    # Imported late: most nights have nothing new, and need none of it.
    from spack_cache_db.assembly import pipeline

    return pipeline.build(inputs, output, way, clock, state_before)
