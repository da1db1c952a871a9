"""Files in which every canned query has more rows than one answer may hold."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from spack_cache_db.build import build
from tests.indexes import edge, hash_of, index, node, record
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, spec_hash, write

MANY = 1_100
ALWAYS = spec_hash(9998)
"""The hash that every release lists."""
EVERY_ANSWER = {
    "find_spec": ({"spec": "zlib"}, None, ("hash",)),
    "specs_of_package": ({"package": "zlib", "host": "zen3"}, MANY, ("hash",)),
    "targets_of_package": ({"package": "zlib"}, MANY, ("version", "target")),
    "releases_of_version": ({"package": "always"}, MANY, ("release",)),
    "releases_of_hash": ({"hash": ALWAYS}, MANY, ("release",)),
    "most_hashes": ({"package": "again"}, MANY, ("variants",)),
    "packages_of_stack": ({"stack": "e4s"}, MANY, ("package",)),
    "newest_versions": ({}, MANY + 4, ("package",)),
    "variant_values_of_package": ({"package": "zlib"}, MANY, ("value",)),
    "missing_for_family": ({}, MANY, ("package",)),
    "packages_gone": ({"old": "develop", "new": "v1"}, MANY, ("package",)),
    "families_lost": ({"old": "develop", "new": "v1"}, MANY, ("package", "family")),
    "new_versions": (
        {"old": "v1", "new": "develop"},
        MANY - 1 + MANY // 2,
        ("package", "version"),
    ),
    "stacks_by_growth": ({"old": "develop", "new": "v1"}, MANY + 1, ("stack",)),
    "most_replaced": ({"package": "again"}, MANY, ("variants",)),
    "longest_kept": ({"package": "kept"}, MANY, ("hash",)),
    "only_in_snapshots": ({"package": "kept"}, None, ("hash",)),
    "problems_of_pages": ({}, MANY, ("path",)),
}
"""Of each query parameters, how many rows there are (None where the answer does not count them),
and the columns that tell them apart."""
EVERY_DEPENDENCY_ANSWER = {
    "dependencies_of_hash": ({"hash": hash_of("top")}, MANY + 1, ("package",)),
    "dependents_of_hash": ({"hash": hash_of("base")}, MANY + 1, ("package",)),
    "dependencies_without_binary": ({"hash": hash_of("top")}, MANY, ("package",)),
    "differences_of_look_alikes": ({"hash": hash_of("like")}, MANY + 1, ("package",)),
}
"""The same of the queries over dependencies."""
EVERY_PACKAGE_ANSWER: dict[str, tuple[dict[str, str], int, tuple[str, ...]]] = {
    "packages_behind": ({}, MANY, ("package",)),
    "packages_missing": ({}, MANY, ("package",)),
    "versions_dropped": ({}, MANY, ("package",)),
}
"""The same of the queries over package data."""


def build_many(folder: Path) -> Path:
    """Build 1,100 packages, 1,100 specs of one package, and 1,100 releases of one spec.

    Two more packages have 1,100 configurations in snapshots; one has other hashes in each.
    """
    wrong = {"num_specs": 7}
    pages = {
        f"p{number:04}": page(f"p{number:04}", specs=[spec(number)], meta=wrong)
        for number in range(MANY - 1)
    }
    specs = [
        spec(
            MANY + number,
            versions=[f"1.{number // 2}"],
            target=("x86_64", "x86_64_v3")[number % 2],
            variants=[f"k={number}"],
        )
        for number in range(MANY)
    ]
    pages["zlib"] = page("zlib", specs=specs, meta=wrong)
    # A page has at most a thousand stacks.
    for package, stacks in (("arm", range(0, MANY, 2)), ("again", range(1, MANY, 2))):
        names = [f"s{number:04}" for number in stacks]
        held = spec(9999 - len(package), target="aarch64", stacks=names)
        pages[package] = page(package, "v1", specs=[held])
    snapshots = (("again", "2021-01-03"), ("again", "2021-01-10"), ("kept", "2021-01-10"))
    for start, (package, day) in enumerate(snapshots, start=1):
        specs = [
            spec(
                start * 10_000 + number, target="aarch64", variants=[f"k={number}"], stacks=["root"]
            )
            for number in range(MANY)
        ]
        pages[f"{package}-{day}"] = page(package, f"other-{day}", specs)
    always = spec(hash=ALWAYS, target="aarch64", stacks=["root"])
    days = [date(2022, 1, 1) + timedelta(number) for number in range(MANY)]
    pages |= {f"{day}": page("always", f"develop-{day}", [always]) for day in days}
    build([str(write(folder / "pages", **pages))], folder / "spack-cache.db")
    return folder / "spack-cache.db"


def build_many_dependencies(folder: Path) -> Path:
    """Build a spec that needs 1,100, one that as many need, and a look-alike of the first."""
    names = [f"p{number:04}" for number in range(MANY)]
    lacking = [record(node(name, edge("base", "link")), is_binary=False) for name in names]
    top = node("top", *(edge(name, "run") for name in names))
    like = {**node("top"), "hash": hash_of("like")}
    (folder / "index.json").write_bytes(
        index(*lacking, record(top), record(like), record(node("base")))
    )
    build([str(folder / "index.json")], folder / "spack-cache.db")
    return folder / "spack-cache.db"


def build_many_packages(folder: Path) -> Path:
    """Build 1,100 packages that are behind, in deprecated versions, and 1,100 without binaries."""
    names = [f"p{number:04}" for number in range(MANY)]
    pages = {name: page(name, specs=[spec(at, versions=["1.0"])]) for at, name in enumerate(names)}
    old = [{"name": "1.0"}]
    known = (published(name, "2.0", versions_deprecated=old) for name in names)
    lacking = [f"m{number:04}" for number in range(MANY)]
    data = write_packages(folder / "data", *known, names=lacking)
    build([write(folder / "pages", **pages), data], folder / "spack-cache.db")
    return folder / "spack-cache.db"
