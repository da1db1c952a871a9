"""build.names: ids follow the meaning of names and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build.names import Dictionaries, dictionaries
from spack_cache_db.records import Configuration
from spack_cache_db.sources.columns import PageEntry, Tarball

RELEASES = ("develop", "v0.23.1", "v0.9", "develop-2025-02-02", "develop-2025-01-01")


def entry(release: str, package: str) -> PageEntry:
    """Return a page without listings."""
    return PageEntry("a", "a", "0", package, release, "A", 0, 0, ())


def configuration(package: str, version: str, compiler: str, *variants: str) -> Configuration:
    """Return a configuration on a usual machine."""
    return Configuration(package, version, compiler, "ubuntu24.04", "linux", "zen3", variants)


@given(
    st.permutations([entry(release, package) for release in RELEASES for package in ("a", "b")]),
    st.permutations(
        [
            configuration("a", "1.10", "gcc@9"),
            configuration("a", "1.9", "gcc@13"),
            configuration("b", "1.9", "clang@3", "+x", "~y"),
            configuration("b", "1.9", "none", "~y"),
        ]
    ),
    st.permutations([("e4s", "root"), ("root",), ()]),
)
def test_the_order_of_what_is_named_does_not_matter(
    pages: list[PageEntry], configurations: list[Configuration], stack_sets: list[tuple[str, ...]]
) -> None:
    """Versions and compilers come in Spack's order, releases from new to old, others by text."""
    found = dictionaries(
        pages, configurations, stack_sets, [Tarball("y", True), Tarball("x", True)]
    )
    assert found == Dictionaries(
        releases={name: at for at, name in enumerate(RELEASES, start=1)},
        packages={"a": 1, "b": 2},
        versions={("a", "1.9"): 1, ("a", "1.10"): 2, ("b", "1.9"): 3},
        compilers={"clang@3": 1, "gcc@9": 2, "gcc@13": 3, "none": 4},
        operating_systems={"ubuntu24.04": 1},
        platforms={"linux": 1},
        targets={"zen3": 1},
        stacks={"e4s": 1, "root": 2},
        stack_sets={(): 1, ("e4s", "root"): 2, ("root",): 3},
        variants={"+x": 1, "~y": 2},
        variant_sets={(): 1, ("+x", "~y"): 2, ("~y",): 3},
        tarballs={Tarball("x", True): 1, Tarball("y", True): 2},
    )
    assert found.configuration_key(configuration("b", "1.9", "none", "~y")) == (2, 3, 4, 1, 1, 1, 3)
