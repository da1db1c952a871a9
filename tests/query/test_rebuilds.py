"""Why configurations were rebuilt, on changes that are planted in two releases."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.changes import compare, diff, diff_databases, side_of
from spack_cache_db.query.database import connected, read_lookups
from tests.indexes import edge, hash_of, index, node, record

Spec = dict[str, Any]


def spec(name: str, tag: str, *needs: tuple[str, str], **more: Any) -> Spec:
    """Return a record; `tag` tells its hash from others of the name, also in what needs it."""
    edges = [edge(each, "build", "link") | {"hash": hash_of(each + key)} for each, key in needs]
    return record(node(name, *edges, **more, hash=hash_of(name + tag)))


def causes(folder: Path, old: list[Spec], new: list[Spec]) -> list[tuple[str, int]]:
    """Return the causes of what was rebuilt from one release to the next, as lines with counts.

    They are the same for two databases.
    """
    for release, records in (("v1.0", old), ("v1.1", new)):
        path = folder / "in" / release / "e4s" / "index.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(index(*records))
        build([path], folder / f"{release}.db", release="develop")
    build([str(folder / "in")], folder / "out.db")
    conn = sqlite3.connect(folder / "out.db")
    found = diff(conn, "v1.0", "v1.1").causes
    conn.close()
    apart = diff_databases(folder / "v1.0.db", folder / "v1.1.db").releases["develop"]
    assert apart.causes == found
    return [(str(each), each.configurations) for each in found or ()]


def zlib(tag: str, version: str = "1.0", **more: Any) -> Spec:
    """Return a dependency of many."""
    return spec("zlib", tag, version=version, **more)


OLD = [
    zlib("a"),
    spec("png", "a", ("zlib", "a")),
    spec("tiff", "a", ("png", "a")),
    spec("hdf5", "a", ("zlib", "a")),
]


def rebuilt(*dependencies: Spec) -> list[Spec]:
    """Return the packages above the dependencies, with other hashes."""
    return [
        *dependencies,
        spec("png", "b", ("zlib", "b")),
        spec("tiff", "b", ("png", "b")),
        spec("hdf5", "b", ("zlib", "b")),
    ]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (rebuilt(zlib("b", "1.1")), [("zlib 1.0 → 1.1", 3)]),
        (
            rebuilt(zlib("b", parameters={"build_system": "generic", "pic": True})),
            [("zlib nothing → +pic", 3)],
        ),
        (rebuilt(zlib("b", package_hash="other")), [("zlib: its recipe", 4)]),
        (
            [*OLD[:3], spec("hdf5", "b", ("zlib", "a"), package_hash="other")],
            [("hdf5: its recipe", 1)],
        ),
        (
            [*OLD[:3], spec("hdf5", "b", ("zlib", "a"), ("png", "a"))],
            [("png: now needed", 1)],
        ),
        ([*OLD[:3], spec("hdf5", "b")], [("zlib: no longer needed", 1)]),
        (OLD, []),
    ],
    ids=["version", "variants", "recipe below", "recipe", "new", "gone", "none"],
)
def test_nearest_dependency_that_changed_is_the_cause(
    tmp_path: Path, new: list[Spec], expected: list[tuple[str, int]]
) -> None:
    """A change is found through dependencies that differ by hash alone, and counted once each."""
    assert causes(tmp_path, OLD, new) == expected


def test_hashes_are_compared_with_those_most_like_them(tmp_path: Path) -> None:
    """Of two look-alikes each is compared with the one of the same dependencies."""
    old = [zlib("a"), spec("mpi", "a"), spec("h", "1", ("zlib", "a")), spec("h", "2", ("mpi", "a"))]
    new = [
        zlib("b", "1.1"),
        spec("mpi", "a"),
        spec("h", "3", ("zlib", "b")),
        spec("h", "2", ("mpi", "a")),
        spec("h", "4", ("mpi", "a"), package_hash="other"),
    ]
    assert causes(tmp_path, old, new) == [("zlib 1.0 → 1.1", 1)]


def test_causes_of_too_much_are_not_looked_for(tmp_path: Path) -> None:
    """Where more was rebuilt than may be looked at there is no answer, rather than a part of it."""
    causes(tmp_path, OLD, new := rebuilt(zlib("b", "1.1")))
    with connected(tmp_path / "out.db") as conn:
        lookups = read_lookups(conn)
        sides = side_of(lookups, "v1.0"), side_of(lookups, "v1.1")
        hashes = 2 * (len(new) - 1)
        changes = compare(lookups, *sides, ())
        found = [changes.in_words(most) for most in (None, hashes, hashes - 1)]
    assert found[0].causes == found[1].causes != ()
    assert found[2].causes is None and found[2].rebuilt == found[0].rebuilt
