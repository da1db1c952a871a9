"""spack.matching: what each constraint means, one by one."""

import pytest

from spack_cache_db.spack.matching import compiler_matches, variant_matches
from spack_cache_db.spack.normal_forms import parse_variant
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import CompilerConstraint
from spack_cache_db.spack.versions import VersionRanges

LONG = "3fbfe46" + "0" * 57


@pytest.mark.parametrize(
    ("name", "versions", "compiler", "is_so"),
    [
        ("gcc", "13", "gcc@=13.2.0", True),
        ("gcc", "=13", "gcc@13.2.0", False),
        ("gcc", "13", "gcc", False),
        ("clang", "15", "llvm@15.0.7", True),
        ("oneapi", None, "intel-oneapi-compilers@2024.2.1", True),
        (None, "13", "gcc@13.2.0", True),
        (None, "13", "none", False),
    ],
)
def test_a_compiler(
    name: str | None, versions: str | None, compiler: str, is_so: bool
) -> None:
    """Name and version as printed in any era, old names for new ones; no name is any
    compiler.
    """
    ranges = None if versions is None else VersionRanges.parse(versions)
    assert compiler_matches(CompilerConstraint(name, ranges), compiler) is is_so


@pytest.mark.parametrize(
    ("asked", "printed", "is_so"),
    [
        ("+x", "x=True", True),
        ("x=True", "x:=True", False),
        ("k=b,a", "k:=a,b", True),
        ("k=a", "k='*'", False),
        ("commit=a", "commit=a,b", False),
        ("patches=3fb", "patches=3fbfe46,f7d58d3", True),
        ("patches=3fbfe47", "patches=3fbfe46", False),
        (f"patches={LONG}", "patches=3fbfe46", True),
        (f"patches={LONG[:-1]}1", f"patches={LONG}", False),
        (f"patches:={LONG}", f"patches={LONG}", True),
        (f"patches:={LONG}", f"patches={LONG},{'a' * 64}", False),
    ],
)
def test_a_variant(asked: str, printed: str, is_so: bool) -> None:
    """At least these values, with a colon these alone; patches by what is printed of
    them.
    """
    (constraint,) = parse_query(asked).variants
    assert variant_matches(constraint, parse_variant(printed)) is is_so
