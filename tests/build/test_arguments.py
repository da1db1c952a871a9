"""build.arguments: what people give to the Python functions is understood, or refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build, check
from spack_cache_db.build.arguments import checked_paths
from spack_cache_db.errors import ArgumentError, BuilderError, InputError
from tests.pagetexts import SAMPLES

WAYS: list[Callable[[Path], Any]] = [
    str,
    Path,
    lambda path: [path],
    lambda path: [str(path)],
    lambda path: (path, str(path)),
    lambda path: (each for each in [path]),
    lambda path: {str(path): 1},
]


@pytest.mark.parametrize("way", WAYS, ids=range(len(WAYS)))
def test_paths_are_one_or_many_texts_or_paths(way: Callable[[Path], Any], tmp_path: Path) -> None:
    """However they are given, they are the same input."""
    report = build(way(SAMPLES), tmp_path / "x.db")
    assert (report.pages, report.specs) == (5, 413)
    assert check(way(SAMPLES)) == ((), ())


def test_the_output_may_be_text(tmp_path: Path) -> None:
    """Or a path."""
    sums = {build(SAMPLES, output).sha256 for output in (f"{tmp_path}/x.db", tmp_path / "y.db")}
    assert len(sums) == 1
    assert {each.name for each in tmp_path.glob("*.db")} == {"x.db", "y.db"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 7}, "paths is 7 (int), expected a path or several, str or Path"),
        ({"paths": None}, "paths is None (NoneType), expected a path or several, str or Path"),
        ({"paths": b"pages"}, "paths is b'pages' (bytes), expected a path or several, str or Path"),
        ({"paths": ["a", 7]}, "a path is 7 (int), expected str or Path"),
        ({"paths": [b"a"]}, "a path is b'a' (bytes), expected str or Path"),
        ({"paths": []}, "paths is empty, expected at least one file or folder of pages"),
        ({"output": None}, "output is None (NoneType), expected str or Path"),
        ({"output": ""}, "output is empty, expected the path of the database to write"),
        ({"jobs": 0}, "jobs is 0 (int), expected a whole number from 1"),
        ({"jobs": "2"}, "jobs is '2' (str), expected a whole number from 1"),
        ({"jobs": True}, "jobs is True (bool), expected a whole number from 1"),
        ({"max_page_size": 1.5}, "max_page_size is 1.5 (float), expected a whole number from 1"),
        ({"progress": "yes"}, "progress is 'yes' (str), expected a function or None"),
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
    assert not [*tmp_path.iterdir()]


def test_a_long_value_is_cut_in_a_message() -> None:
    """A message stays on one line."""
    with pytest.raises(ArgumentError, match=r"^a path is \(0, 1, .*\.\.\. \(tuple\), expected"):
        checked_paths([tuple(range(1000))])


def test_a_path_that_does_not_exist_is_a_fault_of_the_input(tmp_path: Path) -> None:
    """Not of the argument; also if a text was meant as several."""
    with pytest.raises(InputError, match="pages other: no such file or folder"):
        check("pages other")
