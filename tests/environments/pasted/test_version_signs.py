"""Versions of other package managers mean the same versions in Spack's syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from spack_cache_db.environments.pasted.version_signs import with_spack_versions
from spack_cache_db.spack.parser import parse_query

PACKAGES = {"hdf5", "zlib", "py-numpy"}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hdf5==1.14.6", "hdf5@1.14.6"),
        ("hdf5=1.14.6", "hdf5@1.14.6"),
        ("hdf5===1.14.6", "hdf5@1.14.6"),
        ("hdf5=1.14.6=nompi_h2d575fe_105", "hdf5@1.14.6"),
        ("hdf5==1.14.*", "hdf5@1.14"),
        ("hdf5>=1.12", "hdf5@1.12:"),
        ("hdf5 >= 1.12, < 1.14", "hdf5@1.12:1.13"),
        ("hdf5<1.13", "hdf5@:1.12"),
        ("hdf5<2.0", "hdf5@:1"),
        ("hdf5~=1.14", "hdf5@1.14:1"),
        ("hdf5~=1.14.2", "hdf5@1.14.2:1.14"),
        ("hdf5<=1.13", "hdf5@:1.13"),
        ("hdf5==1.14.6 +mpi %gcc@13", "hdf5@1.14.6 +mpi %gcc@13"),
        ("hdf5[mpi]==1.14", "hdf5@1.14"),
        ("numpy==1.26; python_version > '3.8'", "py-numpy@1.26"),
        ("NumPy>=1.26 --hash=sha256:abc", "py-numpy@1.26:"),
        ("hdf5!=1.12,>=1.10", "hdf5@1.10:"),
        ("hdf5 cflags==-O2", None),
        ("hdf5 api=v18", None),
        ("nosuch==1.0", None),
        ("hdf5==", None),
        ("build_type=1", None),
    ],
)
def test_versions_are_read(text: str, spec: str | None) -> None:
    """Signs of pip and conda are read if the word before them is a package."""
    versions = with_spack_versions(text, PACKAGES.__contains__)
    assert (versions.spec if versions else None) == spec


def test_what_spack_cannot_say_is_named() -> None:
    """A condition that no range of Spack's has is left out, and named in the note."""
    versions = with_spack_versions("hdf5!=1.12,>=1.10", PACKAGES.__contains__)
    assert versions is not None
    assert versions.note.endswith("left out: !=1.12")


@pytest.mark.parametrize("part", ["²", "9" * 5_000, "٣", "0a", "a"])
def test_a_bound_that_is_not_a_number_is_left_out(part: str) -> None:
    """A version below a part in which nobody counts has no range, and is no fault."""
    versions = with_spack_versions(f"hdf5>=1.10,<1.{part}", PACKAGES.__contains__)
    assert versions is not None
    assert versions.spec == "hdf5@1.10:"
    assert versions.note.endswith(f"left out: <1.{part}")


NUMBERS = st.tuples(*[st.integers(0, 3)] * 3)
TEXTS = st.lists(st.integers(0, 3), min_size=2, max_size=3).filter(any)


@given(st.sampled_from(["<", ">=", "~="]), TEXTS, NUMBERS)
def test_ranges_have_the_versions_of_pip(
    sign: str, bound: list[int], numbers: tuple[int, ...]
) -> None:
    """A version with three numbers is in the range of Spack if it is in that of pip."""
    limit = ".".join(map(str, bound))
    version = ".".join(map(str, numbers))
    versions = with_spack_versions(f"hdf5{sign}{limit}", PACKAGES.__contains__)

    assert versions is not None

    query = parse_query(versions.spec)
    is_in_spack = query.versions is None or query.versions.contains(version)
    assert is_in_spack == SpecifierSet(f"{sign}{limit}").contains(version)
