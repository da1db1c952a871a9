"""The inspect file beside a database: counts and hash that Datasette would else find out itself.

Datasette believes an inspect file without looking (docs: "performance", `datasette inspect`), so
it is written from the very file it describes and replaced just before the database is: a reader
that meets one new and one old file can tell, because both name the hash.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

NAME = "spack-cache"
"""The database's name in URLs."""


def inspect_path(database: Path) -> Path:
    """Return the path of a database's inspect file."""
    return database.with_suffix(".inspect.json")


def prepare(built: Path, target: Path) -> str:
    """Write the inspect file of `built` beside `target`, under a temporary name.

    Returns:
        The sha256 of the database, in hex.
    """
    with built.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    connection = sqlite3.connect(f"file:{built}?immutable=1", uri=True)
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        counts = {
            name: {"count": connection.execute(f"SELECT count(*) FROM [{name}]").fetchone()[0]}  # noqa: S608
            for (name,) in names.fetchall()
        }
    finally:
        connection.close()
    inspected = {"hash": sha256, "size": built.stat().st_size, "file": target.name, "tables": counts}
    text = json.dumps({NAME: inspected}, indent=1, sort_keys=True)
    _waiting(target).write_text(text + "\n", encoding="utf-8")
    return sha256


def publish(target: Path) -> None:
    """Put the prepared inspect file in its place, after the database took its own."""
    _waiting(target).replace(inspect_path(target))


def _waiting(target: Path) -> Path:
    return target.with_name(f".{target.name}.inspect.tmp")
