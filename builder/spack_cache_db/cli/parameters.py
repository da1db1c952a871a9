"""Kinds of values on the command line, and short forms of `click.option`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
"""What a decorator of Click takes and returns: a function, or a command."""

_SIZE = re.compile(r"(0*[1-9]\d*)([KMG]?)")
"""A number above 0, and a unit."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
"""The bytes of each unit."""


class ByteSize(click.ParamType[int]):
    """Bytes, such as `500000` or `64M`; K, M and G are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        size = _SIZE.fullmatch(str(value).upper())
        if size is None:
            expected = "bytes such as 500000, 64M or 1G"
            self.fail(f"{value!r} is not a size, expected {expected}", param, ctx)
        return int(size[1]) * _UNITS[size[2]]


class GivenPath(click.Path):
    """A path that is not empty.

    An empty path usually comes from a variable of a script that is not set.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path."""
        if value == "":
            self.fail("it is empty, expected a path", param, ctx)
        return super().convert(value, param, ctx)


def flag(name: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option without a value, with this help."""
    return click.option(name, is_flag=True, help=text, **more)


def value_option(name: str, metavar: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option with a value, with this help.

    Args:
        name: the option, such as `--stack`.
        metavar: the value in the help, such as `NAME`.
        text: the help.
        more: arguments of `click.option`.
    """
    return click.option(name, metavar=metavar, help=text, **more)
