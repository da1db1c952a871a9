"""The result of `export`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export has written.

    Attributes:
        folder: the folder.
        format: `parquet` or `csv`.
        rows: the number of rows of each table, by name.
        size: the bytes of all files of tables.
    """

    folder: Path
    format: str
    rows: Mapping[str, int]
    size: int

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `export --json` prints."""
        return {
            "folder": str(self.folder),
            "format": self.format,
            "rows": dict(self.rows),
            "size": self.size,
        }
