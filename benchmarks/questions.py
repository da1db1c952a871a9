"""`python -m benchmarks.questions FILE`: time the canned queries and the SQL of
docs/sql.md.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click
import yaml

from benchmarks.built import file_argument, opened
from benchmarks.measure import timed
from benchmarks.report import NOTES, table, write_section
from spack_cache_db.site.sql import functions as sql_functions

ROOT = NOTES.parent.parent
ROUNDS = 3
BLOCK = re.compile(r"^```sql\n(.*?)^```", re.DOTALL | re.MULTILINE)
WHOLE = {
    "binaries by stack": "SELECT stack, count(*) FROM spec_stacks GROUP BY stack",
    "binaries by variant": "SELECT name, value, count(*) FROM spec_variants GROUP BY name, value",
    "binaries by compiler": "SELECT compiler, count(*) FROM builds GROUP BY compiler",
    "what may be pruned, by package": (
        "SELECT package, count(*) FROM builds WHERE is_current = 0 GROUP BY package"
    ),
    "changes by kind": "SELECT change, count(*) FROM release_changes GROUP BY change",
    "changes by release and kind": (
        "SELECT release, change, count(*) FROM release_changes GROUP BY release, change"
    ),
    "binaries by release and compiler": (
        "SELECT release, compiler_name, sum(spec_count) FROM release_counts GROUP BY 1, 2"
    ),
    "listings by release": "SELECT release, count(*) FROM build_listings GROUP BY release",
}
"""Questions about all rows of a view."""


@dataclass(frozen=True, slots=True)
class Question:
    """One statement, its name in the table, and its parameters."""

    name: str
    sql: str
    parameters: dict[str, str] = field(default_factory=dict)


@click.command()
@file_argument
@click.option("--write", is_flag=True, help="Put the table into NOTES.md.")
def main(file: Path, *, write: bool) -> None:
    """Time every question on FILE, with all of its rows."""
    rows = []
    for question in questions():
        times = []
        for _ in range(ROUNDS):
            # A new connection has nothing in its cache.
            with closing(opened(file)) as conn:
                sql_functions.register(conn)
                row_count, seconds = timed(partial(_row_count, conn, question))
            times.append(seconds)
        rows.append([question.name, f"{row_count:,}", f"{min(times):.2f} s"])
    text = table(["question", "rows", "processor time"], rows)
    click.echo(text)
    if write:
        write_section(NOTES, "questions table", text)


def questions() -> Iterator[Question]:
    """Yield the canned queries, the statements of docs/sql.md, and those about all rows
    of a view.
    """
    metadata = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))
    queries = metadata["databases"]["spack-cache"]["queries"]
    for name, query in queries.items():
        parameters = dict.fromkeys(query.get("params", ()), "")
        yield Question(f"`{name}`", query["sql"], parameters)

    statements = BLOCK.findall((ROOT / "docs" / "sql.md").read_text(encoding="utf-8"))
    for number, sql in enumerate(statements, start=1):
        yield Question(f"docs/sql.md, statement {number}", sql)

    for name, sql in WHOLE.items():
        yield Question(name, sql)


def _row_count(conn: sqlite3.Connection, question: Question) -> int:
    """Read all rows of an answer, and return their number."""
    return len(conn.execute(question.sql, question.parameters).fetchall())


if __name__ == "__main__":
    main()
