"""What one would do instead of using this project: `python -m benchmarks.instead WAY`.

Each way answers one question in a program of a few lines, with the tool that fits it
best. It prints the number of its answers.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb

COMPILERS_OF_PAGES = """
SELECT split_part(filename, '/', -3) AS release, listing.compiler, count(*)
FROM (
  SELECT filename, unnest(from_json(
    regexp_extract(content, 'spec_details: ([^\\n]*)\\n', 1),
    '[{"compiler": "VARCHAR"}]')) AS listing
  FROM read_text(?)
)
GROUP BY ALL
"""
COMPILERS_OF_TABLES = """
SELECT release, compiler, sum(spec_count)
FROM release_counts
GROUP BY release, compiler
"""


def duckdb_pages(folder: str) -> int:
    """Count the binaries by release and compiler, from the pages."""
    pattern = f"{folder}/_cache/*/*/specs.md"
    return len(duckdb.execute(COMPILERS_OF_PAGES, [pattern]).fetchall())


def duckdb_parquet(folder: str) -> int:
    """Count the binaries by release and compiler, from exported tables."""
    table = f"read_parquet('{folder}/release_counts.parquet')"
    statement = COMPILERS_OF_TABLES.replace("release_counts", table)
    return len(duckdb.execute(statement).fetchall())


def sqlite_view(file: str) -> int:
    """Count the binaries by release and compiler, from a database of this project."""
    conn = sqlite3.connect(f"{Path(file).resolve().as_uri()}?mode=ro", uri=True)
    try:
        return len(conn.execute(COMPILERS_OF_TABLES).fetchall())
    finally:
        conn.close()


def json_index(path: str, package: str, target: str) -> int:
    """Count the binaries of a package for a target in an index, as Python reads it."""
    with Path(path).open(encoding="utf-8") as file:
        index = json.load(file)
    count = 0
    for record in index["database"]["installs"].values():
        spec = record["spec"]
        # A target is a name, or an object with a name.
        found = spec["arch"]["target"]
        if isinstance(found, dict):
            found = found["name"]
        if spec["name"] == package and found == target:
            count += 1
    return count


WAYS: dict[str, Callable[..., int]] = {
    "duckdb_pages": duckdb_pages,
    "duckdb_parquet": duckdb_parquet,
    "sqlite_view": sqlite_view,
    "json_index": json_index,
}

if __name__ == "__main__":
    _, way, *arguments = sys.argv
    print(WAYS[way](*arguments))
