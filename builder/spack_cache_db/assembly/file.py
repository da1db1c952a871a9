"""Creates, fills and checks the SQLite file, and puts it in place with its inspect
file.

The inspect file beside a database has the counts and the hash that Datasette would
otherwise compute. Datasette does not check it (docs: "performance",
`datasette inspect`), so a reader compares the hash (`current_inspection`).
"""

from __future__ import annotations

import glob
import json
import os
import sqlite3
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.output_lock import (
    FileState,
    cannot_write,
    require_unchanged,
    state_of,
)
from spack_cache_db.bounded_files import KINDS, read_file, sha256_of
from spack_cache_db.database_damage import (
    damage_as_error,
    damaged,
    is_damage,
    is_of_system,
)
from spack_cache_db.database_file import is_database
from spack_cache_db.errors import OutputError, one_line, reason
from spack_cache_db.inspect_file import (
    LOOKED,
    MAX_INSPECTION,
    NAME,
    RECORD,
    inspect_path,
)
from spack_cache_db.output_folders import put_in_place
from spack_cache_db.schema import full_text as full_text_module
from spack_cache_db.schema import identity
from spack_cache_db.schema import tables as tables_module
from spack_cache_db.schema import views as views_module

_MOST_PARAMETERS = 999
"""Parameters that every SQLite version accepts in one statement ("Limits", 9)."""


def create(path: Path) -> sqlite3.Connection:
    """Create an empty database with every table of the schema, inside an open
    transaction.

    The journal is off: until it is renamed, nothing uses the file, and a crash discards
    it.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        f"page_size = {identity.PAGE_SIZE}",
        "journal_mode = OFF",
        "synchronous = OFF",
        "cache_size = -16384",
        "temp_store = MEMORY",
        "foreign_keys = OFF",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {identity.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {identity.SCHEMA_VERSION}")
    for statement in _table_statements():
        connection.execute(statement)
    return connection


@cache
def _table_statements() -> tuple[str, ...]:
    """Return the statements that create the tables, in the order of the schema.

    sqlite-utils looks up the tables to which foreign keys refer, so they are created
    meanwhile.
    """
    import sqlite_utils  # `serve` needs other functions of this module.

    statements = []
    with closing(sqlite_utils.Database(memory=True)) as database:
        for table in tables_module.TABLES:
            primary_key: str | tuple[str, ...] = table.primary_key[0]
            if table.without_rowid:
                primary_key = table.primary_key
            foreign_keys = []
            not_null = set()
            for column in table.columns:
                if column.references:
                    key = tables_module.table(column.references).primary_key[0]
                    foreign_keys.append((column.name, column.references, key))
                # SQLite never stores NULL in an integer primary key.
                if not column.nullable and column.name != "id":
                    not_null.add(column.name)
            sql = database.create_table_sql(
                table.name,
                {column.name: column.type for column in table.columns},
                pk=primary_key,
                foreign_keys=foreign_keys,
                not_null=not_null,
            )
            statement = sql.rstrip().rstrip(";")
            if table.without_rowid:
                # sqlite-utils cannot write such tables.
                statement += " WITHOUT ROWID"
            database.execute(statement)
            statements.append(statement)
    return tuple(statements)


def insert(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows: tuples in the order of the schema's columns.

    A statement inserts many rows, because a statement per row would be slow.
    """
    width = len(tables_module.table(table).columns)
    rows_at_once = _MOST_PARAMETERS // width
    row_sql = f"({', '.join('?' * width)})"
    remaining = iter(rows)
    while True:
        chunk = list(islice(remaining, rows_at_once))
        if not chunk:
            break
        values_sql = ", ".join([row_sql] * len(chunk))
        parameters = list(chain.from_iterable(chunk))
        db.execute(f"INSERT INTO [{table}] VALUES {values_sql}", parameters)


def index_text(db: sqlite3.Connection, words: Mapping[str, Iterable[str]]) -> None:
    """Create and fill every full-text table; ids count from 1 in the order of the
    words.

    The tables store no text (SQLite FTS5 docs, 4.4.1 "Contentless Tables"), which saves
    a copy of the words, and `count(*)` reads only the index. The comment in the
    statement is for sqlite-utils and Datasette: they search it for `content="<table>"`
    to find the indexed table.
    """
    for table, full_text in full_text_module.FULL_TEXT.items():
        db.execute(f"""\
CREATE VIRTUAL TABLE [{table}] USING fts5(
  tokens,
  content='' /* content="{full_text.content}" */,
  detail=none,
  tokenize="{full_text.tokenizer}"
)""")
        rows = enumerate(words[full_text.content], start=1)
        db.executemany(f"INSERT INTO [{table}](rowid, tokens) VALUES (?, ?)", rows)
        db.execute(f"INSERT INTO [{table}]([{table}]) VALUES ('optimize')")


def finish(db: sqlite3.Connection) -> None:
    """Create indexes and views, and end the transaction.

    If this version of sqlite-utils writes other statements, readers would reject the
    database.
    """
    import sqlite_utils

    # Indexes, views, and the descriptions of columns, which need the views.
    database = sqlite_utils.Database(db)
    for table in tables_module.TABLES:
        for index in table.every_index():
            database.table(table.name).create_index(
                index.columns, index_name=index.name, unique=index.is_unique
            )
    for name, sql in views_module.VIEWS.items():
        database.create_view(name, sql)
    descriptions = enumerate(_descriptions(db), start=1)
    rows = [(row_id, *description) for row_id, description in descriptions]
    insert(db, "column_descriptions", rows)

    # Statistics.
    db.execute("ANALYZE")
    # Most queries are about a branch, which lists many more specs than the average
    # release. With the average as its estimate, SQLite would read the whole branch to
    # find one package.
    db.execute(
        "UPDATE sqlite_stat1 SET stat = (SELECT count(*) FROM listings) || ' ' || "
        "(SELECT max(spec_count) FROM releases) || ' 1' WHERE tbl = 'listings' AND idx = 'listings'"
    )
    db.execute("COMMIT")

    # Readers compare this checksum.
    statements = db.execute("SELECT name, sql FROM sqlite_master").fetchall()
    checksum = identity.statements_sha256(statements)
    if checksum != identity.STATEMENTS_SHA256:
        writer = f"sqlite-utils {metadata.version('sqlite-utils')}"
        message = f"{writer} writes another schema, with the checksum {checksum}"
        raise OutputError(f"{message}; install an older version of it")


def _descriptions(
    db: sqlite3.Connection,
) -> Iterator[tuple[str, str | None, str, int | None]]:
    """Yield the descriptions of each table, followed by those of its columns in
    order.
    """
    descriptions = _descriptions_file()
    # Columns of one name in several tables have one description.
    common = descriptions["columns"]["common"]
    for table, description in descriptions["tables"].items():
        yield table, None, description, None
        texts = common | descriptions["columns"].get(table, {})
        sql = "SELECT name FROM pragma_table_info(?)"
        for (column,) in db.execute(sql, (table,)).fetchall():
            is_derived = column in descriptions["derived"]
            yield table, column, texts[column], int(is_derived)


@cache
def _descriptions_file() -> dict[str, Any]:
    file = files("spack_cache_db.schema").joinpath("descriptions.toml")
    return tomllib.loads(file.read_text("utf-8"))


def require_intact(path: Path) -> None:
    """Raise OutputError if SQLite finds a broken foreign key or a damaged page."""
    # Each of the two checks reads the whole file, so they run at the same time.
    with ThreadPoolExecutor() as threads:
        references = threads.submit(_first_rows, path, "PRAGMA foreign_key_check")
        pages = threads.submit(_first_rows, path, "PRAGMA integrity_check(3)")
    try:
        broken = references.result()
        damage = pages.result()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        broken = []
        damage = [(str(error),)]
    if broken or damage != [("ok",)]:
        raise OutputError(
            f"the built database is damaged, nothing was replaced: {broken} {damage}"
        )


def _first_rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return the first rows of a statement, for which SQLite maps the whole file."""
    with closing(_connected(path)) as db:
        db.execute(f"PRAGMA mmap_size = {path.stat().st_size}")
        return db.execute(statement).fetchmany(3)


def _connected(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True
    )


def require_replaceable(output: Path, inputs: Iterable[str], *, force: bool) -> None:
    """Raise OutputError if writing would replace a file that is not an old database.

    Any other regular file is replaced with `force`, but not if it is part of the input.
    """
    try:
        status = os.lstat(output)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        # A name with a NUL is a ValueError.
        raise cannot_write(output, error) from None
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OutputError(f"{output}: is {kind}, expected a regular file or a new name")
    if is_database(output):
        return
    if any(_is_within(output, path) for path in inputs):
        raise OutputError(
            f"{output}: is part of the input, expected another place to write to"
        )
    if status.st_size and not force:
        expected = "expected an older database, an empty file or a new name"
        raise OutputError(
            f"{output}: was not made by spack-cache-db, {expected}; to replace it, use --force"
        )


def _is_within(output: Path, path: str) -> bool:
    try:
        file = os.path.realpath(output)
        folder = os.path.realpath(path)
    except ValueError:
        # No file can have a path with a NUL; reading the input reports it.
        return False
    return os.path.commonpath([file, folder]) == folder


def temporary(path: Path) -> Path:
    """Return the name under which this process writes a file until it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def discard(output: Path) -> None:
    """Remove the incomplete files of this process, if there are any."""
    for path in (output, inspect_path(output)):
        # A name that no file can have is a ValueError.
        with suppress(OSError, ValueError):
            temporary(path).unlink()


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is removed at the end.

    Files of earlier builds that were killed are removed too. A folder that cannot be
    written, or a full disk, is an OutputError.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for path in (output, inspect_path(output)):
            # The names that `temporary` gives.
            pattern = f".{glob.escape(path.name)}.*.tmp"
            for left_over in output.parent.glob(pattern):
                if not _is_being_written(left_over):
                    left_over.unlink(missing_ok=True)
        temporary(output).touch()
        yield temporary(output)
    except OSError as error:
        raise cannot_write(output, error) from error
    except sqlite3.DatabaseError as error:
        if not is_of_system(error):
            raise
        raise cannot_write(output, error) from error
    finally:
        discard(output)


def _is_being_written(path: Path) -> bool:
    """Return whether a temporary file's name contains the id of another running
    process.
    """
    pid = path.name.split(".")[-2]
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return int(pid) != os.getpid()


def publish(
    built: Path, output: Path, record: Mapping[str, Any], before: FileState | None
) -> tuple[str, bool]:
    """Move a finished database to `output`, then write its inspect file, with a build
    record.

    Return the sha256 in hex, and whether the old file has the same bytes and stays.

    Args:
        built: the finished database under its temporary name.
        output: its place.
        record: what the next build compares: the fingerprint of the input, the day and
            the counts; empty if the next build must not compare it.
        before: the state of `output` when the build began.

    Raises:
        OutputError: another program has written `output` since, or a file cannot be
            written.
    """
    # The inspect file, complete under a temporary name.
    inspected = inspect(built)
    inspected[NAME]["file"] = output.name
    inspected[NAME][RECORD] = {**record, LOOKED: _now()}
    inspect_file = inspect_path(output)
    _write_inspection(temporary(inspect_file), inspected)

    # The database first: a reader compares the hash in an inspect file.
    sha256 = str(inspected[NAME]["hash"])
    is_same = output.exists() and sha256_of(output) == sha256
    new_inode = built.stat().st_ino
    try:
        if not is_same:
            require_unchanged(output, before)
            put_in_place(built, output)
        temporary(inspect_file).replace(inspect_file)
    except OSError as error:
        state = state_of(output)
        is_replaced = state is not None and state.inode == new_inode
        if not (is_same or is_replaced):
            raise
        outcome = "is unchanged"
        if is_replaced:
            outcome = "the new database is complete and in place"
        raise OutputError(
            f"{output}: {outcome}, but {inspect_file} was not written: {reason(error)}. "
            "`serve` works without it; build again to write it"
        ) from error
    return sha256, is_same


def note_look(output: Path, inspected: dict[str, Any]) -> None:
    """Write the time of now into an inspect file, whose database has nothing new.

    Args:
        output: the database.
        inspected: the content of its inspect file.
    """
    inspected[NAME][RECORD][LOOKED] = _now()
    inspect_file = inspect_path(output)
    try:
        _write_inspection(temporary(inspect_file), inspected)
        temporary(inspect_file).replace(inspect_file)
    except OSError as error:
        raise OutputError(
            f"{output}: has nothing new, but {inspect_file} was not written: {reason(error)}"
        ) from error
    finally:
        discard(output)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write_inspection(path: Path, inspected: Mapping[str, Any]) -> None:
    text = json.dumps(inspected, indent=1, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8")


def inspect(database: Path) -> dict[str, Any]:
    """Return the content of Datasette's inspect file: hash, size in bytes, rows of each
    table.

    The rows of views are apart, because Datasette takes every name in `tables` for a
    table.
    """
    tables = {}
    views = {}
    with closing(_connected(database)) as db:
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
        inspected = json.loads(read_file(inspect_path(published), MAX_INSPECTION))
        is_current = inspected[NAME]["hash"] == sha256_of(database)
        if is_current and _is_inspection(inspected, database):
            return dict(inspected)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # The file is missing, or something else wrote it.
        pass
    with damage_as_error(published):
        with closing(_connected(database)) as db:
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
    with closing(_connected(database)) as db:
        tables = set(_table_names(db))
    has_known_views = set(views) <= set(views_module.VIEW_COUNTS)
    return set(entry["tables"]) == tables and has_known_views


def _table_names(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in rows.fetchall()]
