"""Datasette's mark for a hook, with types: its own decorator has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from datasette import hookimpl

Function = TypeVar("Function", bound=Callable[..., object])


def hook(function: Function, *, tryfirst: bool = False) -> Function:
    """Mark a function as a hook; `tryfirst` has it called before those of other plugins."""
    return cast("Function", hookimpl(function, tryfirst=tryfirst))
