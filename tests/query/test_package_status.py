"""What is behind, in all of a file, in a release and in a stack."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.names import UnknownNameError
from spack_cache_db.query.packages import behind
from spack_cache_db.spack.versions import equality_key, preference_key
from tests.package_data import preferred, published, write_packages
from tests.pagetexts import page, spec, write

VERSIONS = ("1.0", "1.9", "1.10", "2.0-rc1", "2.0", "3.1", "main", "develop")
STACKS = ("e4s", "ml")

Binary = tuple[str, str, str, str]
"""Release, stack, package, version."""


def written(folder: Path, binaries: Iterable[Binary], packages: list[dict[str, Any]]) -> Path:
    """Build a database of binaries and package data."""
    pages: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, (release, stack, package, version) in enumerate(binaries):
        one = spec(number, versions=[version], stacks=[stack])
        pages.setdefault((package, release), []).append(one)
    files = {f"{at}": page(*key, specs) for at, (key, specs) in enumerate(pages.items())}
    build([write(folder / "pages", **files), write_packages(folder / "data", *packages)],
          folder / "x.db")  # fmt: skip
    return folder / "x.db"


@pytest.mark.parametrize("seed", range(3))
def test_what_is_behind_is_that_of_a_brute_force(seed: int, tmp_path: Path) -> None:
    """For each release, each stack and both: the newest binary there, and what Spack has since."""
    rng = random.Random(seed)
    names = [f"p{at}" for at in range(12)]
    packages = []
    for name in names[:10]:
        known = rng.sample(VERSIONS, rng.randint(0, 6))
        old = [{"name": each} for each in VERSIONS if each not in known][:2]
        packages.append(published(name, *known, versions_deprecated=old))
    binaries = {
        (rng.choice(("develop", "v0.23")), rng.choice(STACKS), name, rng.choice(VERSIONS))
        for name in names[2:]
        for _ in range(5)
    }
    file = written(tmp_path, sorted(binaries), packages)
    for release in (None, "develop", "v0.23"):
        for stack in (None, *STACKS):
            expected = {}
            for each in packages:
                there = [
                    version
                    for of, at, name, version in binaries
                    if name == each["name"] and release in (None, of) and stack in (None, at)
                ]
                newer = [
                    known["name"]
                    for known in each["versions"]
                    if there
                    and not preference_key(known["name"])[0]
                    and equality_key(known["name"]) > equality_key(preferred(there))
                ]
                if newer:
                    expected[each["name"]] = (preferred(there), len(newer), len(there))
            found = behind(file, release=release, stack=stack)
            assert {
                each.name: (each.newest_version, each.versions_behind, each.spec_count)
                for each in found
            } == expected, (release, stack)
            assert [each.name for each in found] == sorted(expected)


def test_without_package_data_nothing_can_be_said(samples_file: Path, tmp_path: Path) -> None:
    """The error says what to build with; an unknown stack is named."""
    with pytest.raises(DatabaseError, match="no package data; build it with the output of spack"):
        behind(samples_file)
    file = written(tmp_path, [("develop", "e4s", "a", "1.0")], [published("a", "1.0")])
    with pytest.raises(UnknownNameError):
        behind(file, stack="nothing")
    assert behind(file) == []
