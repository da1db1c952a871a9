"""Histories of a mirror that loses binaries, built day by day as a nightly job builds
them.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.builds import build
from tests.indexes import edge, hash_of, index, node, record, write_layout3

URL = "https://cache.example.org/v1.0"
FIRST = "site-2026-11-01"
"""The copy of the first day in `lost_history`."""


def binary(
    name: str, version: str = "1.0", needs: Sequence[str] = (), **more: Any
) -> Any:
    """Return a record; the package of `hdf5_new` is `hdf5`, and `needs` are such
    names.
    """
    edges = []
    for other in needs:
        link = edge(package_of(other), "link")
        edges.append({**link, "hash": hash_of(other)})
    return record(
        node(package_of(name), *edges, version=version, hash=hash_of(name), **more),
    )


def package_of(name: str) -> str:
    """Return the package of a name of these tests."""
    return name.partition("_")[0]


def build_history(
    folder: Path, days: Mapping[str, Sequence[Any]], name: str = "site", url: str = URL
) -> Path:
    """Build the history of a mirror from the records that it lists on each day; return
    its file.
    """
    file = folder / "history.db"
    for day, records in days.items():
        mirror = folder / day / name
        write_layout3(mirror, {None: index(*records)})
        (mirror / "mirror.json").write_text(json.dumps({"url": url}))
        sources = [folder / day]
        if file.exists():
            sources.insert(0, file)
        build(sources, file, snapshot=day)
    return file


def lost_history(folder: Path) -> Path:
    """Build two days: the second has lost two of three binaries of hdf5, and all of
    solo.

    netcdf needs hdf5_old, which the mirror keeps; app needs hdf5_new, which it loses.
    """
    zlib = binary("zlib", "1.3")
    kept = [
        zlib,
        binary("hdf5_old", "1.12.2", ["zlib"]),
        binary("netcdf", "4.9", ["hdf5_old"]),
        binary("app", "2.0", ["hdf5_new"]),
    ]
    lost = [
        binary("hdf5_new", "1.14.6", ["zlib"]),
        binary("hdf5_other", "1.12.2", ["zlib"]),
        binary("solo", "2.0"),
        binary("solo_two", "2.1"),
    ]
    outside = [record(lost_record["spec"], is_binary=False) for lost_record in lost[:1]]
    days = {
        "2026-11-01": [*kept, *lost],
        "2026-11-02": [*kept, *outside, binary("cmake", "3.30")],
    }
    return build_history(folder, days)
