"""Answers for people and for programs: aligned tables, Markdown, JSON or CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import wrap
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from spack_cache_db.cli.terminal import (
    counted,
    fail,
    is_terminal,
    printable_json,
    printable_values,
    say,
    styled,
    width,
)
from spack_cache_db.query.serialization import csv_text, json_text

MOST_ROWS = 50
"""So many rows are shown on a terminal, unless all are asked for."""

NOTHING = "-"
_GAP = "  "
_INDENT = " " * 4


_FORMS = ("json", "csv", "markdown")


_HEAD = re.compile(r"(?:\S+ )?(\w+)(?=  |:)")
"""The beginning of a line of a table: a status, or what a section is about."""


class Forms(NamedTuple):
    """What writes an answer in each form that its command offers.

    `table` and `markdown` give printable text. `colours` are those of the last words of the
    beginnings of lines, on a terminal.
    """

    table: Callable[[Any], str]
    json: Callable[[Any], str]
    csv: Callable[[Any], str]
    markdown: Callable[[Any], str] | None = None
    colours: Mapping[str, str] = MappingProxyType({})


def form_of(options: Any, *others: str) -> str | None:
    """Return the form that is asked for, None for a table; end the command if there are several.

    Args:
        options: those of the command, `as_json` and the like.
        others: options that no form goes with.
    """
    offered = {name: options[f"as_{name}"] for name in _FORMS if f"as_{name}" in options}
    offered |= {name: options[name] for name in others}
    given = [name for name, is_given in offered.items() if is_given]
    if len(given) > 1:
        *most, last = (f"--{name}" for name in offered)
        fail(f"{', '.join(most)} and {last} exclude each other: give one of them")
    return given[0] if given else None


def print_answer(found: Any, forms: Forms, options: Any) -> None:
    """Print an answer in the form that the options ask for."""
    form = form_of(options)
    if form == "json":
        click.echo(printable_json(forms.json(found)))
    elif form == "csv":
        print_csv(forms.csv, found)
    elif form == "markdown" and forms.markdown:
        click.echo(forms.markdown(found))
    else:
        for line in forms.table(found).split("\n"):
            click.echo(_coloured(line, forms.colours))


def _coloured(line: str, colours: Mapping[str, str]) -> str:
    head = _HEAD.match(line)
    if head is None or head[1] not in colours:
        return line
    return styled(head[0], fg=colours[head[1]]) + line[head.end() :]


def print_rows(names: Sequence[str], rows: Iterable[tuple[Any, ...]], options: Any) -> None:
    """Print rows as the options say (see `options.rows_options`).

    Args:
        names: the columns.
        rows: texts, numbers and None.
        options: `as_json`, `as_csv`, `every`.
    """
    rows = [*rows]
    match form_of(options):
        case "json":
            records = [dict(zip(names, row, strict=True)) for row in rows]
            click.echo(printable_json(json_text(records)))
        case "csv":
            print_csv(partial(csv_text, names), tuple(rows))
        case "markdown":
            _print_markdown(names, rows)
        case _ if rows:
            _print_table(names, rows, options)


def _print_table(names: Sequence[str], rows: list[tuple[Any, ...]], options: Any) -> None:
    most = most_rows(options)
    cells = [[_cell(each) for each in row] for row in rows[:most]]
    for line in aligned([name.replace("_", " ") for name in names], cells, width()):
        click.echo(line)
    if most is not None and len(rows) > most:
        say("")
        say(more_rows(len(rows) - most))


def _print_markdown(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Print rows as a table in Markdown; what would be markup there is text."""
    lines = [[name.replace("_", " ") for name in names], ["---"] * len(names)]
    lines += [[_escaped(_cell(each)) for each in row] for row in rows]
    for line in lines if len(lines) > 2 else ():
        click.echo(f"| {' | '.join(line)} |")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def print_csv(as_csv: Callable[[Any], str], found: Any) -> None:
    """Print an answer as CSV: its very texts to a pipe, printable ones to a terminal."""
    shown = printable_values(found) if is_terminal() else found
    # Click would take escape sequences out of what goes into a pipe: here they are data.
    click.echo(as_csv(shown), nl=False, color=True)


def most_rows(options: Any) -> int | None:
    """Return how many rows a table has at most; None for any number."""
    return MOST_ROWS if is_terminal() and not options["every"] else None


def more_rows(count: int) -> str:
    """Return what stands below a table that leaves out some rows."""
    return f"{counted(count, 'more row')}: --all shows all"


def aligned(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, long: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table; a column in which all rows have nothing is left out.

    Args:
        names: the columns.
        rows: printable texts; `NOTHING` where there is none.
        width: the longest line that is wanted; None for any. What is longer is wrapped.
        long: the columns of long texts, the last ones. As many of them as do not fit beside the
            others stand below each row.
    """
    used = [at for at in range(len(names)) if any(row[at] != NOTHING for row in rows)]
    sizes = {at: max(len(names[at]), *(len(row[at]) for row in rows)) for at in used}
    below: list[int] = []
    while width is not None and sum(sizes.values()) + len(_GAP) * (len(sizes) - 1) > width:
        if names[used[-1 - len(below)]] not in long:
            break
        below.insert(0, used[-1 - len(below)])
        del sizes[below[0]]
    for number, row in enumerate((names, *rows)):
        line = _GAP.join(row[at].ljust(size) for at, size in sizes.items()).rstrip()
        lines = wrapped(line, width)
        yield from lines if number else (styled(each, bold=True) for each in lines)
        for at in below if number else ():
            if row[at] != NOTHING:
                yield from wrapped(f"{_INDENT}{names[at]}: {row[at]}", width, _INDENT)


def wrapped(line: str, width: int | None, indent: str = "") -> list[str]:
    """Return a line, or several of at most `width` characters; what follows is indented more."""
    if width is None or len(line) <= width:
        return [line]
    return wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _cell(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(printable_values(value))
