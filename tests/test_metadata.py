"""The real metadata.yml, on the real Datasette, over the sample pages."""

from __future__ import annotations

import sqlite3
import tomllib
from importlib.resources import files
from itertools import chain

from spack_cache_db.query.database import descriptions
from spack_cache_db.schema import FULL_TEXT, TABLES, VIEWS
from tests.metadata import DATABASE


def test_every_column_is_described(samples: sqlite3.Connection) -> None:
    """A database describes each of its tables, and then their columns in order; nothing else."""
    described = descriptions(samples)

    assert described.keys() == {table.name for table in TABLES} | {*VIEWS} | {*FULL_TEXT}
    for name, texts in described.items():
        read = samples.execute(f"SELECT * FROM [{name}] LIMIT 0")
        assert [*texts] == [None, *(column[0] for column in read.description)], name
        assert all(text.strip() for text in texts.values()), name


def test_every_description_is_of_a_column(samples: sqlite3.Connection) -> None:
    """No text is left of a column that has gone, and none repeats what is said in common."""
    source = files("spack_cache_db.schema").joinpath("descriptions.toml")
    texts = tomllib.loads(source.read_text(encoding="utf-8"))
    columns = {name: {*described} for name, described in descriptions(samples).items()}
    common = texts["columns"].pop("common")

    assert {*common, *texts["derived"]} <= {*chain.from_iterable(columns.values())}
    for table, own in texts["columns"].items():
        assert own.keys() <= columns[table], table
        assert not own.items() & common.items(), table


def test_computed_columns_are_told_apart(samples: sqlite3.Connection) -> None:
    """Counts and days are derived, hashes are not, and tables are neither."""
    derived = dict(
        samples.execute(
            """SELECT coalesce("column", ''), derived FROM column_descriptions """
            """WHERE "table" = 'builds'"""
        )
    )
    assert (derived["hash"], derived["release_count"], derived[""]) == (0, 1, None)


def test_options_name_columns_that_exist(samples: sqlite3.Connection) -> None:
    """Labels, sort orders, facets and search keys name columns of their table."""
    columns = {name: {*described} for name, described in descriptions(samples).items()}
    for name, table in DATABASE["tables"].items():
        named = [table.get(option) for option in ("label_column", "sort", "sort_desc", "fts_pk")]
        named += [*table.get("facets", []), *table.get("sortable_columns", [])]
        assert {column for column in named if column} <= columns[name], name
