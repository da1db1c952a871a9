"""The rows of an answer, as a table of a notebook, as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, TypeVar

WORDS = ("variants", "releases", "stacks", "modules")
"""Columns whose lists are separated by blanks in CSV; texts in other lists may contain
blanks.
"""

MOST_SHOWN = 50
"""Number of rows that a notebook shows."""


T = TypeVar("T")


class Rows(NamedTuple):
    """The rows of an answer: records of plain values, and their keys, which become
    columns.
    """

    columns: Sequence[str]
    records: Iterable[Mapping[str, Any]]


class NotebookTable:
    """A result that notebooks show as a table of its `rows` (IPython docs: "Rich
    display").
    """

    __slots__ = ()

    @property
    def rows(self) -> Rows:
        """The rows that the command prints with `--csv`; each result has its own."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        columns, every_record = self.rows
        records = list(every_record)
        headings = [f"<th>{escape(name)}</th>" for name in columns]
        lines = [_table_row(headings)]
        for record in records[:MOST_SHOWN]:
            cells = []
            for name in columns:
                value = _cell(name, record.get(name))
                text = "" if value is None else escape(str(value))
                cells.append(f"<td>{text}</td>")
            lines.append(_table_row(cells))
        html = f"<table>{''.join(lines)}</table>"
        more = len(records) - MOST_SHOWN
        if more > 0:
            html += f"<p>and {more:,} more</p>"
        return html


def _table_row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    """Return the second members of pairs by the first, both in their order.

    >>> grouped([("mpi", "openmpi"), ("blas", "openblas"), ("mpi", "mpich")])
    {'mpi': ('openmpi', 'mpich'), 'blas': ('openblas',)}
    """
    groups: dict[str, list[T]] = {}
    for name, member in pairs:
        groups.setdefault(name, []).append(member)
    return {name: tuple(members) for name, members in groups.items()}


def json_text(value: Any) -> str:
    """Return plain values as JSON for people and programs."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)


def csv_text(rows: Rows) -> str:
    """Return rows as CSV; None and missing values are empty cells, a list is one
    cell.
    """
    # Imported when needed: most commands and all shell completions print no CSV.
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows.columns)
    for record in rows.records:
        writer.writerow([_cell(name, record.get(name)) for name in rows.columns])
    return text.getvalue()


def _cell(name: str, value: Any) -> Any:
    """Return a value as one cell: lists as text, truth values as 1 and 0."""
    if isinstance(value, list | tuple):
        separator = " " if name in WORDS else "; "
        return separator.join(value)
    if isinstance(value, bool):
        return int(value)
    return value
