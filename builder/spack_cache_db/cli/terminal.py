"""What a terminal is given: pages are data, and a terminal obeys control characters."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import fields, is_dataclass, replace
from typing import Any

import click

from spack_cache_db.errors import printable


def is_terminal() -> bool:
    """Return whether standard output is a terminal; it may be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int | None:
    """Return the width of the terminal; what goes into a pipe or a file is not shortened."""
    if not is_terminal() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def say(line: str, *, err: bool = False) -> None:
    """Print one line, its control characters as Python writes them."""
    click.echo(printable(line), err=err)


def printable_json(text: str) -> str:
    """Return JSON that says the same, without control characters.

    JSON itself leaves some of them as they are in a text (RFC 8259, 7).
    """
    return "\n".join(
        "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)
        for line in text.split("\n")
    )


def printable_values(value: Any) -> Any:
    """Return a record, or a tuple, with every text in it as `printable` gives it."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        parts = map(printable_values, value)
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        texts = {each.name: printable_values(getattr(value, each.name)) for each in fields(value)}
        return replace(value, **texts)
    return value
