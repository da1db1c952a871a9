"""environments.spec_lists: definitions and matrices, as the specs that they stand for."""

from __future__ import annotations

import pytest

from spack_cache_db.environments import Limits, UnreadableEnvironment
from spack_cache_db.environments.manifest import read_manifest


def texts(definitions: str, specs: str, most: int = 1000) -> list[str]:
    """Return the specs that a list stands for; both are written in YAML's short form."""
    text = f"spack:\n  definitions: {definitions}\n  specs: {specs}\n"
    return [each.text for each in read_manifest(text, "spack.yaml", Limits(most)).specs]


@pytest.mark.parametrize(
    ("definitions", "specs", "said"),
    [
        ("[]", "[{matrix: [[x, '+'], [y]]}]", "'\\+' is not a spec"),
        ("[]", "[{matrix: [[x]], exclude: ['@']}]", "'@' is not a spec"),
        ("[]", "[{rows: [[x]]}]", "rows: is an unknown key"),
        ("[]", "['hdf5@1.14': +mpi]", "a mapping of 'hdf5@1.14: \\+mpi': put the spec in quotes"),
        ("[]", "[hdf5@1.12: ]", "a mapping of 'hdf5@1.12:': put the spec in quotes"),
        ("[{a: [x@1: +y]}]", "[$a]", "put the spec in quotes"),
        ("[]", "[{matrix: [[x@1: +y]]}]", "put the spec in quotes"),
        ("[]", "[{matrix: [[x]], exclude: [x@1: +y]}]", "put the spec in quotes"),
        ("[]", f"[{{matrix: [[x]], exclude: [{'x, ' * 201}]}}]", "excludes 201 specs"),
        ("[]", "[{exclude: [x]}]", "this is not a matrix"),
        ("[]", "[&m {matrix: [[*m]]}]", "contains itself"),
        ("[]", "[&g {group: g, specs: [*g]}]", "contains itself"),
        ("[{a: [$b]}, {b: [x]}]", "[]", "not defined above"),
    ],
)
def test_what_is_refused(definitions: str, specs: str, said: str) -> None:
    """What is no list of specs is refused by name."""
    with pytest.raises(UnreadableEnvironment, match=said):
        texts(definitions, specs)


def test_a_row_that_contradicts_itself_is_no_fault() -> None:
    """Rows of a matrix that exclude each other are told of that spec, others are answered."""
    text = "spack: {specs: [{matrix: [[x@1, x@2], ['@1', target=zen3]]}]}"
    found = read_manifest(text, "-", Limits(10)).specs

    assert [each.error is None for each in found] == [True, True, False, True]
    assert found[2].error == "the versions @2 and @1 exclude each other"


ROW = "[" + ", ".join(f"'@{number}'" for number in range(100)) + "]"
