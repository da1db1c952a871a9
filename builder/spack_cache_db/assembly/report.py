"""What a build has read and written."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from spack_cache_db.errors import Fault

if TYPE_CHECKING:
    pass
from spack_cache_db.assembly.options import NO_SNAPSHOTS, Snapshots


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a build. `seconds` and `stages` are wall time, in all and by stage.

    `records` is how many specs the indexes tell of, a spec of two indexes counted
    twice; `specs`, `configurations` and `packages` are those that some release has;
    `package_entries` is how many packages the files of package data tell of, a package
    of two files counted twice. `notes` count the binaries that the filters of mirrors
    leave out. If the new database is the old one, byte for byte, the file is not
    replaced, and `is_unchanged` is true.
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
        """Return the report as plain values, faults as texts."""
        faults = [str(fault) for fault in self.faults]
        return {**asdict(self), "faults": faults, "snapshots": self.snapshots._asdict()}
