"""Makes and reads the inspect file beside a database.

It has the counts and the hash that Datasette would otherwise compute. Datasette does
not check it (docs: "performance", `datasette inspect`), so a reader compares the hash
(`current_inspection`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.file import connected
from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.database_damage import damage_as_error, damaged
from spack_cache_db.errors import one_line
from spack_cache_db.inspect_file import NAME, NOT_OURS, read_inspection
from spack_cache_db.schema import identity
from spack_cache_db.schema import views as views_module


def inspect(database: Path) -> dict[str, Any]:
    """Return the content of Datasette's inspect file: hash, size in bytes, rows of each
    table.

    The rows of views are apart, because Datasette takes every name in `tables` for a
    table.
    """
    tables = {}
    views = {}
    with closing(connected(database)) as db:
        for name in _table_names(db):
            quoted = name.replace('"', '""')
            (rows,) = db.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()
            tables[name] = {"count": rows}
        # Views of other schemas may have other rows.
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == identity.SCHEMA_VERSION:
            for name, sql in views_module.VIEW_COUNTS.items():
                (rows,) = db.execute(sql).fetchone()
                views[name] = {"count": rows}
    entry: dict[str, Any] = {
        "hash": sha256_of(database),
        "size": database.stat().st_size,
        "file": database.name,
        "tables": tables,
        "views": views,
    }
    return {NAME: entry}


def current_inspection(database: Path, published: Path | None = None) -> dict[str, Any]:
    """Return the content of the inspect file if its hash fits, otherwise inspect the
    database.

    The inspect file is beside `published`. A damaged database is a DatabaseError.
    """
    published = published or database
    try:
        inspected = read_inspection(published)
        is_current = inspected[NAME]["hash"] == sha256_of(database)
        if is_current and _is_inspection(inspected, database):
            return dict(inspected)
    except NOT_OURS:
        # The file is missing, or something else wrote it.
        pass
    with damage_as_error(published):
        with closing(connected(database)) as db:
            (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise damaged(published, one_line(result))
        return inspect(database)


def _is_inspection(inspected: Any, database: Path) -> bool:
    """Return whether an inspect file has the form that Datasette expects, and the right
    tables.

    Its hash may be right although somebody else wrote the rest.
    """
    entry = inspected[NAME]
    # Older versions of the program wrote no counts of views.
    views = entry.get("views", {})
    if not isinstance(entry["tables"], dict) or not isinstance(views, dict):
        return False
    if not isinstance(entry["size"], int) or not isinstance(entry["file"], str):
        return False
    counted = [*entry["tables"].values(), *views.values()]
    counts = [item["count"] for item in counted]
    if not all(type(count) is int for count in counts):
        return False
    with closing(connected(database)) as db:
        tables = set(_table_names(db))
    has_known_views = set(views) <= set(views_module.VIEW_COUNTS)
    return set(entry["tables"]) == tables and has_known_views


def _table_names(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in rows.fetchall()]


def now() -> str:
    """Return the time of now in UTC, such as `2026-11-29T14:30:00+00:00`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_inspection(path: Path, inspected: Mapping[str, Any]) -> None:
    """Write the content of an inspect file."""
    text = json.dumps(inspected, indent=1, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8")
