"""The build, measured as a user runs it:
`spack-cache-db build CORPUS -o FILE --json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import run_module
from spack_cache_db.inspect_file import inspect_path


@dataclass(frozen=True, slots=True)
class Build:
    """One build: its time, the memory of all its processes, and its own report."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    file_bytes: int
    stages: Mapping[str, float] = field(default_factory=dict)


def build(
    paths: Sequence[Path],
    file: Path,
    jobs: int | None = None,
    *,
    memory: bool = False,
    again: bool = False,
) -> Build:
    """Build a database in a separate process.

    Args:
        paths: the sources.
        file: the database.
        jobs: the number of worker processes; None for as many as there are cores.
        memory: whether memory is measured, which slows the build down a little.
        again: whether the database of an earlier build stays; if nothing is new, the
            build ends early.
    """
    if not again:
        for old in (file, inspect_path(file)):
            old.unlink(missing_ok=True)
    options = ["--jobs", str(jobs)] if jobs else []
    run = run_module(
        "spack_cache_db",
        ["build", *map(str, paths), "-o", str(file), "--json", *options],
        memory=memory,
    )
    stages = json.loads(run.output).get("stages", {})
    return Build(
        run.seconds, run.cpu_seconds, run.peak_bytes, file.stat().st_size, stages
    )
