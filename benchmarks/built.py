"""The database that a benchmark reads: its argument, a connection, and SQL for its
rows.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import click

from benchmarks.measure import FOLDER
from spack_cache_db import BuilderError
from spack_cache_db.database_file import open_database
from spack_cache_db.schema.views import CONFIGURATION_JOINS
from spack_cache_db.schema.words import word_of

file_argument = click.argument(
    "file", type=click.Path(path_type=Path), default=FOLDER / "bench.db"
)


def opened(file: Path) -> sqlite3.Connection:
    """Return a connection to a database, as `find` opens it.

    Raises:
        ClickException: this program did not build the file.
    """
    try:
        return open_database(file)
    except BuilderError as error:
        raise click.ClickException(str(error)) from error


def connected(file: Path) -> sqlite3.Connection:
    """Return a connection that only reads a database, and checks nothing."""
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def in_words(*columns: str, also: str = "NULL") -> str:
    """Return the beginning of a statement that selects columns of configurations in
    words.

    `also` is an SQL expression, selected after these columns.
    """
    expressions = [word_of(column) for column in columns]
    expressions.append(also)
    selected = ", ".join(expressions)
    return f"SELECT {selected} FROM configurations\n{CONFIGURATION_JOINS}"  # noqa: S608
