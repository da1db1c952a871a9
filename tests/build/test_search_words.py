"""build.search_words: what a person types finds exactly the rows that it names."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.build.search_words import configuration_tokens
from tests.configurations import configuration
from tests.pagetexts import page, spec, write

MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "hdf5-cuda": (
        "hdf5",
        {"versions": ["1.14.3"], "variants": ["+cuda", "build_type=Release"]},
    ),
    "hdf5-plain": (
        "hdf5",
        {
            "versions": ["1.14.30"],
            "variants": ["~cuda", "build_system=cmake", "libs=shared,static"],
            "compiler": "gcc@12.4.0",
        },
    ),
    "hdf5-old": ("hdf5", {"versions": ["1.12.2"], "compiler": "none", "target": "x86_64"}),
    "numpy": (
        "py-numpy",
        {"versions": ["2.1.0"], "compiler": "gcc@12.4.0", "os": "rhel8", "variants": ["+blas"]},
    ),
    "torch": (
        "py-torch",
        {"versions": ["2.5"], "compiler": "clang@18.1.8", "target": "neoverse_v2"},
    ),
    "vision": (
        "py-torchvision",
        {"variants": ["build_system=python_pip"], "platform": "darwin", "os": "sequoia"},
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of six hand-made configurations."""
    folder = tmp_path_factory.mktemp("search")
    packages: dict[str, list[str]] = {}
    for key, (package, _) in MADE.items():
        packages.setdefault(package, []).append(key)
    numbers = {key: number for number, key in enumerate(MADE, start=1)}
    pages = {
        package: page(package, specs=[spec(numbers[key], **MADE[key][1]) for key in keys])
        for package, keys in packages.items()
    }
    build([str(write(folder / "pages", **pages))], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


def quoted(text: str) -> str:
    """Quote a search the way Datasette does: each word in double quotes."""
    return " ".join('"{}"'.format(word.replace('"', '""')) for word in text.split())


def found(connection: sqlite3.Connection, search: str) -> set[str]:
    """Return the hand-made configurations that a search finds."""
    rows = connection.execute(
        "SELECT specs.hash FROM configurations_fts "
        "JOIN specs ON specs.configuration = configurations_fts.rowid "
        "WHERE configurations_fts MATCH ?",
        [quoted(search)],
    )
    keys = {spec(number)["hash"]: key for number, key in enumerate(MADE, start=1)}
    return {keys[spec_hash] for (spec_hash,) in rows}


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("hdf5@1.14", {"hdf5-cuda", "hdf5-plain"}),
        ("hdf5@1.1", set()),
        ("py-numpy", {"numpy"}),
        ("py", {"numpy", "torch", "vision"}),
        ("torch", {"torch"}),
        ("~cuda", {"hdf5-plain", "hdf5-old", "torch"}),
        ("cuda", {"hdf5-cuda"}),
        ("build_system=cmake", {"hdf5-plain", "hdf5-old", "torch"}),
        ("build_system=python_pip", {"vision"}),
        ("libs=shared", {"hdf5-plain"}),
        ("libs=shared,static", {"hdf5-plain"}),
        ("%gcc@12.4.0", {"hdf5-plain", "numpy"}),
        ("gcc@12", {"hdf5-plain", "numpy"}),
        ("@12.4", set()),
        ("%hdf5", set()),
        ("^hdf5", set()),
        ("libs=static,shared", set()),
        ("gcc@13", {"hdf5-cuda", "vision"}),
        ("gcc@1", set()),
        ("gcc", {"hdf5-cuda", "hdf5-plain", "numpy", "vision"}),
        ("%gcc", {"hdf5-cuda", "hdf5-plain", "numpy", "vision"}),
        ("none", {"hdf5-old"}),
        ("x86_64_v3", {"hdf5-cuda", "hdf5-plain", "numpy", "vision"}),
        ("target=x86_64_v3", {"hdf5-cuda", "hdf5-plain", "numpy", "vision"}),
        ("x86_64", {"hdf5-cuda", "hdf5-plain", "hdf5-old", "numpy", "vision"}),
        ("target=x86_64", {"hdf5-old"}),
        ("os=rhel8", {"numpy"}),
        ("platform=darwin", {"vision"}),
        ("hdf5 ~cuda gcc@12.4.0", {"hdf5-plain"}),
        ("HDF5@1.14.3", {"hdf5-cuda"}),
    ],
)
def test_a_search_finds_exactly_what_it_names(
    search: str, expected: set[str], made: sqlite3.Connection
) -> None:
    """Words are Spack's own; each one is found whole, and all of them have to be."""
    assert found(made, search) == expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("torch", {"py-torch", "py-torchvision"}),
        ("vision", {"py-torchvision"}),
        ("py", {"py-numpy", "py-torch", "py-torchvision"}),
        ("num", {"py-numpy"}),
        ("y-n", {"py-numpy"}),
        ("hdf55", set()),
    ],
)
def test_a_package_is_found_by_any_part(
    search: str, expected: set[str], made: sqlite3.Connection
) -> None:
    """The front of a name, its end, or what lies between."""
    rows = made.execute(
        "SELECT name FROM packages_fts JOIN packages ON packages.id = packages_fts.rowid "
        "WHERE packages_fts MATCH ?",
        [quoted(search)],
    )
    assert {name for (name,) in rows} == expected


@pytest.mark.parametrize(
    "search", ['"', "a:b", "AND", "NOT +cuda", "hdf5*", "(", "^hdf5", "-", "''"]
)
def test_no_search_is_an_error(search: str, made: sqlite3.Connection) -> None:
    """The operators of the search language are only text in what Datasette quotes."""
    assert found(made, search) <= set(MADE)


def test_a_long_version_does_not_grow_as_its_square() -> None:
    """Of a version with many dots the first parts are searched for one by one, and the whole."""
    version = ".".join("1" * 100)
    words = configuration_tokens(configuration(version=version, compiler=f"gcc@{version}", os="os"))
    assert {f"zlib@{version}", "zlib@1.1.1", f"%gcc@{version}", "%gcc@1.1.1"} <= set(words.split())
    assert len(words) < 12 * len(version)
