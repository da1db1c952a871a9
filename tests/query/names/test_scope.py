"""query.names.scope: the part of a database in which an answer is sought."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db import ArgumentError, Scope, UnknownNameError, api
from spack_cache_db.query.names.scope import named_conditions
from spack_cache_db.query.open.lookups import opened


def test_a_scope_is_the_conditions_of_its_names(samples_file: Path) -> None:
    """Names become conditions in one order, in any spelling; None is no condition."""
    with opened(samples_file) as lookups:
        scope = Scope(release="Develop", host="ZEN3", os="Ubuntu22.04")
        conditions = scope.conditions(lookups)
        assert [(condition.kind, condition.text) for condition in conditions] == [
            ("os", "os=ubuntu22.04"),
            ("host", "zen3"),
            ("release", "develop"),
        ]
        assert Scope().conditions(lookups) == ()
        (explicit,) = Scope(explicit=True).conditions(lookups)
        assert explicit.kind == "specs"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            {"release": "x", "host": "y"},
            "no release is called 'x'; "
            "releases in this database: develop, develop-2025-04-20",
        ),
        ({"release": "developp"}, "no release is called 'developp'; close: develop"),
        ({"host": "y"}, "archspec knows no target 'y'; expected a name such as zen3"),
        ({"package": "y"}, "y: no package has this name"),
    ],
)
def test_an_unknown_name_is_an_error(
    samples_file: Path, names: dict[str, str], message: str
) -> None:
    """The error is about the first unknown name, and lists names that are close."""
    with opened(samples_file) as lookups, pytest.raises(UnknownNameError) as caught:
        named_conditions(lookups, **names)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", inspect.signature(Scope).parameters)
def test_a_wrong_type_names_the_argument(name: str) -> None:
    """A scope is checked when it is made."""
    values: dict[str, Any] = {name: 7}
    with pytest.raises(ArgumentError, match=rf"^{name} is 7 \(int\), expected"):
        Scope(**values)


def test_each_name_of_a_scope_is_described_once() -> None:
    """The docstring of a function that takes names of a scope refers to `Scope`."""
    names = inspect.signature(Scope).parameters.keys() - {"release", "stack"}
    reading = (
        getattr(api, name)
        for name in api.__all__
        if inspect.isfunction(getattr(api, name))
    )
    taking = [
        function
        for function in reading
        if names & inspect.signature(function).parameters.keys()
    ]

    assert len(taking) == 6
    for function in taking:
        assert function.__doc__ is not None
        assert "`Scope`" in function.__doc__
        assert not any(f"    {name}: " in function.__doc__ for name in names)
