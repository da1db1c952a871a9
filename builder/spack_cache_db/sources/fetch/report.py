"""What `fetch` has downloaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spack_cache_db.errors import Fault


@dataclass(frozen=True, slots=True)
class FetchReport:
    """The result of a run.

    Attributes:
        mirrors: number of mirrors, including those with a faulty configuration.
        downloaded: number of mirrors without a fault.
        changed: number of mirrors with new content.
        size: bytes received.
        seconds: duration of the run.
        vanished: folders of stacks that no manifest lists any longer.
        faults: sorted faults.
        notes: mirrors without binaries, and counts of binaries that filters exclude.
    """

    mirrors: int
    downloaded: int
    changed: int
    size: int
    seconds: float
    vanished: tuple[Path, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, paths and faults as texts."""
        values = asdict(self)
        values["vanished"] = [str(path) for path in self.vanished]
        values["faults"] = [str(fault) for fault in self.faults]
        values["notes"] = list(self.notes)
        return values
