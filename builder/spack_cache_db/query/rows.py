"""Everything that reads a published file, and the rows of its answers as JSON and
CSV.
"""

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
        columns, records = self.rows
        table = [[f"<th>{escape(name)}</th>" for name in columns]]
        records = [*records]
        for record in records[:MOST_SHOWN]:
            values = [_cell(name, record.get(name)) for name in columns]
            texts = ["" if value is None else escape(str(value)) for value in values]
            table.append([f"<td>{text}</td>" for text in texts])
        lines = "".join(f"<tr>{''.join(cells)}</tr>" for cells in table)
        more = len(records) - MOST_SHOWN
        return f"<table>{lines}</table>" + (
            f"<p>and {more:,} more</p>" if more > 0 else ""
        )


def grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    """Return the second members of pairs by the first, both in their order."""
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
    if isinstance(value, list | tuple):
        return (" " if name in WORDS else "; ").join(value)
    return int(value) if isinstance(value, bool) else value
