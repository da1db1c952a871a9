"""What an export says of itself: title, version, license, source, and its files."""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.exports.contents import ExportedTable

NAME = "spack-cache-db"


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """Where the data of an export come from.

    Attributes:
        name: the short name of the data set, for programs.
        title: the name of the build cache.
        version: the day of the newest snapshot, or `0` if no release has a day.
        day: that day, such as `2026-11-24`; None without one.
        checksum: the sha256 of the database.
        license_name: the license of the data; empty if it is not known.
        license_url: the address of the license's text; empty if it is not known.
        source_url: the address of the build cache's pages; empty if it is not known.
    """

    title: str
    day: str | None
    checksum: str
    license_name: str = ""
    license_url: str = ""
    source_url: str = ""
    name: str = NAME

    @property
    def version(self) -> str:
        """The version of the data for catalogues, as three numbers: `2026.11.24`."""
        if self.day is None:
            return "0.0.0"
        year, month, day = self.day.split("-")
        # Croissant wants numbers without leading zeros.
        return f"{year}.{int(month)}.{int(day)}"

    @property
    def description(self) -> str:
        """A sentence about the data, which ends with the checksum of the database."""
        as_of = f" as of {self.day}" if self.day else ""
        return (
            f"The binaries of {self.title}{as_of}: packages, versions, variants, "
            f"compilers, targets, releases and dependencies, exported by {self.name} "
            f"from a database with the sha256 {self.checksum}."
        )

    @property
    def citation(self) -> str:
        """How a publication refers to the data."""
        as_of = f", as of {self.day}" if self.day else ""
        return f"{self.title}: catalogue of binaries{as_of}, sha256 {self.checksum}"


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that was written.

    Attributes:
        name: its name in the folder.
        size: its bytes.
        sha256: its checksum.
        row_count: the rows of the table.
    """

    table: ExportedTable
    name: str
    media_type: str
    size: int
    sha256: str
    row_count: int
