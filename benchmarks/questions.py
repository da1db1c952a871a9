"""`python -m benchmarks.questions FILE`: time the canned queries and the SQL of
docs/sql.md.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from benchmarks.built import file_argument, opened
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


def questions() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the name, the statement and the parameters of every question."""
    metadata = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))
    for name, query in metadata["databases"]["spack-cache"]["queries"].items():
        yield f"`{name}`", query["sql"], dict.fromkeys(query.get("params", ()), "")
    for number, sql in enumerate(
        BLOCK.findall((ROOT / "docs/sql.md").read_text()), start=1
    ):
        yield f"docs/sql.md, statement {number}", sql, {}
    for name, sql in WHOLE.items():
        yield name, sql, {}


@click.command()
@file_argument
@click.option("--write", is_flag=True, help="Put the table into NOTES.md.")
def main(file: Path, *, write: bool) -> None:
    """Time every question on FILE, with all of its rows."""
    rows = []
    for name, sql, parameters in questions():
        times = []
        for _ in range(ROUNDS):
            conn = opened(file)
            sql_functions.register(conn)
            started = time.process_time()
            count = len(conn.execute(sql, parameters).fetchall())
            times.append(time.process_time() - started)
            conn.close()
        rows.append([name, f"{count:,}", f"{min(times):.2f} s"])
    text = table(["question", "rows", "processor time"], rows)
    click.echo(text)
    if write:
        write_section(NOTES, "questions table", text)


if __name__ == "__main__":
    main()
