"""The result of a build."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from spack_cache_db.assembly.options import NO_SNAPSHOTS, Snapshots
from spack_cache_db.errors import Fault


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a build.

    Attributes:
        pages: pages that were read.
        indexes: indexes that were read.
        records: records of the indexes; a spec of two indexes counts twice.
        listings: listings of the database.
        specs: binaries in any release.
        configurations: configurations of these binaries.
        packages: packages of these binaries.
        releases: releases of the database.
        problems: rows of the table `problems`.
        package_entries: packages in files of package data; a package in two files
            counts twice.
        faults: faults of the input, which was built without them (`keep_going`).
        notes: how many binaries the filters of mirrors leave out, and how many
            environment modules load an installed spec.
        bytes_read: size of the input, in bytes.
        file_size: size of the database, in bytes.
        sha256: checksum of the database, in hexadecimal digits.
        seconds: duration of the build.
        stages: duration of each stage in seconds, by its name.
        snapshots: the options about snapshots, and their effect.
        is_unchanged: whether the old database has the same bytes, and was not replaced.
    """

    pages: int
    indexes: int
    records: int
    listings: int
    specs: int
    configurations: int
    packages: int
    releases: int
    problems: int
    package_entries: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    bytes_read: int
    file_size: int
    sha256: str
    seconds: float
    stages: dict[str, float] = field(default_factory=dict)
    snapshots: Snapshots = NO_SNAPSHOTS
    is_unchanged: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, with faults as texts."""
        values = asdict(self)
        values["faults"] = [str(fault) for fault in self.faults]
        values["snapshots"] = self.snapshots._asdict()
        return values
