"""errors: one base class, and messages that say where, on one line."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db import errors
from spack_cache_db.errors import ArgumentError, BuilderError, Fault, InputError, reason


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("a.md", 3, "is bad"), "a.md:3: is bad"),
        (Fault("a.md", 0, "is bad"), "a.md: is bad"),
        (Fault("a\nb.md", 1, "is \x1b[31mred"), "a\\nb.md:1: is \\x1b[31mred"),
        (Fault("ä.md", 0, "ist schlecht"), "ä.md: ist schlecht"),
    ],
)
def test_a_fault_is_one_line(fault: Fault, text: str) -> None:
    """Place, line if there is one, message; control characters are spelled out."""
    assert str(fault) == text


@given(st.text(), st.text())
def test_a_fault_is_one_line_whatever_is_in_it(path: str, message: str) -> None:
    """Names come from outside."""
    assert str(Fault(path, 1, message)).isprintable()


@pytest.mark.slow
@given(st.lists(st.builds(Fault, st.sampled_from("ab"), st.integers(0, 12), st.sampled_from("xy"))))
def test_an_input_error_has_each_fault_once_in_order(faults: list[Fault]) -> None:
    """By path, then line as a number, then message."""
    error = InputError(iter(faults))
    assert error.faults == tuple(sorted(set(faults)))
    assert str(error).splitlines() == [*map(str, error.faults)]


def test_a_fault_reaches_another_process() -> None:
    """Workers send them to their parent."""
    fault = Fault("a", 1, "x")
    assert pickle.loads(pickle.dumps(fault)) == fault


def test_every_error_is_one_of_ours() -> None:
    """So that a caller can catch all that a user can mend."""
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in found if issubclass(each, Exception)]
    assert len(ours) > 3
    assert all(issubclass(each, BuilderError) for each in ours)
    assert issubclass(ArgumentError, TypeError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b"), "No such file or directory"),
        (ValueError("two\nlines  and blanks"), "two lines and blanks"),
        (EOFError(), "EOFError"),
    ],
)
def test_a_reason_is_one_line_without_the_path(error: Exception, text: str) -> None:
    """The path stands before it already."""
    assert reason(error) == text
