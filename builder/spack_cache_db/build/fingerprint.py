"""The checksum of an input: whether a build of a history has anything new to read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.build import Input
from spack_cache_db.build.workers import program_versions
from spack_cache_db.errors import Fault, InputError
from spack_cache_db.schema import STATEMENTS_SHA256
from spack_cache_db.sources import plan
from spack_cache_db.sources.indexes.mirrors import files_to_read
from spack_cache_db.sources.strictness import as_json

_OTHERS = {"paths", "jobs", "progress", "executor", "snapshots"}
"""Fields of `Input` that do not decide what a database contains, or are looked at separately."""


def fingerprint(given: Input, output: Path) -> str | None:
    """Return the checksum of what decides the content of a database; None if a file is unreadable.

    The output itself, if it is built on, and the day of the snapshot are left out: without news in
    the other sources, they change nothing.
    """
    options = {name: value for name, value in given._asdict().items() if name not in _OTHERS}
    options["recipes"] = {**given.recipes}
    versions = {**program_versions(), "schema": STATEMENTS_SHA256}
    digest, is_built_on = hashlib.sha256(), False
    try:
        for unit in plan(given.paths, given.installations):
            for file in unit:
                if isinstance(file, Fault):
                    return None
                place = Path(file.location)
                if file.kind == "database" and os.path.samefile(place, output):  # noqa: PTH121
                    is_built_on = True
                    continue
                paths = files_to_read(place) if file.kind == "mirror" else [place]
                for path in paths:
                    name = os.path.relpath(path, place)
                    digest.update(as_json([file.path, name, sha256_of(path)]).encode())
    except (OSError, ValueError, InputError):
        return None
    last = [options, versions, given.snapshots.keep, is_built_on, digest.hexdigest()]
    return hashlib.sha256(as_json(last).encode()).hexdigest()
