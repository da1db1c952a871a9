"""Inputs of which every count is known: files of the made-up kind, and pages."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from tests.madeup import document, of_target
from tests.pagetexts import page, spec

RELEASES = ["develop", "v0.20", "develop-2025-01-01", "develop-2025-02-02"]
PACKAGES = ["zlib", "zstd"]
TARGETS = ["zen3", "x86_64_v3", "aarch64"]
NUMBERS = st.sets(st.integers(1, 8), max_size=5)


class Input(NamedTuple):
    """Specs by number: what a stack of a release lists and knows of, and what pages list."""

    documents: dict[tuple[str, str], tuple[set[int], set[int]]]
    pages: dict[tuple[str, str], set[int]]


INPUTS = st.builds(
    Input,
    st.dictionaries(
        st.tuples(st.sampled_from(RELEASES), st.sampled_from(["a", "b", "root"])),
        st.tuples(NUMBERS, NUMBERS),
        min_size=1,
        max_size=6,
    ),
    st.dictionaries(
        st.tuples(st.sampled_from(RELEASES), st.sampled_from(PACKAGES)), NUMBERS, max_size=3
    ),
)


def package_of(number: int) -> str:
    """Return the package of a spec."""
    return PACKAGES[number % 2]


def target_of(number: int) -> str:
    """Return the target of a spec: what tells the configurations of a package apart."""
    return TARGETS[number % 3]


def write(folder: Path, whole: Input) -> Path:
    """Write the files of an input."""
    folder.mkdir()
    for (release, stack), (listed, others) in whole.documents.items():
        specs = [
            of_target(number, package_of(number), target_of(number), listed=number in listed)
            for number in listed | others
        ]
        (folder / f"{release}-{stack}.txt").write_bytes(document(release, stack, specs))
    for (release, package), numbers in whole.pages.items():
        specs = [
            spec(number, target=target_of(number), stacks=["p"])
            for number in numbers
            if package_of(number) == package
        ]
        (folder / f"{release}-{package}.md").write_bytes(page(package, release, specs))
    return folder
