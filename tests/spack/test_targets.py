"""spack.targets: families, what runs where, and target constraints."""

import archspec.cpu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.spack.targets import (
    family,
    is_known,
    runs_on,
    target_matches,
    unknown_bounds,
)

NAMES = st.sampled_from([*sorted(archspec.cpu.TARGETS), "toaster"])


@pytest.mark.parametrize(
    ("constraint", "target", "expected"),
    [
        (None, "zen3", True),
        ("zen3", "zen3", True),
        ("zen3", "zen4", False),
        ("zen2:", "zen3", True),
        ("zen2:", "zen", False),
        (":zen3", "x86_64_v3", True),
        (":zen3", "haswell", False),
        ("x86_64_v2:zen3", "zen2", True),
        ("x86_64_v2:zen3", "zen4", False),
        ("x86_64:", "m2", False),
        (":", "toaster", True),
        ("haswell,zen3:", "zen4", True),
        ("haswell,zen3:", "broadwell", False),
        ("x86_64", "zen3", False),
    ],
)
def test_constraints(constraint: str | None, target: str, expected: bool) -> None:
    """Names are equal or not, ranges follow the partial order, and a list is a union."""
    assert target_matches(constraint, target) is expected


def test_unknown_bounds_are_named() -> None:
    """Only names that bound a range must be known to archspec."""
    assert unknown_bounds("toaster,zen2:zen3") == ()
    assert unknown_bounds("zen2:toaster,:") == ("toaster",)


@given(NAMES, NAMES, NAMES)
def test_partial_order(a: str, b: str, c: str) -> None:
    """What runs on what is reflexive, antisymmetric, transitive, and archspec's own order."""
    assert runs_on(a, a)
    assert not (runs_on(a, b) and runs_on(b, a)) or a == b
    assert not (runs_on(a, b) and runs_on(b, c)) or runs_on(a, c)
    if is_known(a) and is_known(b):
        assert runs_on(a, b) == (archspec.cpu.TARGETS[a] <= archspec.cpu.TARGETS[b])
        assert not runs_on(a, b) or family(a) == family(b)
