"""The schema: a built database is as it is declared and described."""

import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from itertools import chain
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.find_table import find_table
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.find import find, found_rows
from spack_cache_db.query.match.candidates import Candidates
from spack_cache_db.query.open.lookups import descriptions, read_lookups
from spack_cache_db.query.rows import csv_text
from spack_cache_db.schema import full_text, identity
from spack_cache_db.schema import tables as tables_module
from spack_cache_db.schema import views as views_module
from spack_cache_db.sources.pages.json_values import SpecDetail
from tests.conftest import Build
from tests.every_kind import MODULES, write_every_kind
from tests.metadata import DATABASE
from tests.package_data import REAL as PACKAGE_DATA
from tests.pagetexts import page, spec, write

TYPES = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}
"""The types of SQLite by those of the schema."""

WITHOUT_VALUES = {"module_tree"}
"""The columns that no value fills in the sources of these tests."""

SINGULARS = {"operating_systems": "os", "tarball_prefixes": "tarball_prefix"}
"""The word for a row, if it is not the name of the table without its last letter."""

ROLES = {
    "build_spec_id": "build_spec",
    "dependency_id": "dependency",
    "first_mirror_id": "first_mirror",
    "last_mirror_id": "last_mirror",
    "newest_version_id": "newest_version",
    "previous_release_id": "previous_release",
}
"""The words of columns that are named after what the row is for."""


def pragma(
    connection: sqlite3.Connection, name: str, *table: str
) -> list[dict[str, Any]]:
    """Return the rows of a PRAGMA as dictionaries."""
    cursor = connection.execute(f"PRAGMA {name}" + (f"([{table[0]}])" if table else ""))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def test_each_table_is_as_declared(samples: sqlite3.Connection) -> None:
    """Columns in order, their types, NULLs, primary key and foreign keys; no index is
    double.
    """
    for table in tables_module.TABLES:
        columns = pragma(samples, "table_info", table.name)
        assert [(column["name"], column["type"]) for column in columns] == [
            (column.name, TYPES[column.type]) for column in table.columns
        ]
        keys = sorted(
            (column["pk"], column["name"]) for column in columns if column["pk"]
        )
        assert tuple(name for _, name in keys) == table.primary_key
        assert {column["name"] for column in columns if column["notnull"]} == {
            column.name
            for column in table.columns
            if not column.nullable and column.name != "id"
        }
        foreign = pragma(samples, "foreign_key_list", table.name)
        assert {(key["from"], key["table"]) for key in foreign} == {
            (column.name, column.references)
            for column in table.columns
            if column.references
        }
        indexes = [table.primary_key, *table.unique, *table.indexes]
        assert len(indexes) == len(set(indexes)), table.name


@pytest.fixture(scope="module")
def everything(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[sqlite3.Connection]:
    """A small database of sources of every kind, and of two snapshots that replace
    hashes.
    """
    folder = tmp_path_factory.mktemp("everything")
    sources = write_every_kind(folder / "in")
    history = write(
        folder / "history",
        older=page("history", "develop-2025-02-01", [spec(7)]),
        newer=page("history", "develop-2025-02-02", [spec(8, size="9")]),
    )
    paths = [sources, history, PACKAGE_DATA]
    build(paths, folder / "x.db", keep_going=True, modules=[sources / MODULES])
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        yield connection


def every_column(connection: sqlite3.Connection) -> Iterator[tuple[str, str, set[str]]]:
    """Yield each table and view, its columns, and their types: declared ones of tables,
    and those of the values of views, without NULL.
    """
    for table in tables_module.TABLES:
        for declared in table.columns:
            yield table.name, declared.name, {TYPES[declared.type].lower()}
    for view in views_module.VIEWS:
        for column in pragma(connection, "table_info", view):
            name = column["name"]
            sql = f"SELECT DISTINCT typeof([{name}]) FROM [{view}] WHERE [{name}] IS NOT NULL"
            yield view, name, {type_name for (type_name,) in connection.execute(sql)}


def test_no_column_name_has_two_types(everything: sqlite3.Connection) -> None:
    """Neither in tables nor in views: who knows `release` of one knows that of all."""
    types: dict[str, dict[str, list[str]]] = {}

    for name, column, found in every_column(everything):
        # A column without a value would prove nothing.
        assert found or column in WITHOUT_VALUES, (name, column)
        for type_name in found:
            types.setdefault(column, {}).setdefault(type_name, []).append(name)
    assert [found for found in types.values() if len(found) > 1] == []


def test_an_id_is_called_an_id(everything: sqlite3.Connection) -> None:
    """A column ends in `_id` exactly if it is the number of a row; it is named after
    that row's table.
    """
    for _, name, found in every_column(everything):
        if name.endswith("_id"):
            assert found <= {"integer"}, name
    for table in tables_module.TABLES:
        for column in table.columns:
            is_id = column.name.endswith("_id")
            assert is_id == (column.references is not None), (table.name, column.name)
            if column.references is not None:
                singular = SINGULARS.get(column.references, column.references[:-1])
                expected = ROLES.get(column.name, singular)
                assert column.name == f"{expected}_id", (table.name, column.name)


def test_the_word_for_a_name_is_no_number(everything: sqlite3.Connection) -> None:
    """A condition with a name on a table is an error and not an empty answer."""
    with pytest.raises(sqlite3.OperationalError, match="no such column: package"):
        everything.execute("SELECT * FROM configurations WHERE package = 'hdf5'")
    for view in ("facet_counts", "release_counts", "configuration_releases"):
        sql = f"SELECT 1 FROM {view} WHERE release = 'develop'"
        assert everything.execute(sql).fetchone(), view


def test_each_last_day_has_is_current_beside_it(everything: sqlite3.Connection) -> None:
    """A branch has no day, so `last_seen` alone does not say that it is gone."""
    with_days = set()

    for name in [table.name for table in tables_module.TABLES] + list(
        views_module.VIEWS
    ):
        columns = [column["name"] for column in pragma(everything, "table_info", name)]
        if "last_seen" in columns:
            with_days.add(name)
            assert columns[columns.index("last_seen") + 1] == "is_current", name
    assert {"packages", "configurations", "specs", "builds"} < with_days


def test_no_table_or_view_is_there_that_the_schema_does_not_name(
    samples: sqlite3.Connection,
) -> None:
    """SQLite's own are not counted."""
    rows = samples.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')"
    )
    found = {
        row
        for row in rows
        if not row[1].startswith("sqlite_") and "_fts_" not in row[1]
    }
    tables = [table.name for table in tables_module.TABLES] + list(full_text.FULL_TEXT)
    views = {("view", name) for name in views_module.VIEWS}

    assert found == {("table", name) for name in tables} | views


def test_a_foreign_key_that_a_page_facets_has_an_index(
    samples: sqlite3.Connection,
) -> None:
    """A facet links to the rows of each value: they must be found without reading the
    table.
    """
    for table in tables_module.TABLES:
        faceted = set(DATABASE["tables"].get(table.name, {}).get("facets", []))
        keys = {column.name for column in table.columns if column.references}
        indexes = pragma(samples, "index_list", table.name)
        first = {
            pragma(samples, "index_info", index["name"])[0]["name"] for index in indexes
        }
        assert faceted & keys <= {*first, table.primary_key[0]}, table.name


def test_a_database_has_a_type_and_a_version(samples: sqlite3.Connection) -> None:
    """Its type, its schema version and its page size are fixed."""
    for name, value in (
        ("application_id", identity.APPLICATION_ID),
        ("user_version", identity.SCHEMA_VERSION),
        ("page_size", identity.PAGE_SIZE),
    ):
        assert samples.execute(f"PRAGMA {name}").fetchone() == (value,)
    assert identity.APPLICATION_ID.to_bytes(4, "big") == b"SPDB"


def test_other_statements_are_another_schema(samples: sqlite3.Connection) -> None:
    """A changed table or view needs another `SCHEMA_VERSION` and checksum."""
    found = identity.statements_sha256(
        samples.execute("SELECT name, sql FROM sqlite_master")
    )
    assert found == identity.STATEMENTS_SHA256


def test_tables_and_views_have_rows(
    all_sources: sqlite3.Connection, real_tree: sqlite3.Connection
) -> None:
    """Pages of each era and mirrors of five versions of Spack fill all that there is to
    fill.
    """
    # No two releases of these sources have the same configuration with other hashes.
    without = {"replaced_configurations"}
    # Contradictions, options, data of all packages, installations and their modules,
    # and the file for Repology fill these.
    without |= {
        "package_licenses",
        "package_tags",
        "known_licenses",
        "known_tags",
        "problems",
        "recipes",
        "providers",
        "installs",
        "modules",
        "document_listings",
    }

    for name in {
        *views_module.VIEWS,
        *(table.name for table in tables_module.TABLES),
    } - without:
        database = real_tree if name == "installations" else all_sources
        assert database.execute(f"SELECT 1 FROM {name}").fetchone(), name


def test_every_column_is_described(samples: sqlite3.Connection) -> None:
    """A database describes each of its tables, and then their columns in order; nothing
    else.
    """
    described = descriptions(samples)
    tables = {table.name for table in tables_module.TABLES}

    assert described.keys() == tables | set(views_module.VIEWS) | set(
        full_text.FULL_TEXT
    )
    for name, texts in described.items():
        read = samples.execute(f"SELECT * FROM [{name}] LIMIT 0")
        assert list(texts) == [None, *(column[0] for column in read.description)], name
        assert all(text.strip() for text in texts.values()), name


def test_every_description_is_of_a_column(samples: sqlite3.Connection) -> None:
    """No text is of a column that has gone, or repeats the one that is common to all
    tables.
    """
    source = files("spack_cache_db.schema").joinpath("descriptions.toml")
    texts = tomllib.loads(source.read_text(encoding="utf-8"))
    columns = {
        name: set(described) for name, described in descriptions(samples).items()
    }
    common = texts["columns"].pop("common")

    assert {*common, *texts["derived"]} <= set(chain.from_iterable(columns.values()))
    for table, own in texts["columns"].items():
        assert own.keys() <= columns[table], table
        assert not own.items() & common.items(), table

    sql = 'SELECT coalesce("column", \'\'), derived FROM column_descriptions WHERE "table" = ?'
    derived = dict(samples.execute(sql, ["builds"]))
    assert (derived["hash"], derived["release_count"], derived[""]) == (0, 1, None)


def test_options_name_columns_that_exist(samples: sqlite3.Connection) -> None:
    """Labels, sort orders, facets and search keys name columns of their table."""
    columns = {
        name: set(described) for name, described in descriptions(samples).items()
    }

    for name, table in DATABASE["tables"].items():
        options = [
            table.get(option)
            for option in ("label_column", "sort", "sort_desc", "fts_pk")
        ]
        options += [*table.get("facets", []), *table.get("sortable_columns", [])]
        assert {column for column in options if column} <= columns[name], name


def test_every_field_of_a_configuration_has_a_column() -> None:
    """In the order of the record, each with the table that names its values."""
    assert tuple(tables_module.CONFIGURATION) == Configuration._fields


OF_A_LISTING = {"hash", "stacks", "size", "tarball"}
"""The fields of a detail that do not belong to the configuration."""


@pytest.mark.parametrize(
    "field", sorted(set(SpecDetail.__struct_fields__) - OF_A_LISTING)
)
def test_specs_that_differ_in_one_field_are_two_wherever_they_are_shown(
    field: str, built: Build
) -> None:
    """In what is found, as data and as a table, where it is asked why, and in the
    views.
    """
    value: Any = {"versions": ["2.0"], "variants": ["+x"]}.get(field, "other")
    connection = built(a=page(specs=[spec(1), spec(2, **{field: value})]))
    found = find(connection, "zlib")

    assert len({answer.configuration for answer in found}) == 2

    rows = found_rows(found, hashes=False)
    assert len(set(map(repr, rows.records))) == 2
    for lines in (csv_text(rows).splitlines(), list(find_table(found, hashes=False))):
        assert lines[-2] != lines[-1]

    candidates = Candidates(read_lookups(connection))
    configurations = map(candidates.configuration, candidates.rows("zlib"))
    assert set(configurations) == {answer.configuration for answer in found}
    for view in ("builds", "build_listings", "host_builds WHERE host = 'zen3'"):
        cursor = connection.execute(f"SELECT * FROM {view}")
        names = [name for name, *_ in cursor.description]
        shown = set()
        for row in cursor:
            cells = dict(zip(names, row, strict=True))
            del cells["hash"]
            shown.add(tuple(cells.values()))
        assert len(shown) == (
            1 if field == "target" and view.startswith("host") else 2
        ), view
