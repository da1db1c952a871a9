"""Detects that a build would write the database that already exists."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.assembly.options import Input, Snapshots
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.workers import program_versions
from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.errors import BuilderError, Fault, InputError
from spack_cache_db.inspect_file import NAME, RECORD
from spack_cache_db.schema.identity import STATEMENTS_SHA256
from spack_cache_db.sources.files import File
from spack_cache_db.sources.readers import input_files, plan
from spack_cache_db.sources.texts import as_json
from spack_cache_db.sources.writer import Texts


class Clock:
    """Wall time by stage, in seconds."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.last = self.start
        self.stages: dict[str, float] = {}

    def stage(self, name: str) -> None:
        """End the stage with this name."""
        now = time.perf_counter()
        self.stages[name] = round(now - self.last, 3)
        self.last = now


def paths_to_read(inputs: Input, output: Path) -> list[str]:
    """Return the input paths, without the output if this is the first build of a
    history.

    So one command can be used every day: `build x.db mirror/ -o x.db --snapshot DATE`.
    """
    # `abspath` also accepts a path with a NUL, which the build reports later.
    output_path = os.path.abspath(output)  # noqa: PTH100
    if os.path.exists(output):  # noqa: PTH110
        return inputs.paths
    paths = [path for path in inputs.paths if os.path.abspath(path) != output_path]  # noqa: PTH100
    if paths or inputs.options.installations:
        return paths
    # Without another input, reading reports that the output is missing.
    return inputs.paths


def fingerprint(inputs: Input, output: Path) -> str | None:
    """Return a checksum of the input and the options; None if a file is unreadable.

    The output itself (if it is an input) and the day of the snapshots are left out:
    they change nothing unless another source changes.
    """
    options = inputs.options
    relevant = replace(options, snapshot=None)
    # These do not change the content of the database.
    relevant = replace(relevant, jobs=0, progress=None, executor=None)
    relevant = replace(relevant, keep_going=False, force=False)
    parts: list[object] = [asdict(relevant), STATEMENTS_SHA256, program_versions()]
    try:
        units = plan(inputs.paths, options.installations, options.modules)
        for unit in units:
            for file in unit:
                if isinstance(file, Fault):
                    return None
                if _is_output(file, output):
                    parts.append("output")
                    continue
                for path in input_files(file):
                    name = os.path.relpath(path, file.location)
                    parts.append([file.path, name, sha256_of(path)])
        return hashlib.sha256(as_json(parts).encode()).hexdigest()
    except (OSError, ValueError, InputError):
        # The build itself reports the file that cannot be read.
        return None


def _is_output(file: File, output: Path) -> bool:
    """Return whether a file of the input is the database that is built on."""
    if file.kind != "database" or not output.exists():
        return False
    return Path(file.location).samefile(output)


def report_if_unchanged(
    mark: str, snapshots: Snapshots, output: Path, clock: Clock
) -> Report | None:
    """Return the report of a build whose input did not change; None if it did.

    Args:
        mark: the fingerprint of the input, which the build of `output` recorded too.
        snapshots: the options about snapshots, with a day.
        output: the database, which stays.
        clock: the time since the beginning of the build.
    """
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
    return Report(
        **record["counts"],
        faults=(),
        notes=(),
        bytes_read=0,
        file_size=inspected["size"],
        sha256=inspected["hash"],
        seconds=clock.last - clock.start,
        snapshots=snapshots,
        is_unchanged=True,
    )


def leave_out_paths(texts: Texts) -> None:
    """Remove the paths of installed specs and externals from the texts."""
    installs = texts.installs.things
    for at, install in enumerate(installs):
        installs[at] = install._replace(prefix=None)
    nodes = texts.nodes.things
    for at, node in enumerate(nodes):
        if node.external is not None:
            external = json.loads(node.external)
            external.pop("path", None)
            nodes[at] = node._replace(external=as_json(external))
