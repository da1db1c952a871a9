"""A small build cache at random, with contradictions between its releases."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from spack_cache_db.build import build
from tests.pagetexts import page, spec, spec_hash, write

VERSIONS = ("1.0", "1.2.3", "2.0")
TARGETS = ("x86_64_v3", "zen3", "zen4", "aarch64")
COMPILERS = ("gcc@12.3.0", "gcc@13.2.0", "llvm@17.0.1")
SYSTEMS = ("rhel8", "ubuntu24.04")
VARIANTS = (("+x",), ("~x",), ("+x", "k=a,b"), ("k=a",), ())
STACKS = ("e4s", "ml")
RELEASES = ("develop", "v1.0", "develop-2025-01-05")
PACKAGES = ("foo", "bar")


def random_cache(file: Path) -> Path:
    """Build a file of two packages in three releases, the same each time."""
    chance = random.Random(7)
    pages = {}
    for package in PACKAGES:
        known = [_spec(chance, number) for number in range(20)]
        for release in RELEASES:
            listed = [dict(each) for each in chance.sample(known, 12)]
            for each in listed[:3]:
                each["os"] = chance.choice(SYSTEMS)
            name = f"{package}-{release}"
            pages[name] = page(package, release, listed)
    folder = write(file.parent / "pages", **pages)
    build([str(folder)], file)
    return file


def _spec(chance: random.Random, number: int) -> dict[str, Any]:
    stacks = chance.sample(STACKS, chance.randint(0, 2))
    return spec(
        number,
        hash=spec_hash(chance.getrandbits(150)),
        versions=[chance.choice(VERSIONS)],
        target=chance.choice(TARGETS),
        compiler=chance.choice(COMPILERS),
        os=chance.choice(SYSTEMS),
        variants=sorted(chance.choice(VARIANTS)),
        stacks=sorted({*stacks, "root"}),
    )
