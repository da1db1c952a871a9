"""Checks the arguments of the public functions, before anything is read or written.

An argument has one name and one kind in all functions, so one table, `CHECKERS`, has
the kinds by name. Paths and databases are checked where they are opened
(`bounded_files`, `query.open.lookups`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Any, ForwardRef, ParamSpec, TypeVar

from spack_cache_db.errors import ArgumentError

P = ParamSpec("P")
T = TypeVar("T")
Checker = Callable[[str, Any], Any]
"""Returns the value of an argument, given its name and the value that a caller passed.

It raises `ArgumentError` for a value of another kind. An iterable becomes a tuple,
because some can be read only once.
"""


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function, so that it checks its arguments first.

    The decorated function raises `ArgumentError` if an argument is unknown or missing,
    or has a wrong type or value.
    """
    return _checked(function, inspect.signature(function))


def checked_with(
    options: type, keywords: type
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return the decorator `checked` for a function that takes `**options`.

    The options are the fields of a record. `help` shows each as an argument of the
    function: its type, its default and its description.

    Args:
        options: the dataclass of the options. Its docstring has `Attributes:`.
        keywords: the `TypedDict` with the types that callers may pass for them.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = _with_options(inspect.signature(function), options, keywords)
        checked_function = _checked(function, signature)
        checked_function.__doc__ = _with_descriptions(function.__doc__, options)
        return checked_function

    return decorate


def _with_options(
    signature: inspect.Signature, options: type, keywords: type
) -> inspect.Signature:
    """Return a signature with the fields of `options` in place of its `**options`."""
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            parameters.append(parameter)
    for field in fields(options):
        # With `from __future__ import annotations`, annotations are texts, which a
        # TypedDict wraps.
        annotation = keywords.__annotations__[field.name]
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        option = inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=annotation,
        )
        parameters.append(option)
    return signature.replace(parameters=parameters)


def _with_descriptions(docstring: str | None, options: type) -> str | None:
    """Return a docstring with the attributes of `options` in place of `options: …`.

    In the docstrings, both are entries of an indented list (`Args:`, `Attributes:`).
    """
    # `python -OO` has no docstrings.
    if docstring is None:
        return None
    # A record of options may inherit some; those of the base class come first.
    descriptions = ""
    for part in reversed(options.__mro__):
        if is_dataclass(part):
            docstring_of_part = inspect.cleandoc(part.__doc__ or "")
            _, _, attributes = docstring_of_part.partition("Attributes:\n")
            descriptions += f"{attributes}\n"
    # A function as replacement, because backslashes of a text would have a meaning.
    return _OPTIONS_ENTRY.sub(lambda _: descriptions, inspect.cleandoc(docstring))


_OPTIONS_ENTRY = re.compile(r"^    options: .*\n(?:      .*\n)*", re.MULTILINE)
"""The entry of `options` in a docstring: a line, and the lines that continue it."""


def _checked(function: Callable[P, T], signature: inspect.Signature) -> Callable[P, T]:
    """Return a function that checks its arguments against a signature and `CHECKERS`.

    `help` and `inspect` show it with this signature.
    """
    known = list(signature.parameters)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        # Python's own message about an unknown name does not suggest the right one.
        for name in kwargs:
            if name not in known:
                raise ArgumentError(_unknown(function.__name__, name, known))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{function.__name__}: {error}") from None

        # Only arguments that were passed are bound; defaults need no check.
        for name, value in bound.arguments.items():
            if name in CHECKERS:
                bound.arguments[name] = CHECKERS[name](name, value)
        return function(*bound.args, **bound.kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _unknown(function: str, name: str, known: Iterable[str]) -> str:
    """Return the message about an unknown argument, with the closest known name.

    Such as `find has no argument hsot, expected host`.
    """
    close = get_close_matches(name, list(known), n=1)
    expected = close[0] if close else f"one of {', '.join(known)}"
    return f"{function} has no argument {name}, expected {expected}"


def wrong(name: str, value: object, expected: str) -> ArgumentError:
    """Return the error of an argument: its name, its value with the type, and what is
    expected.
    """
    return ArgumentError(
        f"{name} is {value!r:.60} ({type(value).__name__}), expected {expected}"
    )


def text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise wrong(name, value, "a text")
    return value


def optional_text(name: str, value: object) -> str | None:
    """Return a text or None."""
    if value is not None and not isinstance(value, str):
        raise wrong(name, value, "a text or None")
    return value


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return texts as a tuple; a single text is one of them."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, "texts")
    return tuple(text(f"one of {name}", item) for item in value)


def switch(name: str, value: object) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise wrong(name, value, "True or False")
    return value


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least`."""
    # `True` is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(
            f"{name} is {value!r:.60}, expected a whole number from {least}"
        )
    return value


def number(
    name: str, value: object, least: float = 0, *, is_more: bool = False
) -> float:
    """Return a number of at least `least`; with `is_more`, a larger number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # A comparison with NaN is false, so NaN is refused.
        is_enough = value > least if is_more else value >= least
        if is_enough:
            return value
    bound = f"above {least:g}" if is_more else f"from {least:g}"
    raise ArgumentError(f"{name} is {value!r:.60}, expected a number {bound}")


def _count_from(least: int) -> Checker:
    """Return the checker of a whole number of at least `least`."""
    return lambda name, value: whole_number(name, value, least)


def _optional(checker: Checker) -> Checker:
    """Return the checker that also accepts None."""
    return lambda name, value: None if value is None else checker(name, value)


def _day_or_days(name: str, value: object) -> Any:
    """Return a day as text, or a number of days."""
    return value if isinstance(value, str) else whole_number(name, value, 0)


def _snapshot(name: str, value: object) -> Any:
    """Return a day as text or `date`."""
    # `datetime` is not imported for this; its dates have this method.
    if not isinstance(value, str) and not hasattr(value, "isoformat"):
        raise wrong(name, value, "a day such as 2026-11-25")
    return value


def _environment(name: str, value: object) -> Any:
    """Return the path of an environment, or specs as a tuple."""
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return value
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, "a path, str or Path, or specs")
    return texts(name, value)


def _paths(name: str, value: object) -> Any:
    """Return paths as a tuple; a single path is one of them."""
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return (value,)
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, "paths, each str or Path")
    return tuple(value)


def _pairs(name: str, value: object) -> Any:
    """Return pairs of a release and a path as a tuple."""
    expected = "pairs of a release and a path"
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, expected)
    pairs = tuple(value)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise wrong(f"one of {name}", pair, expected)
        text(f"a release of {name}", pair[0])
    return pairs


def _modules(name: str, value: object) -> Any:
    """Return paths, or pairs of a release and a path, as a tuple."""
    modules = _paths(name, value)
    pairs = [module for module in modules if isinstance(module, tuple)]
    _pairs(name, pairs)
    return modules


def _addresses(name: str, value: object) -> Any:
    """Return a mapping of texts to texts."""
    if not isinstance(value, Mapping):
        raise wrong(name, value, "a mapping of namespaces to addresses")
    for key, address in value.items():
        text(f"a namespace of {name}", key)
        text(f"an address of {name}", address)
    return value


def _callable(name: str, value: object) -> Any:
    """Return a function."""
    if not callable(value):
        raise wrong(name, value, "a function or None")
    return value


def _executor(name: str, value: object) -> Any:
    """Return an executor: an object with a method `submit`, as Dask's client has it."""
    if not callable(getattr(value, "submit", None)):
        raise wrong(name, value, "a concurrent.futures.Executor or None")
    return value


_NAMES_OF_CHECKERS: tuple[tuple[Checker, str], ...] = (
    (text, "format license name new old query spec"),
    (optional_text, "first host maintainer os package platform release"),
    (optional_text, "spack stack tag target"),
    (texts, "drop keep_stacks urls"),
    (switch, "explicit force keep_going stable with_hashes without_paths"),
    (_count_from(1), "jobs max_page_size"),
    (_optional(_count_from(1)), "keep_snapshots newest"),
    (_optional(_count_from(0)), "limit"),
    (_optional(_day_or_days), "newer_than"),
    (_optional(_snapshot), "snapshot"),
    (_environment, "environment"),
    (_paths, "environments"),
    (_pairs, "installations"),
    (_modules, "modules"),
    (_optional(_addresses), "recipes"),
    (_optional(_callable), "progress"),
    (_optional(_executor), "executor"),
)
"""The arguments that each checker checks, separated by blanks."""


def _by_argument() -> dict[str, Checker]:
    checkers = {}
    for checker, names in _NAMES_OF_CHECKERS:
        for name in names.split():
            checkers[name] = checker
    return checkers


CHECKERS: Mapping[str, Checker] = _by_argument()
"""The checker of each argument, by its name."""
