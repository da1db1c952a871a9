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
        file.unlink(missing_ok=True)
        inspect_path(file).unlink(missing_ok=True)
    arguments = ["build", *(str(path) for path in paths), "-o", str(file), "--json"]
    if jobs is not None:
        arguments += ["--jobs", str(jobs)]
    run = run_module("spack_cache_db", arguments, memory=memory)
    built = json.loads(run.output)
    return Build(
        seconds=run.seconds,
        cpu_seconds=run.cpu_seconds,
        peak_bytes=run.peak_bytes,
        file_bytes=file.stat().st_size,
        stages=built.get("stages", {}),
    )
