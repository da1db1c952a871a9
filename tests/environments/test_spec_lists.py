"""environments.spec_lists: definitions and matrices, as the specs that they stand for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments import Limits, UnreadableEnvironment
from spack_cache_db.environments.manifest import read_manifest


def texts(definitions: str, specs: str, most: int = 1000) -> list[str]:
    """Return the specs that a list stands for; both are written in YAML's short form."""
    text = f"spack:\n  definitions: {definitions}\n  specs: {specs}\n"
    return [each.text for each in read_manifest(text, "spack.yaml", Limits(most)).specs]


@pytest.mark.parametrize(
    ("definitions", "specs", "expected"),
    [
        ("[a: [x, y]]", "[$a, z]", ["x", "y", "z"]),
        ("[a: [x], a: [y]]", "[$a]", ["x", "y"]),
        ("[{a: [x]}, {a: [y]}]", "[$a]", ["x", "y"]),
        ("[{a: [x]}, {b: [$a, y]}]", "[$b]", ["x", "y"]),
        ("[{c: [gcc@12, gcc@13]}]", "[{matrix: [[x], [$%c]]}]", ["x %gcc@12", "x %gcc@13"]),
        ("[]", "[{matrix: [[x, y], [+a, ~a]]}]", ["x +a", "x ~a", "y +a", "y ~a"]),
        ("[]", "[{matrix: [['%gcc@13'], [x], [target=zen3]]}]", ["x target=zen3 %gcc@13"]),
        ("[]", "[{matrix: [[x, y], [+a, ~a]], exclude: ['x ~a', y+a]}]", ["x +a", "y ~a"]),
        ("[]", "[{matrix: [[x], [{matrix: [[+a], [+b, ~b]]}]]}]", ["x +a +b", "x +a ~b"]),
        ("[{m: [{matrix: [[+a], [+b, ~b]]}]}]", "[{matrix: [[x], [$m]]}]", ["x +a +b", "x +a ~b"]),
        ("[{m: [{matrix: [[gcc], ['@1', '@2']]}]}]", "[$%m]", ["@1 %gcc", "@2 %gcc"]),
        ("[{m: [{matrix: [[b], ['@1']]}]}]", "[{matrix: [[x], [$^m]]}]", ["x ^b@1"]),
        ("[{a: [x]}, {b: [$a, y]}, {a: [z]}]", "[$b]", ["x", "z", "y"]),
        ("[]", "[{matrix: [[kokkos], [^cuda], ['%gcc@12']]}]", ["kokkos %gcc@12 ^cuda"]),
        (
            "[]",
            "[{matrix: [[x], ['%gcc', '%clang']], exclude: ['%c,cxx=gcc']}]",
            ["x %gcc", "x %llvm"],
        ),
        ("[]", "[{matrix: [[x], ['%c,cxx=gcc', '%clang']], exclude: ['%gcc']}]", ["x %llvm"]),
        ("[]", "[{matrix: [[x], []]}]", []),
        ("[]", "[{group: g, specs: [x]}, {group: h, matrix: [[y]]}]", ["x", "y"]),
    ],
)
def test_what_a_list_stands_for(definitions: str, specs: str, expected: list[str]) -> None:
    """References, signs, matrices in matrices and exclusions mean what they mean in Spack."""
    assert texts(definitions, specs) == expected


@pytest.mark.parametrize(
    ("definitions", "specs", "said"),
    [
        ("[]", "[{matrix: [[x, '+'], [y]]}]", "'\\+' is no spec"),
        ("[]", "[{matrix: [[x]], exclude: ['@']}]", "'@' is no spec"),
        ("[]", "[{rows: [[x]]}]", "rows: is not known"),
        ("[]", "['hdf5@1.14': +mpi]", "a mapping of 'hdf5@1.14: \\+mpi': put the spec in quotes"),
        ("[]", "[hdf5@1.12: ]", "a mapping of 'hdf5@1.12:': put the spec in quotes"),
        ("[{a: [x@1: +y]}]", "[$a]", "put the spec in quotes"),
        ("[]", "[{matrix: [[x@1: +y]]}]", "put the spec in quotes"),
        ("[]", "[{matrix: [[x]], exclude: [x@1: +y]}]", "put the spec in quotes"),
        ("[]", f"[{{matrix: [[x]], exclude: [{'x, ' * 201}]}}]", "excludes 201 specs"),
        ("[]", "[{exclude: [x]}]", "this is not a matrix"),
        ("[]", "[&m {matrix: [[*m]]}]", "stands within itself"),
        ("[]", "[&g {group: g, specs: [*g]}]", "stands within itself"),
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
BILLION = f"[{{matrix: [[x], {', '.join([ROW] * 5)}]}}]"
LAUGHS = "[{a0: [x, x]}, " + ", ".join(f"{{a{n}: [$a{n - 1}, $a{n - 1}]}}" for n in range(1, 40))


@pytest.mark.parametrize(
    ("definitions", "specs", "said"),
    [
        ("[]", BILLION, "this matrix stands for 10,000,000,000 specs, expected at most 1,000"),
        (LAUGHS + "]", "[$a39]", "stands for 1,024 specs, expected at most 1,000"),
    ],
    ids=["matrix", "definitions"],
)
def test_nothing_grows_without_end(definitions: str, specs: str, said: str) -> None:
    """Specs of a matrix are counted before they are made."""
    with pytest.raises(UnreadableEnvironment, match=said):
        texts(definitions, specs)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_matrix_is_a_product(lengths: list[int]) -> None:
    """A matrix stands for every way to take one of each row, in the order of the rows."""
    rows = [[f"v{row}=x{item}" for item in range(size)] for row, size in enumerate(lengths)]
    written = ", ".join("[" + ", ".join(row) + "]" for row in [["pkg"], *rows])

    expected = [" ".join(("pkg", *each)) for each in itertools.product(*rows)]
    assert texts("[]", f"[{{matrix: [{written}]}}]") == expected
