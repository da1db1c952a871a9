"""The inspect file beside a database: counts and hash that Datasette would else find out itself.

Datasette believes an inspect file without looking (docs: "performance", `datasette inspect`), so
it is written from the very file it describes and replaced just after the database is. Whoever
meets a new one beside an old one can tell by the hash (`current_inspection`).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db.build.output import temporary_inspect_file
from spack_cache_db.errors import DatabaseError, OutputError

NAME = "spack-cache"
"""The database's name in URLs."""


def inspect_path(database: Path) -> Path:
    """Return the path of a database's inspect file."""
    return database.with_suffix(".inspect.json")


def prepare(built: Path, output: Path) -> str:
    """Write the inspect file of `built` beside `output`, under a temporary name.

    Returns:
        The sha256 of the database, in hex.
    """
    inspected = inspect(built)
    inspected[NAME]["file"] = output.name
    text = json.dumps(inspected, indent=1, sort_keys=True)
    temporary_inspect_file(output).write_text(text + "\n", encoding="utf-8")
    return str(inspected[NAME]["hash"])


def inspect(database: Path) -> dict[str, Any]:
    """Return what Datasette's inspect file holds: hash, size in bytes, rows of each table."""
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?immutable=1", uri=True)
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        counts = {name: {"count": _count(connection, name)} for (name,) in names.fetchall()}
    finally:
        connection.close()
    size = database.stat().st_size
    return {
        NAME: {"hash": _sha256(database), "size": size, "file": database.name, "tables": counts}
    }


def _count(connection: sqlite3.Connection, table: str) -> int:
    quoted = table.replace('"', '""')
    return int(connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()[0])


def current_inspection(database: Path, published: Path | None = None) -> dict[str, Any]:
    """Return the inspect file's content if it is of this very database, else inspect anew.

    Args:
        database: the file.
        published: the path beside which its inspect file stands, if it is another one.

    Raises:
        DatabaseError: there is no inspect file of it, and it is damaged.
    """
    published = published or database
    try:
        inspected = json.loads(inspect_path(published).read_text(encoding="utf-8"))
        if inspected[NAME]["hash"] == _sha256(database):
            return dict(inspected)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        _check(database)
        return inspect(database)
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{published}: is damaged: {error}; build it anew") from None


def _check(database: Path) -> None:
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?immutable=1", uri=True)
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    finally:
        connection.close()
    if found != "ok":
        raise sqlite3.DatabaseError(" ".join(found.split()))


def publish(output: Path) -> None:
    """Put the prepared inspect file in its place, after the database took its own.

    Raises:
        OutputError: the place is taken, by a folder for example.
    """
    try:
        temporary_inspect_file(output).replace(inspect_path(output))
    except OSError as error:
        message = f"cannot be written: {error.strerror}; the database itself is whole"
        raise OutputError(f"{inspect_path(output)}: {message}") from None


def _sha256(database: Path) -> str:
    with database.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
