"""build.names: ids follow the meaning of names and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build.names import Names, number_names
from spack_cache_db.records import Configuration
from spack_cache_db.sources.tarballs import Tarball
from tests.configurations import configuration

RELEASES = ("develop", "v0.23.1", "v0.9", "develop-2025-02-02", "develop-2025-01-01")


def named(package: str, version: str, compiler: str, *variants: str) -> Configuration:
    """Return a configuration on a usual machine."""
    return configuration(package=package, version=version, compiler=compiler, variants=variants)


@pytest.mark.parametrize("field", Configuration._fields)
def test_every_field_of_a_configuration_is_in_its_row(field: str) -> None:
    """The row is also the place in the order: two that differ in one field have two."""
    one = named("zlib", "1.3", "gcc@13", "+x")
    changes: dict[str, Any] = {field: ("~x",) if field == "variants" else "other"}
    other = one._replace(**changes)
    names = number_names([], [], [one, other], [], [])
    assert names.configuration_row(one) != names.configuration_row(other)


@given(
    st.permutations(["a", "b", "c"]),
    st.permutations(
        [
            named("a", "1.10", "gcc@9"),
            named("a", "1.9", "gcc@13"),
            named("b", "1.9", "clang@3", "+x", "~y"),
            named("b", "1.9", "none", "~y"),
        ]
    ),
    st.permutations([("e4s", "root"), ("root",), ()]),
)
def test_the_order_of_what_is_named_does_not_matter(
    packages: list[str], configurations: list[Configuration], stack_sets: list[tuple[str, ...]]
) -> None:
    """Versions and compilers come in Spack's order, others by text; releases have theirs."""
    tarballs = [Tarball("y", True), Tarball("x", True)]
    found = number_names(RELEASES, packages, configurations, stack_sets, tarballs)
    assert found == Names(
        releases={name: at for at, name in enumerate(RELEASES, start=1)},
        packages={"a": 1, "b": 2, "c": 3},
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
    row = found.configuration_row(named("b", "1.9", "none", "~y"))
    assert row[:7] == (2, 3, 4, 1, 1, 1, 3)
