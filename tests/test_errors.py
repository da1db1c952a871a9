"""errors: one base class, and messages that say where, on one line."""

from __future__ import annotations

import pytest

from spack_cache_db.errors import Fault, reason


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
