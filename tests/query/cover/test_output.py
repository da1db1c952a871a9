"""query.cover.output: a cover as text, whatever its kind."""

from __future__ import annotations

import csv
import io
import json
import sqlite3

import pytest

from spack_cache_db.query.cover.output import as_csv, as_json, as_markdown, as_table
from spack_cache_db.query.cover.records import Cover
from tests.query.cover.test_lock import conn, covered

__all__ = ["conn"]


def test_a_lockfile_as_text(conn: sqlite3.Connection) -> None:
    """The share that has a binary is told, what a rebuild would replace, and by what."""
    lines = as_table(covered(conn)).splitlines()

    assert lines[0] == (
        "1 of 3 specs have a binary (33%); of 1 there are others of the same configuration"
    )
    assert [line.split()[0] for line in lines[2:]] == ["missing", "rebuilt", "binary"]
    assert " would be replaced by /" in lines[3]
    assert lines[4].endswith("(root)")


def test_a_lockfile_as_data(conn: sqlite3.Connection) -> None:
    """JSON and CSV have the same fields, each node with its hash and status."""
    found = covered(conn)
    said = json.loads(as_json(found))
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))

    assert {key: said[key] for key in ("binary", "total", "rebuilt", "missing")} == {
        **{"binary": 1, "total": 3, "rebuilt": 1, "missing": 1}
    }
    assert [each["hash"] for each in said["specs"]] == [row["hash"] for row in rows]
    assert [row["status"] for row in rows] == ["binary", "missing", "rebuilt"]
    assert [row["root"] for row in rows] == ["1", "0", "0"]


@pytest.mark.parametrize("form", [as_table, as_json, as_csv, as_markdown])
def test_nothing_is_printed_as_well(form: object) -> None:
    """An environment that asks for nothing has a form, too."""
    assert callable(form)
    assert form(Cover((), is_lock=False))


def test_a_table_fits_the_terminal(conn: sqlite3.Connection) -> None:
    """Lines are cut where the terminal is narrow."""
    assert max(map(len, as_table(covered(conn), 40).splitlines()[2:])) == 40
