"""verify.stored_values: everything that package data says is read back, and damage is told."""

from __future__ import annotations

import random
import sqlite3
import string
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.verify import verify
from tests.package_data import REAL, listed, published, write_packages

TEXTS = ("", "a", "None", "None ", "two\nlines\n", "é\u2028\x1b[31m", "<b>", "True", "x" * 300)
KEYS = ("versions", "versions_deprecated", "variants", "dependencies", "dependent_to", "homepage",
        "description", "build_system", "latest_version", "conflicts", "file")  # fmt: skip


def _named(rng: random.Random, names: Any, **fields: Any) -> list[dict[str, Any]]:
    chosen = rng.choices(names, k=rng.randint(0, 4))
    if rng.random() < 0.8:
        chosen = [*dict.fromkeys(chosen)]
    found = [
        {"name": each} | {key: rng.choice(of) for key, of in fields.items()} for each in chosen
    ]
    if found and rng.random() < 0.05:
        found[0]["new"] = [1, {"a": None}]
    return found


def _site(rng: random.Random, name: str) -> dict[str, Any]:
    versions = [f"{at}" for at in range(6)] + ["main", "1.2-rc1"]
    said = published(
        name,
        versions=_named(rng, versions, sha256=["x", "y"]) + _named(rng, ["7", "8"], branch=["b"]),
        versions_deprecated=_named(rng, versions, tag=["v1"], commit=["c"]),
        variants=_named(
            rng, ["mpi", "cuda"], default=[True, False, "True", "a"], description=TEXTS
        ),
        dependencies=_named(rng, string.ascii_lowercase[:9], description=TEXTS[:3]),
        dependent_to=_named(rng, string.ascii_lowercase[:9], description=TEXTS[:3]),
    )
    return _odd(rng, said)


def _list(rng: random.Random, name: str) -> dict[str, Any]:
    versions = rng.choices("123456", k=rng.randint(0, 4))
    types = {
        each: rng.choices("abcdefgh", k=rng.randint(0, 2))
        for each in rng.sample(("build", "link", "run", "test", "new"), rng.randint(0, 5))
    }
    return _odd(rng, listed(name, *versions, dependencies=types))


def _odd(rng: random.Random, said: dict[str, Any]) -> dict[str, Any]:
    for key in ("homepage", "description", "build_system", "latest_version"):
        if key in said and rng.random() < 0.3:
            said[key] = rng.choice([*TEXTS, None])
    for key in KEYS:
        # Both forms are known by it.
        if key in said and key != "latest_version" and rng.random() < 0.08:
            del said[key]
    if rng.random() < 0.1:
        said["another key"] = {"deep": [10**30, 1.5, "\u00e9"]}
    return said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_package_data_is_read_back(seed: int, tmp_path: Path) -> None:
    """Both forms of one package, whatever they say, with names that stand twice and new keys."""
    rng = random.Random(seed)
    names = rng.sample(string.ascii_lowercase[:9], 7)
    packages = [_site(rng, name) for name in names[:5]]
    others = [_list(rng, name) for name in names[2:]]
    folder = write_packages(tmp_path / "in", *packages, list=others, names=["a", "z"])
    build(folder, tmp_path / "x.db")
    found = verify(tmp_path / "x.db", folder)
    assert (found.packages, found.faults, found.differences) == (12, (), ())
    assert found.others == 0


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database of real package data."""
    file = tmp_path_factory.mktemp("packages") / "x.db"
    build(REAL, file)
    return file


def test_real_package_data_is_read_back(file: Path) -> None:
    """Every value of both forms."""
    found = verify(file, REAL)
    assert (found.packages, found.differences) == (22, ())


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "UPDATE known_packages SET homepage = 'x' WHERE name = 'acl'",
            "the package acl: homepage",
        ),
        ("UPDATE known_packages SET latest_version = NULL", "latest_version is "),
        ("UPDATE known_packages SET recipe = 'x'", "file is "),
        ("UPDATE known_packages SET description = 'x' WHERE name = 'gcc'", "description is "),
        (
            """UPDATE known_packages SET versions = replace(versions, '"n', '"N')""",
            "versions_deprecated is ",
        ),
        ("UPDATE known_packages SET versions = replace(versions, '.', 'x')", "versions is "),
        ("UPDATE known_packages SET variants = '[1]'", "variants is "),
        ("UPDATE variant_meanings SET default_value = 'x'", "variants is "),
        ("UPDATE variant_meanings SET description = 'x'", "variants is "),
        ("DELETE FROM known_dependents WHERE dependency = 'c'", "dependencies is "),
        ("UPDATE known_dependents SET packages = '[]'", "dependencies is "),
        (
            "UPDATE dependency_types SET types = 'link' WHERE types = 'build,link'",
            "dependencies is ",
        ),
        ("DELETE FROM known_packages WHERE name = 'acl'", "tells of the package acl, "),
    ],
)
def test_damage_is_told(sql: str, said: str, file: Path, tmp_path: Path) -> None:
    """Whatever table it is in, with the name of the package."""
    damaged = tmp_path / "x.db"
    damaged.write_bytes(file.read_bytes())
    connection = sqlite3.connect(damaged)
    connection.execute(sql)
    connection.commit()
    connection.close()
    assert any(said in str(each) for each in verify(damaged, REAL).differences)
