"""SQLite 3.26, which RHEL 8 has, is enough; `make test-sqlite` runs other tests with
it.
"""

import re
import sqlite3
from pathlib import Path

import pytest

from spack_cache_db import sqlite_connection
from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import DatabaseError
from tests.commands import run
from tests.pagetexts import page, write
from tests.paths import ROOT

NEWER = {
    r"->>": "json_extract (3.38)",
    r"\biif\(": "CASE (3.32)",
    r"\bsqlite_(temp_)?schema\b": "sqlite_master (3.33)",
    r"\bFILTER\s*\(": "count(CASE WHEN … THEN 1 END) (3.30)",
    r"\bNULLS (FIRST|LAST)\b": "ORDER BY column IS NULL, column (3.30)",
    r"\bLEFT JOIN json_each\b": "a subquery: before 3.39 it is an inner join",
    r"\bIS (NOT )?DISTINCT FROM\b": "IS, IS NOT (3.39)",
    r"\b(RIGHT|FULL)( OUTER)? JOIN\b": "LEFT JOIN (3.39)",
    r"\bVACUUM INTO\b": "the backup API (3.27)",
    r"\bRETURNING\b": "a second statement (3.35)",
    r"\b(NOT )?MATERIALIZED\b": "a plain common table expression (3.35)",
    r"\.serialize\(\)": "a file, because RHEL's Python has no serialize",
}
"""Expressions for SQL that SQLite 3.26 does not read, with what does the same."""

SOURCES = [
    *(ROOT / "builder").rglob("*.py"),
    ROOT / "metadata.yml",
    *ROOT.glob("templates/*"),
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sql_is_that_of_sqlite_3_26(path: Path) -> None:
    """No statement needs a newer version."""
    text = path.read_text(encoding="utf-8")
    found = {
        instead: match[0]
        for pattern, instead in NEWER.items()
        for match in re.finditer(pattern, text)
        # The site lists the functions that visitors may use in their own SQL.
        if path.name != "authorizer.py"
    }

    assert found == {}


def test_a_sqlite_without_full_text_search_is_refused(
    samples_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence names the part that is missing."""
    assert sqlite_connection._missing_part() is None

    monkeypatch.setattr(sqlite_connection, "_missing_part", lambda: "FTS5")
    result = run("find", "zlib", samples_file)
    assert result.exit_code == 2

    (line,) = result.stderr.splitlines()
    assert (
        f"uses a SQLite {sqlite3.sqlite_version} without FTS5; use another Python"
        in line
    )


def test_an_older_sqlite_is_refused(
    samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence names the version of SQLite that Python uses, and the one that is
    needed.
    """
    pages = write(tmp_path / "pages", a=page())
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 22, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.22.0")
    output = tmp_path / "new.db"

    for arguments in (["find", "zlib", samples_file], ["build", pages, "-o", output]):
        result = run(*arguments)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert "uses SQLite 3.22.0, which is too old" in line
        assert line.endswith("use a Python with SQLite 3.26 or newer")
    assert not output.exists()
    with pytest.raises(DatabaseError, match=r"SQLite 3\.22\.0"):
        build(pages, output)
