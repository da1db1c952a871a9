"""assembly.options: the options of builds stand once, and help shows each of them."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from spack_cache_db import ArgumentError, build, check, verify
from spack_cache_db.assembly.options import (
    BuildKeywords,
    BuildOptions,
    ReadKeywords,
    ReadOptions,
)

RECORDS: list[tuple[Callable[..., Any], type]] = [
    (build, BuildOptions),
    (check, ReadOptions),
    (verify, ReadOptions),
]


@pytest.mark.parametrize(("function", "record"), RECORDS)
def test_help_shows_each_option_with_its_default_and_its_meaning(
    function: Callable[..., Any], record: type
) -> None:
    """In the signature and among the arguments of the docstring, in one order."""
    parameters = inspect.signature(function).parameters
    options = [
        parameter
        for parameter in parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]

    assert [option.name for option in options] == [
        field.name for field in fields(record)
    ]
    for option in options:
        assert option.default == getattr(BuildOptions(), option.name)

    arguments = (function.__doc__ or "").partition("Args:")[2].partition("Raises:")[0]
    described = []
    for line in arguments.splitlines():
        if line.startswith("    ") and line[4:5].strip():
            described.append(line.split(":")[0].strip())

    assert described == list(parameters)


def test_keywords_and_options_have_the_same_names() -> None:
    """What mypy accepts is what the functions accept."""
    assert set(BuildKeywords.__annotations__) == {
        field.name for field in fields(BuildOptions)
    }
    assert set(ReadKeywords.__annotations__) == {
        one.name for one in fields(ReadOptions)
    }


def test_a_misspelt_option_is_named_with_the_near_one() -> None:
    """The message names the public function, and nothing within it."""
    with pytest.raises(ArgumentError) as caught:
        build("pages", "x.db", keep_snapshot=3)  # type: ignore[call-arg]
    message = "build has no argument keep_snapshot, expected keep_snapshots"
    assert str(caught.value) == message
