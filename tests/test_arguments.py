"""arguments: what people give to the Python functions is understood, or refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build, check
from spack_cache_db.build.verification import verify
from spack_cache_db.errors import ArgumentError, BuilderError, Fault, reason
from spack_cache_db.query.answers import find
from spack_cache_db.query.coverage import cover
from tests.pagetexts import SAMPLES


class Way:
    """A path of a class of its own, as `os.PathLike` allows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


WAYS: list[Callable[[Path], Any]] = [
    str,
    Path,
    Way,
    lambda path: (path, str(path)),
    lambda path: (each for each in [path]),
]


A_NAME = "a name: printable characters, no blank at either end, none of = + - @ first"


@pytest.mark.parametrize("way", WAYS, ids=range(len(WAYS)))
def test_paths_are_one_or_many_texts_or_paths(way: Callable[[Path], Any], tmp_path: Path) -> None:
    """However they are given, they are the same input."""
    report = build(way(SAMPLES), tmp_path / "x.db")
    assert (report.pages, report.specs) == (5, 413)
    assert check(way(SAMPLES)) == ((), ())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 7}, "paths is 7 (int), expected a path or several, str or Path"),
        ({"paths": b"pages"}, "paths is b'pages' (bytes), expected a path or several, str or Path"),
        ({"paths": [b"a"]}, "a path is b'a' (bytes), expected str or Path"),
        ({"paths": []}, "paths is empty, expected at least one file or folder"),
        ({"output": None}, "output is None (NoneType), expected str or Path"),
        ({"output": ""}, "output is empty, expected the path of the database to write"),
        ({"release": ""}, f"release is '', expected {A_NAME}"),
        ({"stack": "a\nb"}, f"stack is 'a\\nb', expected {A_NAME}"),
    ],
)
def test_anything_else_is_refused_in_words(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """By an error of ours, before anything is read or written; it is a `TypeError` as well."""
    given = {"paths": SAMPLES, "output": tmp_path / "x.db"} | arguments
    with pytest.raises(ArgumentError) as caught:
        build(**given)
    assert str(caught.value) == message
    assert isinstance(caught.value, BuilderError)
    assert isinstance(caught.value, TypeError)
    if "output" not in arguments:
        given.pop("output")
        with pytest.raises(ArgumentError):
            check(**given)
        with pytest.raises(ArgumentError):
            verify(tmp_path / "x.db", **given)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"db": None}, "db is None (NoneType), expected str or Path"),
        ({"db": b"x.db"}, "db is b'x.db' (bytes), expected str or Path"),
        ({"db": ""}, "db is empty, expected the path of a file made by build"),
        ({"limit": -1}, "limit is -1, expected a whole number from 0"),
        ({"limit": "3"}, "limit is '3', expected a whole number from 0"),
    ],
)
def test_questions_are_refused_in_words_as_well(
    arguments: dict[str, Any], message: str, samples_file: Path
) -> None:
    """A database that is no path, and a limit that is no number."""
    with pytest.raises(ArgumentError) as caught:
        given: dict[str, Any] = {"db": samples_file, "query": "zlib"}
        find(**given | arguments)
    assert str(caught.value) == message
    with pytest.raises(ArgumentError, match="environment is empty, expected the path of an env"):
        cover(samples_file, "")


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
