"""metadata.yml, read once for all tests, and its canned queries."""

import sqlite3
from typing import Any

import yaml

from tests.paths import ROOT

# PyYAML's own loader takes ten times as long, in each process of the tests.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
METADATA: dict[str, Any] = yaml.load(
    (ROOT / "metadata.yml").read_text(encoding="utf-8"), Loader=LOADER
)
DATABASE: dict[str, Any] = METADATA["databases"]["spack-cache"]
QUERIES: dict[str, Any] = DATABASE["queries"]
"""The canned queries."""


def run(
    connection: sqlite3.Connection, query: str, **params: str
) -> list[dict[str, Any]]:
    """Return the rows of a canned query; parameters that are not given are empty."""
    declared = dict.fromkeys(QUERIES[query].get("params", ()), "")
    cursor = connection.execute(QUERIES[query]["sql"], declared | params)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
