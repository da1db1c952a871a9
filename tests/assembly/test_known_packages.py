"""build.known_packages: what files say of one package, and how it compares with
binaries.
"""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build, check
from spack_cache_db.errors import InputError
from tests.package_data import (
    REAL,
    catalogued,
    described,
    listed,
    published,
    write_packages,
)


def rows(file: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    connection = sqlite3.connect(file)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def built(folder: Path, *packages: dict[str, Any], **files: Any) -> Path:
    """Build from packages of the site, and other files, and return the database."""
    file = folder.parent / "x.db"
    build(write_packages(folder, *packages, **files), file)
    return file


def test_two_forms_of_package_data_are_joined(tmp_path: Path) -> None:
    """What contradicts is a problem that names the file."""
    other = listed(
        "a", "3", "1", homepage="https://other", dependencies={"link": ["b"]}
    )
    said = published("a", "2", "1", dependencies=described("b"))
    file = built(tmp_path / "in", said, list=[other])
    (package,) = rows(file, "SELECT homepage, build_system, recipe FROM known_packages")

    assert package == (
        "https://a.example.org",
        "CMakePackage",
        "https://example.org/a/package.py",
    )

    versions = rows(
        file, "SELECT version, deprecated FROM known_versions ORDER BY position"
    )
    assert versions == [("1", 0), ("2", 0), ("3", None)]
    assert rows(file, "SELECT dependency, types FROM known_dependencies") == [
        ("b", "link")
    ]

    problems = rows(file, "SELECT code, source, message FROM problems ORDER BY code")
    assert [code for code, *_ in problems] == [
        "package_homepage", "package_latest_version", "package_versions",
    ]  # fmt: skip
    assert problems[2][1:] == (
        "list.json",
        "the package a has other versions here than in a.json: 3, not 2",
    )
    assert [fault.path for fault in check(tmp_path / "in")[1]] == [
        f"{tmp_path}/in/list.json"
    ] * 3


def test_two_files_of_a_form_that_differ_are_a_fault(tmp_path: Path) -> None:
    """The same words again are passed over."""
    folder = write_packages(tmp_path / "in", published("a", "1"))
    write_packages(folder / "again", published("a", "1"))
    build(folder, tmp_path / "x.db")
    write_packages(folder / "more", published("a", "2"))

    with pytest.raises(
        InputError, match=r"more/a\.json: has other data of the package a than"
    ):
        build(folder, tmp_path / "x.db")


def test_versions_are_in_spacks_order_with_branches_marked(tmp_path: Path) -> None:
    """Deprecated ones are among them."""
    versions = [
        {"name": "1.10"},
        {"name": "1.9"},
        {"name": "main"},
        {"name": "9", "branch": "x"},
    ]
    deprecated = [{"name": "1.2"}]
    file = built(
        tmp_path / "in",
        published("a", versions=versions, versions_deprecated=deprecated),
    )
    found = rows(
        file, "SELECT version, deprecated, kind FROM known_versions ORDER BY position"
    )

    assert found == [
        ("1.2", 1, "number"), ("1.9", 0, "number"), ("1.10", 0, "number"),
        ("9", 0, "branch"), ("main", 0, "branch"),
    ]  # fmt: skip


def test_a_virtual_package_is_described_by_one_that_provides_it(tmp_path: Path) -> None:
    """Neither a package nor what two could provide is given a provider."""
    virtual = [
        {"name": "mpi", "description": "The package openmpi."},
        {"name": "blas", "description": "The package twin."},
        {"name": "else", "description": "The package openmpi."},
    ]
    twins = [
        published(name, description="The package twin.") for name in ("one", "two")
    ]
    file = built(
        tmp_path / "in",
        published("a", dependencies=virtual),
        published("openmpi", dependent_to=described("else")),
        *twins,
    )
    found = rows(
        file,
        "SELECT virtual, name FROM providers JOIN known_packages ON id = known_package_id",
    )

    assert found == [("mpi", "openmpi")]


def test_maintainers_licenses_and_tags_are_rows(tmp_path: Path) -> None:
    """Those of the richest file that has any; a database of them gives them again."""
    richest = published("a", "1", maintainers=["x", "y"])
    short = [
        listed("a", "1", maintainers=["z"]),
        listed("b", "1", maintainers=["x"]),
    ]
    repology = catalogued(
        {
            "name": "a",
            "version": [{"version": "1"}],
            "licenses": ["MIT", "BSD when @:1"],
            "categories": ["e4s"],
        }
    )
    file = built(tmp_path / "in", richest, list=short, repology=repology)
    again = tmp_path / "again.db"
    build(file, again)

    assert again.read_bytes() == file.read_bytes()
    assert rows(file, "SELECT * FROM known_maintainers ORDER BY 1, 2") == [
        ("a", "x"), ("a", "y"), ("b", "x"),
    ]  # fmt: skip
    assert rows(file, "SELECT * FROM known_licenses ORDER BY license") == [
        ("a", "BSD", "@:1"), ("a", "MIT", None),
    ]  # fmt: skip
    assert rows(file, "SELECT * FROM known_tags") == [("a", "e4s")]
    assert rows(
        file, "SELECT source, code, message FROM problems WHERE code LIKE '%ers'"
    ) == [
        (
            "list.json",
            "package_maintainers",
            "the package a has other maintainers here than in a.json: z, not x, y",
        )
    ]


def test_package_data_changes_no_row_of_the_binaries(
    tmp_path: Path, samples_file: Path
) -> None:
    """And without it, its tables are empty."""
    tables = [
        name
        for (name,) in rows(
            samples_file, "SELECT name FROM sqlite_master WHERE type='table'"
        )
        if not name.startswith("known_packages_fts")
    ]
    with_data = tmp_path / "x.db"
    build([str(REAL), "pages"], with_data)
    own = {"versions", "dependency_types", "problems", "sqlite_stat1"}

    for name in tables:
        without = rows(samples_file, f"SELECT * FROM [{name}]")
        if name.startswith(("known_", "package_", "providers", "variant_meanings")):
            assert without == []
        elif name not in own:
            assert rows(with_data, f"SELECT * FROM [{name}]") == without, name
    assert rows(samples_file, "SELECT * FROM package_status") == []
