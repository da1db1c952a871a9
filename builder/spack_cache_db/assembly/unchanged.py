"""Whether a build would write the file that is there."""

from __future__ import annotations

import hashlib
import json
import os
import time
from itertools import chain
from pathlib import Path
from typing import Any

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.assembly.options import Input, Snapshots
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.workers import program_versions
from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.database_file import NAME, RECORD
from spack_cache_db.errors import BuilderError, Fault, InputError
from spack_cache_db.schema.identity import STATEMENTS_SHA256
from spack_cache_db.sources.readers import input_files, plan
from spack_cache_db.sources.texts import as_json
from spack_cache_db.sources.writer import Texts


class Clock:
    """Wall time by stage, in seconds."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.stages: dict[str, float] = {}

    def stage(self, name: str) -> None:
        """End the stage with this name."""
        now = time.perf_counter()
        self.stages[name] = round(now - self.last, 3)
        self.last = now


def begun(inputs: Input, output: Path) -> list[str]:
    """Return the input paths, without the output if this is the first build of a
    history.
    """
    output_path = os.path.abspath(output)  # noqa: PTH100 - the same for paths as they were typed
    paths = [path for path in inputs.paths if os.path.abspath(path) != output_path]  # noqa: PTH100
    is_new = not os.path.exists(output) and (paths or inputs.installations)  # noqa: PTH110
    return paths if is_new else inputs.paths


def fingerprint(inputs: Input, output: Path) -> str | None:
    """Return a checksum of the input and the options; None if a file is unreadable.

    The output itself (if it is an input) and the day of the snapshots are left out:
    they change nothing unless another source changes.
    """
    options = inputs._replace(paths=[], jobs=0, progress=None, executor=None)
    snapshots, recipes = inputs.snapshots._replace(day=None), {**inputs.recipes}
    options = options._replace(snapshots=snapshots, recipes=recipes)
    parts: list[object] = [options, STATEMENTS_SHA256, program_versions()]
    try:
        for file in chain.from_iterable(
            plan(inputs.paths, inputs.installations, inputs.modules)
        ):
            if isinstance(file, Fault):
                return None
            location = Path(file.location)
            if (
                file.kind == "database"
                and output.exists()
                and location.samefile(output)
            ):
                parts.append("output")
                continue
            for path in input_files(file):
                parts.append(
                    [file.path, os.path.relpath(path, location), sha256_of(path)]
                )
        return hashlib.sha256(as_json(parts).encode()).hexdigest()
    except (OSError, ValueError, InputError):
        return None


def unchanged(
    mark: str, snapshots: Snapshots, output: Path, clock: Clock
) -> Report | None:
    """Return the report of a build whose input did not change; None if it did."""
    try:
        inspection = sqlite_file.current_inspection(output)
        inspected = inspection[NAME]
        record = inspected[RECORD]
        if mark != record["input"] or snapshots.day < record["day"]:
            return None
    except (BuilderError, KeyError, TypeError):
        return None  # There is no database, or its inspect file has no record.
    sqlite_file.note_look(output, inspection)
    clock.stage("compare")
    values: dict[str, Any] = {**record["counts"], "file_size": inspected["size"]}
    values |= {
        "sha256": inspected["hash"],
        "seconds": clock.last - clock.start,
        "bytes_read": 0,
    }
    return Report(**values, faults=(), notes=(), snapshots=snapshots, is_unchanged=True)


def leave_out_paths(texts: Texts) -> None:
    """Remove the paths of installed specs and externals from the texts."""
    texts.installs.things[:] = [
        install._replace(prefix=None) for install in texts.installs.things
    ]
    for at, node in enumerate(texts.nodes.things):
        if node.external is not None:
            external = json.loads(node.external)
            external.pop("path", None)
            texts.nodes.things[at] = node._replace(external=as_json(external))
