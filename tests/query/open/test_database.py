"""A file is known to be one, and whole, before anything reads it."""

import json
import random
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db import database_damage, sqlite_connection
from spack_cache_db.database_damage import damage_as_error, stored_json
from spack_cache_db.database_file import open_database
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open.sql import IDS_AT_ONCE, connected, select_in
from spack_cache_db.schema import full_text, identity, views
from tests.commands import run
from tests.pagetexts import SAMPLES
from tests.processes import completed


@pytest.fixture
def copy(samples_file: Path, tmp_path: Path) -> Path:
    """A copy of the samples' database."""
    path = tmp_path / "copy.db"
    shutil.copy(samples_file, path)
    return path


def changed(copy: Path, *statements: str) -> None:
    """Change a file as somebody else's program may."""
    with closing(sqlite3.connect(copy)) as connection:
        for each in statements:
            connection.execute(each)
        connection.commit()


def test_a_whole_file_opens_read_only(copy: Path) -> None:
    """What build made can be read and not written; tables of somebody's own do no
    harm.
    """
    changed(copy, "CREATE TABLE notes (text)")
    with closing(open_database(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM specs").fetchone() == (413,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM specs")


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"


@pytest.mark.parametrize(
    "name",
    [
        "packages",
        "builds",
        "configurations_fts",
        "packages_fts_data",
        "unique_specs_hash",
    ],
)
@pytest.mark.parametrize("command", ["info", "find", "cover", "verify"])
def test_a_file_that_claims_to_be_ours_is_refused(
    name: str, command: str, copy: Path
) -> None:
    """A view that never ends in the place of a table, a view or an index: nothing asks
    it.
    """
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = ?", [name])
        sql = f"CREATE VIEW {name} AS {ENDLESS}"
        connection.execute(
            "INSERT INTO sqlite_master VALUES ('view', ?, ?, 0, ?)", [name, name, sql]
        )
        connection.commit()
    specs = copy.with_name("specs.txt")
    specs.write_text("zlib")
    arguments: dict[str, list[object]] = {
        "info": [copy],
        "find": ["zlib", copy],
        "cover": [specs, copy],
        "verify": [copy, SAMPLES],
    }
    result = run(command, *arguments[command])

    assert result.exit_code in (1, 2), result.output
    reasons = ("are not those of schema version ", "is damaged: ")
    assert any(reason in result.stderr for reason in reasons)
    assert "build it again" in result.stderr


@pytest.mark.slow
def test_a_statement_that_does_not_end_is_ended(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is counted by itself; the command says in one line what is wrong."""
    steps = 10 * sqlite_connection.STEPS_AT_ONCE
    for module in (sqlite_connection, database_damage):
        monkeypatch.setattr(module, "MOST_STEPS", steps)
    some = f"SELECT max(id) FROM ({ENDLESS} LIMIT 200000)"

    with closing(open_database(copy)) as connection:
        for _ in range(8):
            assert connection.execute(some).fetchone() == (200_000,)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchone()
        assert connection.execute(some).fetchone() == (200_000,)
    told = (
        "a statement takes more than 10,000,000 steps of SQLite, "
        "which no database of a build needs"
    )
    with pytest.raises(DatabaseError, match=told), connected(copy) as connection:
        connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchone()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_end_in_one_line(seed: int, copy: Path) -> None:
    """Wherever they are, in the schema or in the data: no traceback."""
    chance = random.Random(seed)
    data = bytearray(copy.read_bytes())
    # The schema lies in the first pages: half of the bytes are of it.
    for end in (len(data), 8 * identity.PAGE_SIZE):
        for _ in range(chance.choice([1, 5, 40])):
            data[chance.randrange(100, end)] = chance.choice(
                [0, 255, chance.randrange(256)]
            )
    copy.write_bytes(data)

    for arguments in (
        ["info", copy],
        ["find", "zlib", copy],
        ["verify", copy, SAMPLES],
    ):
        result = run(*arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            arguments
        )


@pytest.mark.parametrize("cut", [1, 3000, 4095, 4096, 50_000])
def test_a_file_that_was_cut_off_is_refused(copy: Path, cut: int) -> None:
    """However few bytes are missing at its end."""
    copy.write_bytes(copy.read_bytes()[:-cut])
    with pytest.raises(DatabaseError, match=r"is damaged: .*; restore a copy"):
        open_database(copy)


@pytest.mark.parametrize(
    "name", [*views.VIEWS, *full_text.FULL_TEXT, "listings", "facet_values"]
)
def test_a_file_without_a_table_or_view_is_refused(copy: Path, name: str) -> None:
    """The message says which one is missing."""
    changed(copy, f"DROP {'VIEW' if name in views.VIEWS else 'TABLE'} {name}")
    with pytest.raises(
        DatabaseError, match=f"is damaged: it has no {name}; restore a copy"
    ):
        open_database(copy)


def test_what_is_no_database(copy: Path) -> None:
    """A path without a built file, or one of another schema, is an error with the
    reason.
    """
    changed(copy, "PRAGMA user_version = 99")

    with pytest.raises(
        DatabaseError, match="has schema version 99, this program reads"
    ):
        open_database(copy)
    for text, reason in (
        ("no database", "is not a spack-cache-db database"),
        ("", "no such file"),
    ):
        if text:
            copy.write_text(text)
        else:
            copy.unlink()
        with pytest.raises(DatabaseError, match=reason):
            open_database(copy)


def test_a_connection_stays_open_and_a_path_is_closed(samples_file: Path) -> None:
    """Who brings a connection keeps it; a file that was opened here is closed here."""
    own = open_database(samples_file)
    with connected(own) as conn:
        assert conn is own
    assert own.execute("SELECT 1").fetchone() == (1,)

    with connected(samples_file) as conn:
        pass
    with pytest.raises(sqlite3.ProgrammingError):
        conn.execute("SELECT 1")
    own.close()


def test_no_list_of_ids_is_too_long() -> None:
    """Many ids go in by pieces, each of them once, below the bound that the site
    sets.
    """
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 200_000)
    ids = range(10_000_000, 10_000_000 + 5 * IDS_AT_ONCE + 1)
    with pytest.raises(sqlite3.DataError):
        connection.execute("SELECT ?", [json.dumps(list(ids))])

    found = [
        row[0]
        for row in select_in(connection, "SELECT value FROM json_each(:ids)", ids)
    ]

    assert found == list(ids)


def test_a_value_that_is_too_large_is_refused(copy: Path) -> None:
    """It is not read into memory, where it would be copied several times over."""
    changed(
        copy, "UPDATE releases SET name = printf('%.*c', 20000000, 'x') WHERE id = 1"
    )
    done = run("find", "zlib", copy)

    assert done.exit_code == 2
    assert done.stderr.startswith(
        f"Error: {copy}: has a value of more than 16,000,000 bytes"
    )
    assert done.stderr.count("\n") == 1


def test_an_error_that_is_no_damage_is_raised_as_it_is(samples_file: Path) -> None:
    """A wrong statement, and an error of the caller, say nothing about the database."""
    wrong = pytest.raises(sqlite3.OperationalError, match="no such table: none")
    with wrong, connected(samples_file) as connection:
        connection.execute("SELECT * FROM none")

    with pytest.raises(json.JSONDecodeError), connected(samples_file):
        json.loads("{")

    stored = pytest.raises(
        DatabaseError, match="is damaged: it has a text that is not JSON"
    )
    with stored, connected(samples_file):
        stored_json("{")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (sqlite3.SQLITE_CORRUPT, "is damaged: why; restore a copy of it"),
        (sqlite3.SQLITE_NOTADB, "is damaged: why; restore a copy of it"),
        (sqlite3.SQLITE_CORRUPT | 1 << 8, "is damaged: why; restore a copy of it"),
        (sqlite3.SQLITE_IOERR | 1 << 8, r"cannot be read: why \(NAME\)"),
        (sqlite3.SQLITE_CANTOPEN, r"cannot be read: why \(NAME\)"),
        (sqlite3.SQLITE_FULL, "no space left for temporary files of SQLite"),
    ],
)
def test_each_error_is_called_what_it_is(code: int, message: str) -> None:
    """Only two codes of SQLite mean that a file is damaged."""
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "NAME"

    with (
        pytest.raises(DatabaseError, match=f"^x.db: {message}"),
        damage_as_error(Path("x.db")),
    ):
        raise error


def test_a_full_folder_for_temporary_files_is_named(copy: Path, tmp_path: Path) -> None:
    """SQLite sorts in a file, whose size is limited here."""
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from spack_cache_db.query.open.lookups import connected\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with connected(Path(sys.argv[1])) as connection:\n"
        "    connection.execute('PRAGMA cache_size = 1')\n"
        "    connection.execute('CREATE TEMP TABLE t AS SELECT a.hash, b.hash AS c "
        "FROM specs AS a, specs AS b ORDER BY c')\n"
    )
    done = completed([sys.executable, "-c", program, str(copy)])

    assert "DatabaseError" in done.stderr
    assert "is damaged" not in done.stderr
