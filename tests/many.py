"""A file in which tables, views and queries have more rows than one answer may hold."""

from datetime import date, timedelta
from pathlib import Path

from spack_cache_db.assembly.builds import build
from tests.pagetexts import page, spec, spec_hash, write

MANY = 1_100
ALWAYS = spec_hash(9998)
"""The hash that every release lists."""


def build_many(folder: Path) -> Path:
    """Build 1,100 packages, 1,100 specs of one package, and 1,100 releases of one
    spec.
    """
    wrong = {"num_specs": 7}
    pages = {
        f"p{number:04}": page(f"p{number:04}", specs=[spec(number)], meta=wrong)
        for number in range(MANY - 1)
    }
    specs = []
    for number in range(MANY):
        target = "x86_64_v3" if number % 2 else "x86_64"
        variants = [f"k={number}"]
        versions = [f"1.{number // 2}"]
        specs.append(
            spec(MANY + number, versions=versions, target=target, variants=variants)
        )
    pages["zlib"] = page("zlib", specs=specs, meta=wrong)
    # A page has at most a thousand stacks.
    for package, stacks in (("arm", range(0, MANY, 2)), ("again", range(1, MANY, 2))):
        names = [f"s{number:04}" for number in stacks]
        held = spec(9999 - len(package), target="aarch64", stacks=names)
        pages[package] = page(package, "v1", specs=[held])
    snapshots = (
        ("again", "2021-01-03"),
        ("again", "2021-01-10"),
        ("kept", "2021-01-10"),
    )
    for start, (package, day) in enumerate(snapshots, start=1):
        specs = [
            spec(
                start * 10_000 + number,
                target="aarch64",
                variants=[f"k={number}"],
                stacks=["root"],
            )
            for number in range(MANY)
        ]
        pages[f"{package}-{day}"] = page(package, f"other-{day}", specs)
    always = spec(hash=ALWAYS, target="aarch64", stacks=["root"])
    days = [date(2022, 1, 1) + timedelta(number) for number in range(MANY)]
    pages |= {f"{day}": page("always", f"develop-{day}", [always]) for day in days}
    build([str(write(folder / "pages", **pages))], folder / "spack-cache.db")
    return folder / "spack-cache.db"
