"""export: every row of every table, the same bytes each time, described for
machines.
"""

import gzip
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv, parquet

import spack_cache_db
from spack_cache_db.errors import ArgumentError, DatabaseError, OutputError
from spack_cache_db.exports.contents import INTEGERS, WIDE_VIEWS
from spack_cache_db.schema.tables import TABLES
from tests.commands import run
from tests.every_kind import write_every_kind
from tests.package_data import REAL as PACKAGE_DATA
from tests.processes import completed
from tests.programs import install_locked

FORMATS = {"parquet": ".parquet", "csv": ".csv.gz"}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a row in almost every table."""
    folder = tmp_path_factory.mktemp("export")
    sources = write_every_kind(folder / "in")
    spack_cache_db.build([sources, PACKAGE_DATA], folder / "x.db", keep_going=True)
    return folder / "x.db"


@pytest.fixture(scope="module", params=FORMATS)
def exported(
    request: pytest.FixtureRequest, database: Path, tmp_path_factory: Any
) -> tuple[str, Path]:
    """A format, and the folder of an export in it."""
    folder = tmp_path_factory.mktemp("exported") / "out"
    report = spack_cache_db.export(database, folder, format=request.param)
    assert report.folder == folder
    return request.param, folder


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database."""
    with closing(sqlite3.connect(database)) as connection:
        yield connection


def read(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows of an exported file."""
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
    else:
        # An empty text has quotes, NULL has none.
        options = csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
        table = csv.read_csv(path, convert_options=options)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_every_row_is_there(
    exported: tuple[str, Path], connection: sqlite3.Connection
) -> None:
    """Each file has the rows of its table or view, value by value, NULL and empty texts
    apart.
    """
    form, folder = exported
    names = [table.name for table in TABLES] + list(WIDE_VIEWS)
    if form == "csv":
        names.remove("package_rests")
    suffix = FORMATS[form]
    files = {path.name for path in folder.iterdir()}

    assert files == {f"{name}{suffix}" for name in names} | {
        "croissant.json",
        "datapackage.json",
    }
    for name in names:
        expected = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        found = read(folder / f"{name}{suffix}")
        if form == "csv":
            # The types of columns are in datapackage.json: compare texts.
            expected = [tuple(map(text_of, row)) for row in expected]
            found = [tuple(map(text_of, row)) for row in found]
        assert sorted(found, key=repr) == sorted(expected, key=repr), name


def text_of(value: object) -> str | None:
    """Return a value as a CSV file has it."""
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    return str(value)


def test_columns_of_views_have_the_types_of_their_values(
    connection: sqlite3.Connection,
) -> None:
    """Numbers are exactly the columns that are declared as numbers."""
    for view in WIDE_VIEWS:
        cursor = connection.execute(f"SELECT * FROM {view}")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            for name, value in zip(names, row, strict=True):
                expected = int if name in INTEGERS else str
                assert value is None or type(value) is expected, (view, name, value)


def test_rows_come_in_the_order_of_a_key(exported: tuple[str, Path]) -> None:
    """By the primary key; a view by package, version and hash."""
    form, folder = exported
    suffix = FORMATS[form]
    specs = read(folder / f"specs{suffix}")

    assert [row[0] for row in specs] == sorted(row[0] for row in specs)

    builds = read(folder / f"builds{suffix}")
    assert [row[1] for row in builds] == sorted(row[1] for row in builds)


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_database_gives_the_same_bytes(
    form: str, database: Path, tmp_path: Path
) -> None:
    """Whatever was in the folder before, and wherever it is."""
    for name in "ab":
        spack_cache_db.export(database, tmp_path / name, format=form)
    spack_cache_db.export(database, tmp_path / "b", format=form)
    first = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    second = {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}

    assert first == second


def test_checksums_and_sizes_are_those_of_the_files(exported: tuple[str, Path]) -> None:
    """Both descriptions name each file once, with its checksum."""
    _, folder = exported
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    described = {}
    for resource in package["resources"]:
        described[resource["path"]] = (resource["bytes"], resource["hash"][7:])
    dataset = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    objects = {
        distribution["@id"]: distribution["sha256"]
        for distribution in dataset["distribution"]
    }
    found = {}
    for path in folder.iterdir():
        if path.suffix != ".json":
            data = path.read_bytes()
            found[path.name] = (len(data), hashlib.sha256(data).hexdigest())

    assert described == found
    assert objects == {name: checksum for name, (_, checksum) in found.items()}


def test_every_column_is_described(exported: tuple[str, Path]) -> None:
    """With the sentence of `column_descriptions`, in both descriptions and in
    Parquet.
    """
    form, folder = exported
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))

    for resource in package["resources"]:
        assert resource["description"]
        for field in resource["schema"]["fields"]:
            assert field["description"], (resource["name"], field["name"])
    if form == "parquet":
        schema = parquet.read_schema(folder / "specs.parquet")
        assert schema.field("hash").metadata[b"description"]


def test_another_format_replaces_the_first(database: Path, tmp_path: Path) -> None:
    """No file of the other format stays."""
    spack_cache_db.export(database, tmp_path, format="csv")
    spack_cache_db.export(database, tmp_path)
    assert not list(tmp_path.glob("*.csv.gz"))
    assert (tmp_path / "specs.parquet").is_file()


def test_results_beside_an_export_stay(database: Path, tmp_path: Path) -> None:
    """An analyst's own Parquet file is not removed by the next export."""
    spack_cache_db.export(database, tmp_path)
    (tmp_path / "my_results.parquet").write_bytes(b"mine")
    spack_cache_db.export(database, tmp_path, format="csv")
    spack_cache_db.export(database, tmp_path)
    assert (tmp_path / "my_results.parquet").read_bytes() == b"mine"


def test_files_of_others_are_left_alone(database: Path, tmp_path: Path) -> None:
    """A folder with other files is refused, and nothing in it changes."""
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(OutputError, match="has other files"):
        spack_cache_db.export(database, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


KILLED = """
import os, signal, sys
from pathlib import Path
import spack_cache_db
from spack_cache_db.exports import folder as exports_folder

database, folders = map(Path, sys.argv[1:3])
os.fsync = lambda _: None  # A kill loses nothing that the system has taken.
for moment in map(int, sys.argv[3:]):
    child = os.fork()
    if not child:
        left = moment
        put = exports_folder.put_in_place
        def step(part, path):
            global left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            put(part, path)
        exports_folder.put_in_place = step
        spack_cache_db.export(database, folders / str(moment))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""Exports into a new folder for each of some numbers, killed when so many files are in
place; prints the statuses.
"""


@pytest.mark.slow
def test_a_killed_first_export_is_finished_by_the_next(
    database: Path, tmp_path: Path
) -> None:
    """The next one takes the folder, also after Ctrl-C has removed unfinished files."""
    whole = tmp_path / "whole"
    spack_cache_db.export(database, whole)
    folders = tmp_path / "folders"
    folders.mkdir()
    names = {path.name for path in whole.iterdir()}
    moments = [0, 1, len(names) // 2, len(names) - 1]
    command = [sys.executable, "-c", KILLED, database, folders]
    done = completed([*command, *moments, len(names)], check=True)
    # With one file more than the export has, nothing is killed.
    killed = [str(-signal.SIGKILL)] * len(moments)

    assert done.stdout.split() == [*killed, "0"]
    for moment in moments:
        folder = folders / str(moment)
        shutil.rmtree(folder / ".export.tmp", ignore_errors=True)
        spack_cache_db.export(database, folder)
        assert {path.name for path in folder.iterdir()} == names


def test_other_files_are_no_databases(tmp_path: Path) -> None:
    """The folder is not made."""
    (tmp_path / "x.db").write_text("x" * 5000, encoding="utf-8")
    with pytest.raises(DatabaseError):
        spack_cache_db.export(tmp_path / "x.db", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_format_is_refused(database: Path, tmp_path: Path) -> None:
    """The message names the formats."""
    with pytest.raises(
        ArgumentError, match="format is 'xlsx', expected parquet or csv"
    ):
        spack_cache_db.export(database, tmp_path / "out", format="xlsx")


def test_a_changed_value_is_damage(database: Path, tmp_path: Path) -> None:
    """A text where a number belongs ends in one sentence, and nothing is left
    behind.
    """
    copy = tmp_path / "copy.db"
    copy.write_bytes(database.read_bytes())
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE specs SET release_count = 'many' WHERE id = 1")

    with pytest.raises(DatabaseError, match="is damaged"):
        spack_cache_db.export(copy, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_says_what_it_wrote(database: Path, tmp_path: Path) -> None:
    """In a sentence, or as JSON."""
    result = run("export", database, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{tmp_path}/out: {len(TABLES) + 3} tables, ")

    license = "https://example.org/terms"
    result = run(
        "export", database, "-o", tmp_path / "out", "--json", "--license", license
    )
    assert json.loads(result.stdout)["rows"]["specs"] > 0

    package = json.loads((tmp_path / "out" / "datapackage.json").read_bytes())
    assert package["licenses"][0]["path"] == license


FRICTIONLESS = """
import json, sys
from pathlib import Path
import frictionless
frictionless.system.trusted = True
path = Path(sys.argv[1]) / "datapackage.json"
faults = list(frictionless.Package.metadata_validate(json.loads(path.read_bytes())))
assert not faults, faults
# Frictionless reads Parquet through pandas, in which a missing number is a fault.
if sys.argv[2] == "csv":
    report = frictionless.Package(str(path)).validate()
    assert report.valid, [(task.name, task.errors[:3]) for task in report.tasks]
"""

CROISSANT = """
import sys
from pathlib import Path
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=str(Path(sys.argv[1]) / "croissant.json"))
issues = dataset.metadata.ctx.issues
assert not issues.errors, issues.errors
print(len(list(dataset.records(record_set="releases"))))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what reads the descriptions."""
    folder = tmp_path_factory.mktemp("libraries")
    install_locked("validators", folder)
    # mlcroissant imports it for paths in JSON; it has no wheel.
    (folder / "jsonpath_rw.py").write_text("lexer = None\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_validators_accept_the_descriptions(
    exported: tuple[str, Path], connection: sqlite3.Connection, libraries: Path
) -> None:
    """Frictionless reads every row of CSV by its types and keys, and Croissant's own
    library reads rows of both formats.
    """
    form, folder = exported
    environment = os.environ | {"PYTHONPATH": str(libraries)}
    results = []

    for script in (FRICTIONLESS, CROISSANT):
        command = [sys.executable, "-c", script, str(folder), form]
        result = completed(command, env=environment, cwd=folder)
        assert result.returncode == 0, result.stderr[-2000:]
        results.append(result.stdout)

    (count,) = connection.execute("SELECT count(*) FROM releases").fetchone()
    assert int(results[-1].split()[-1]) == count


def test_compressed_files_have_no_time(exported: tuple[str, Path]) -> None:
    """Else each export would have other bytes."""
    form, folder = exported
    if form == "csv":
        with gzip.open(folder / "specs.csv.gz") as file:
            file.read(1)
            assert not file.mtime
