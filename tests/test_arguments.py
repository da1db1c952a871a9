"""arguments: each public function refuses wrong arguments in words of its own
signature.
"""

import inspect
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spack_cache_db
from spack_cache_db import ArgumentError, FetchLimits, FetchOptions, api
from spack_cache_db.arguments import CHECKERS
from tests.commands import run
from tests.pagetexts import SAMPLES

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(api, name)
    for name in api.__all__
    if inspect.isfunction(getattr(api, name))
}
ELSEWHERE = {
    "db",
    "file",
    "output",
    "paths",
    "baseline",
    "options",
    "limits",
    "connection",
}
"""Arguments that are checked where they are opened."""


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments of a function, with those of its options."""
    return list(inspect.signature(function).parameters)


def needed(
    function: Callable[..., Any], samples_file: Path, folder: Path
) -> dict[str, Any]:
    """Return right values for the arguments that a function needs."""
    values = {
        "db": samples_file,
        "file": samples_file,
        "paths": SAMPLES,
        "output": folder / "x.db",
        "environment": ["hdf5"],
        "old": "develop",
        "new": "develop",
        "urls": [],
    }
    parameters = inspect.signature(function).parameters.values()
    names = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
    ]
    found = {name: values.get(name, "hdf5") for name in names if name != "options"}
    # Without a rule, nothing is kept.
    return found | ({"newest": 1} if "newest" in parameters_of(function) else {})


class Wrong:
    """A value that no argument accepts."""


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_wrong_type_of_each_argument_is_named(
    function: Callable[..., Any], samples_file: Path, tmp_path: Path
) -> None:
    """The message has the name of the argument; nothing is written."""
    right = needed(function, samples_file, tmp_path)

    for name in parameters_of(function):
        for value in (Wrong(), b"x", 1.5, [7], {7: 7}):
            if name in ("modules", "environments") and not isinstance(
                value, Wrong | bytes | float
            ):
                continue
            with pytest.raises(
                ArgumentError, match=rf"\b(?:{name}|a path|db)\b"
            ) as caught:
                list(function(**right | {name: value}) or ())
            assert "spack_cache_db." not in str(caught.value).replace(
                "test_arguments", ""
            )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_an_unknown_argument_is_refused_with_the_nearest(
    function: Callable[..., Any], samples_file: Path, tmp_path: Path
) -> None:
    """A misspelt name, a missing argument and too many are errors of the public
    function.
    """
    right = needed(function, samples_file, tmp_path)

    for name in parameters_of(function):
        message = f"{function.__name__} has no argument {name}_, expected {name}"
        with pytest.raises(ArgumentError) as caught:
            function(**right, **{f"{name}_": 1})
        assert str(caught.value) == message
    with pytest.raises(
        ArgumentError, match=f"{function.__name__}: missing a required argument"
    ):
        function()
    with pytest.raises(
        ArgumentError, match=f"{function.__name__}: too many positional"
    ):
        function(*range(30))


def test_every_argument_has_a_checker() -> None:
    """A new argument of a public function needs a line in the table."""
    names = {
        name for function in FUNCTIONS.values() for name in parameters_of(function)
    }
    assert names - ELSEWHERE == CHECKERS.keys()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: spack_cache_db.check("p", keep_snapshot=3),  # type: ignore[call-arg]
            "check has no argument keep_snapshot, expected keep_snapshots",
        ),
        (
            lambda: spack_cache_db.build("p", "x.db", jobs=0),
            "jobs is 0, expected a whole",
        ),
        (
            lambda: spack_cache_db.build("p", "x.db", jobs=True),
            "jobs is True, expected a whole",
        ),
        (lambda: FetchLimits(jobs=0), "jobs is 0, expected a whole number from 1"),
        (
            lambda: FetchLimits(max_total=-1),
            "max_total is -1, expected a whole number from 1",
        ),
        (lambda: FetchLimits(timeout=0), "timeout is 0, expected a number above 0"),
        (
            lambda: FetchLimits(deadline=float("nan")),
            "deadline is nan, expected a number above 0",
        ),
        (
            lambda: FetchLimits(retries=-1),
            "retries is -1, expected a whole number from 0",
        ),
        (
            lambda: FetchOptions(sizes="yes"),  # type: ignore[arg-type]
            "sizes is 'yes' (str), expected True or False",
        ),
        (
            lambda: FetchOptions(maps=(("a",),)),  # type: ignore[arg-type]
            "one of maps is ('a',) (tuple), expected a pair",
        ),
        (
            lambda: spack_cache_db.fetch([], "x", {}),  # type: ignore[arg-type]
            "options is {} (dict), expected FetchOptions",
        ),
        (lambda: spack_cache_db.fetch(7, "x"), "urls is 7 (int), expected texts"),  # type: ignore[arg-type]
    ],
)
def test_values_without_a_meaning_are_refused(
    call: Callable[[], object], message: str
) -> None:
    """A limit that lets nothing through is not a run that has nothing to do."""
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_methods_of_a_cache_are_checked(samples_file: Path) -> None:
    """`Cache` has the same functions."""
    with (
        spack_cache_db.Cache(samples_file) as cache,
        pytest.raises(
            ArgumentError, match="find has no argument limits, expected limit"
        ),
    ):
        cache.find("hdf5", limits=3)  # type: ignore[call-arg]


def test_every_result_is_what_the_command_prints(samples_file: Path) -> None:
    """`as_dict` of each result can be written as JSON, and is that of the command."""
    spec = "py-mpi4py"
    found = spack_cache_db.find(samples_file, spec, with_hashes=True)
    history = spack_cache_db.history(samples_file, spec)
    info = spack_cache_db.info(samples_file)

    for words, result in (
        (("find", spec), found),
        (("history", spec), history),
        (("info",), info),
    ):
        printed = json.loads(run(*words, samples_file, "--json").stdout)
        assert json.loads(json.dumps(result.as_dict())) == printed
    assert found[0].specs is not None
    assert (
        json.loads(json.dumps(found[0].specs[0].as_dict()))["hash"]
        == found[0].specs[0].hash
    )


def test_a_baseline_has_a_name(samples_file: Path) -> None:
    """The sentence names the file of a connection, and a database in memory in
    words.
    """
    in_memory = sqlite3.connect(":memory:")
    with sqlite3.connect(samples_file) as conn:
        conn.backup(in_memory)
        answer = spack_cache_db.cover(samples_file, ["hdf5"], baseline=conn)

    assert answer.baseline == str(samples_file)

    answer = spack_cache_db.cover(samples_file, ["hdf5"], baseline=in_memory)
    assert answer.sentence.endswith("lost since a database in memory")
    with spack_cache_db.Cache(samples_file) as cache:
        assert spack_cache_db.cover(cache, ["hdf5"], baseline=cache).baseline == str(
            samples_file
        )
