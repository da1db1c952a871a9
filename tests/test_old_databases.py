"""Databases of older schema versions: a build reads each as if it were of this
version.
"""

import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import differences
from spack_cache_db.database_file import open_source
from spack_cache_db.schema import identity, older
from spack_cache_db.sources.databases import _Database
from spack_cache_db.sources.writer import Writer
from tests.commands import run
from tests.old_databases import (
    OLD_DATABASES,
    OldDatabase,
    build_sources,
    unpack_sources,
)

CHECKSUMS = {
    22: "2b249d19515d948eaf844c0da933b4e0d769b5a1518ceeee79047fce4e3a0c87",
    23: "b6749f7cc1d8b70e065dfe0ee36587acddb4df6bd642ea7caabaa13c1a79802c",
    24: "a85417cab58c5780a905570557025f6aa5bba26c7133925eaf4a73cfb9939d50",
    25: "0c8e75d6bbe90f08ad59b83cabbad39e7b78144f41b51a18a42994db14aa758c",
    26: "33f3647bd9344a0b3bc1aa99720719550a5a3451c979ebcaee0f014cff5012b5",
}
"""The statements of each schema version since 22. A line is added, and never
changed.
"""

NOT_STORED = (
    "UPDATE mirrors SET is_signed = NULL, settings = NULL",
    "UPDATE modules SET parents = NULL",
)
"""The columns that versions before 22 did not have, and that nothing else gives."""

every_old_database = pytest.mark.parametrize(
    "kind", OLD_DATABASES, ids=[kind.name for kind in OLD_DATABASES]
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of all old databases."""
    return unpack_sources(tmp_path_factory.mktemp("sources"))


@every_old_database
def test_an_old_database_gives_the_bytes_of_its_sources(
    kind: OldDatabase, sources: Path, tmp_path: Path
) -> None:
    """Apart from columns that old versions lack, a build finds in it all that it was
    made of.
    """
    old = kind.write(tmp_path / "old.db")
    build(old, tmp_path / "from_old.db")
    expected = build_sources(sources, tmp_path / "expected.db", kind)
    with closing(sqlite3.connect(expected)) as connection:
        if kind.version < 22:
            for statement in NOT_STORED:
                connection.execute(statement)
        connection.commit()
    build(expected, tmp_path / "from_sources.db")
    found = list(differences(tmp_path / "from_sources.db", tmp_path / "from_old.db"))

    assert found == []
    assert (tmp_path / "from_old.db").read_bytes() == (
        tmp_path / "from_sources.db"
    ).read_bytes()


@every_old_database
def test_an_old_database_gives_the_same_answers(
    kind: OldDatabase, sources: Path, tmp_path: Path
) -> None:
    """The commands print the same for it as for its sources."""
    new = tmp_path / "new.db"
    build(kind.write(tmp_path / "old.db"), new)
    expected = build_sources(sources, tmp_path / "expected.db", kind)

    for words in (
        ["find", "zlib"],
        ["find", "tool"],
        ["history", "kept"],
        ["releases"],
        ["stacks"],
    ):
        command, *spec = words
        result = run(command, *spec, new, "--json")
        assert result.exit_code == 0, result.output
        assert result.output == run(command, *spec, expected, "--json").output, words


def test_only_snapshots_that_a_build_made_are_copies(tmp_path: Path) -> None:
    """A dated release with a mirror or pages of its own is not one."""
    (kind,) = (kind for kind in OLD_DATABASES if kind.name == "21-4")
    build(kind.write(tmp_path / "old.db"), tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        rows = connection.execute(
            "SELECT name FROM releases WHERE is_copy ORDER BY name"
        )
        copies = [name for (name,) in rows]
        snapshots = connection.execute(
            "SELECT name FROM releases WHERE kind = 'snapshot'"
        )
        others = sorted({name for (name,) in snapshots} - set(copies))

    assert copies == [
        "develop-2026-11-01",
        "ours-2026-11-01",
        "ours-2026-11-02",
        "v0.14-2026-11-01",
        "v0.16-2026-11-01",
        "v0.20-2026-11-01",
    ]
    # The first has a page, the second its own mirror.
    assert others == ["develop-2025-01-05", "develop-2025-02-02"]


def test_every_older_version_is_read() -> None:
    """Each version from 15 on has views and a database that is built on, or nobody can
    upgrade.
    """
    versions = list(range(15, identity.SCHEMA_VERSION))
    assert list(older.FORMS) == versions
    assert sorted({kind.version for kind in OLD_DATABASES}) == versions


def test_a_version_has_one_checksum() -> None:
    """Other statements need another version: a line of this table never changes."""
    assert CHECKSUMS[identity.SCHEMA_VERSION] == identity.STATEMENTS_SHA256, (
        "the statements changed: add a database of the version before (tests/old_databases.py) "
        "with its views (schema/older.py), and raise SCHEMA_VERSION"
    )

    several = [version for version, forms in older.FORMS.items() if len(forms) > 1]
    assert several == [21]


@every_old_database
def test_old_databases_are_of_every_form(kind: OldDatabase, tmp_path: Path) -> None:
    """Each of them has the version and the statements that it stands for."""
    assert kind in OLD_DATABASES
    assert checksum(kind.write(tmp_path / "old.db")) in older.FORMS[kind.version]


def test_every_form_has_an_old_database(tmp_path: Path) -> None:
    """No views are there that nothing tests."""
    found = {
        (kind.version, checksum(kind.write(tmp_path / f"{kind.name}.db")))
        for kind in OLD_DATABASES
    }

    assert found == {
        (version, form) for version, forms in older.FORMS.items() for form in forms
    }


def checksum(database: Path) -> str:
    """Return the checksum of the tables that are read of a database."""
    with closing(sqlite3.connect(database)) as connection:
        return older.tables_sha256(
            connection.execute("SELECT name, sql FROM sqlite_master")
        )


@every_old_database
def test_no_table_is_read_whose_statement_is_not_checked(
    kind: OldDatabase, tmp_path: Path
) -> None:
    """A hostile table of another name is never read."""
    file = kind.write(tmp_path / "old.db")
    tables: set[str] = set()

    def note(
        action: int, table: str | None, _: str | None, database: str | None, *__: object
    ) -> int:
        if action == sqlite3.SQLITE_READ and database == "main":
            tables.add(str(table))
        return sqlite3.SQLITE_OK

    with closing(open_source(file)) as connection:
        connection.set_authorizer(note)
        _Database(connection, str(file), Writer()).read()
    assert tables <= set(older.READ)


ENDLESS = """
DROP TABLE recipes;
CREATE VIEW recipes AS WITH RECURSIVE n(namespace, url) AS (
  SELECT 1, 1 UNION ALL SELECT namespace + 1, 1 FROM n
) SELECT * FROM n
"""


def cut_off(file: Path) -> None:
    """Leave out the end of a file."""
    file.write_bytes(file.read_bytes()[:-5000])


def hostile(file: Path) -> None:
    """Replace a table by a view that never ends."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(ENDLESS)


def broken(file: Path) -> None:
    """Write package data that is not compressed."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE package_rests SET data = x'00'")
        connection.commit()


@every_old_database
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut_off, "is damaged: it has "),
        (hostile, "its tables, indexes or views are not those of schema version "),
        (broken, "is damaged: "),
    ],
)
def test_a_damaged_old_database_is_refused(
    change: Callable[[Path], None], message: str, kind: OldDatabase, tmp_path: Path
) -> None:
    """In one sentence, and nothing is written."""
    file = kind.write(tmp_path / "old.db")
    change(file)
    result = run("build", file, "-o", tmp_path / "new.db")

    assert result.exit_code in (1, 2)
    assert result.stderr.startswith(f"{file}: {message}")
    assert not (tmp_path / "new.db").exists()


@every_old_database
@pytest.mark.parametrize("command", ["info", "find", "serve", "verify", "releases"])
def test_readers_name_the_command_that_upgrades(
    command: str, kind: OldDatabase, tmp_path: Path
) -> None:
    """In one line, with exit status 2."""
    file = kind.write(tmp_path / "old.db")
    arguments: dict[str, list[object]] = {
        "find": ["zlib", file],
        "verify": [file, tmp_path],
    }
    result = run(command, *arguments.get(command, [file]))

    assert result.exit_code == 2

    lines = [
        line for line in result.stderr.splitlines() if not line.startswith("Loading ")
    ]
    assert lines == [
        f"Error: {file}: has schema version {kind.version}, "
        f"this program reads {identity.SCHEMA_VERSION}; "
        f"`spack-cache-db build {file} -o NEW.db` brings it up to date"
    ]


@every_old_database
def test_the_command_that_is_named_upgrades(kind: OldDatabase, tmp_path: Path) -> None:
    """Typed as it is printed, it makes a database that can be read."""
    # Quotes around the path keep it one word.
    folder = tmp_path / "a folder"
    folder.mkdir()
    file = kind.write(folder / "old.db")
    command = run("find", "zlib", file).stderr.split("`")[1]
    program, *arguments = shlex.split(command)

    assert program == "spack-cache-db"

    new = tmp_path / "new.db"
    arguments[arguments.index("NEW.db")] = str(new)
    assert run(*arguments).exit_code == 0
    assert run("find", "zlib", new).exit_code == 0


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (
            identity.SCHEMA_VERSION + 1,
            "a newer version of spack-cache-db made it; install that",
        ),
        (14, "versions before 15 have to be built again from their sources"),
    ],
)
def test_other_versions_are_refused_with_the_reason(
    version: int, advice: str, samples_file: Path, tmp_path: Path
) -> None:
    """A newer program made the one, and the other is from before there was a way to
    upgrade.
    """
    file = tmp_path / "other.db"
    file.write_bytes(samples_file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    reads = f"this program reads {identity.SCHEMA_VERSION}"
    message = f"has schema version {version}, {reads}; {advice}"

    assert message in run("find", "zlib", file).stderr
    assert message in run("build", file, "-o", tmp_path / "new.db").stderr
