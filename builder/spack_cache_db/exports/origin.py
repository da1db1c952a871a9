"""What an export says of itself: title, version, license, source, and its files.

Both descriptions, `data_package` and `croissant`, are made of these records.
"""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.exports.contents import ExportedTable

NAME = "spack-cache-db"
"""The short name of every exported data set, for programs."""


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """Where the data of an export come from.

    Attributes:
        title: the name of the build cache.
        day: the day of the newest source, such as `2026-11-24`; None if it is not
            known.
        checksum: the sha256 of the database.
        license_name: the license of the data; empty if it is not known.
        license_url: the address of the license's text; empty if it is not known.
        source_url: the address of the build cache's pages; empty if it is not known.
        name: the short name of the data set.
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
        """The version of the data for catalogues: their day as three numbers.

        `2026.11.24`, or `0.0.0` if the day is not known.
        """
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
        table: the table or view that it contains.
        name: its name in the folder, such as `builds.csv.gz`.
        media_type: the type by which web servers and catalogues name its format.
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
