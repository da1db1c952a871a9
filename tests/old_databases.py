"""Databases that older versions of the program built, and the sources that they were
built from.

`python -m tests.old_databases` adds one of the present schema version. Run it before a
change of the schema raises the version.
"""

import lzma
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.builds import build
from spack_cache_db.schema import identity
from tests.paths import DATA

FOLDER = DATA / "old_databases"
SOURCES = FOLDER / "sources.tar.xz"
"""Pages, indexes of four versions, mirrors, an installation with modules, and package
data.
"""


@dataclass(frozen=True)
class OldDatabase:
    """A database by the name of its file, and what its program read besides pages and
    indexes.
    """

    name: str
    version: int
    has_snapshots: bool = True
    has_named_installation: bool = True
    has_modules: bool = True

    def write(self, path: Path) -> Path:
        """Unpack the database and return its path."""
        path.write_bytes(lzma.decompress((FOLDER / f"{self.name}.db.xz").read_bytes()))
        return path


_WITHOUT_MODULES = {"has_modules": False, "has_named_installation": False}

_WITHOUT_SNAPSHOTS = {"has_snapshots": False, **_WITHOUT_MODULES}

OLD_DATABASES = (
    OldDatabase("15", 15, **_WITHOUT_SNAPSHOTS),
    OldDatabase("16", 16, **_WITHOUT_SNAPSHOTS),
    OldDatabase("17", 17, **_WITHOUT_SNAPSHOTS),
    OldDatabase("18", 18, **_WITHOUT_SNAPSHOTS),
    OldDatabase("19", 19, **_WITHOUT_SNAPSHOTS),
    OldDatabase("20", 20, **_WITHOUT_SNAPSHOTS),
    OldDatabase("21-1", 21, **_WITHOUT_MODULES),
    OldDatabase("21-2", 21, **_WITHOUT_MODULES),
    OldDatabase("21-3", 21, has_modules=False),
    OldDatabase("21-4", 21),
    OldDatabase("22", 22),
    OldDatabase("23", 23),
    OldDatabase("24", 24),
    OldDatabase("25", 25),
)


def unpack_sources(folder: Path) -> Path:
    """Unpack the sources of all old databases into a folder and return it."""
    with tarfile.open(SOURCES) as archive:
        archive.extractall(folder, filter="data")
    return folder


def build_sources(sources: Path, output: Path, kind: OldDatabase) -> Path:
    """Build from the sources what an old program built from them."""
    installation = sources / "opt"
    paths = [sources / "all"]
    options: dict[str, Any] = {"keep_going": True}
    if kind.has_named_installation:
        options["installations"] = [("cluster", installation)]
    else:
        paths.append(installation)
    if kind.has_modules:
        options["modules"] = [("cluster", sources / "modules")]
    if not kind.has_snapshots:
        build([*paths, sources / "day1"], output, **options)
        return output
    # Two days: the mirror `ours` loses a binary and gets another one.
    build([*paths, sources / "day1"], output, snapshot="2026-11-01", **options)
    build([output, *paths, sources / "day2"], output, snapshot="2026-11-02", **options)
    return output


def add_present_version() -> Path:
    """Write the database of the present schema version among the old ones."""
    kind = OldDatabase(str(identity.SCHEMA_VERSION), identity.SCHEMA_VERSION)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = unpack_sources(folder / "sources")
        database = build_sources(sources, folder / "built.db", kind)
        data = lzma.compress(database.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    file = FOLDER / f"{kind.name}.db.xz"
    file.write_bytes(data)
    return file


if __name__ == "__main__":
    print(add_present_version())
