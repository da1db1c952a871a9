"""Files that queries are asked over, as the site opens them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from spack_cache_db.site.sandbox import sql_functions
from tests.conftest import Build
from tests.queries.asking import connected


@pytest.fixture(scope="session")
def samples(samples_file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database of the five sample pages, as the site has it."""
    yield from connected(samples_file)


@pytest.fixture(scope="session")
def real_index(real_index_file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database of a real index, as the site has it."""
    yield from connected(real_index_file)


@pytest.fixture
def built(built: Build) -> Build:
    """Build pages, given as keyword=bytes, and connect as the site does."""

    def make(**pages: bytes) -> sqlite3.Connection:
        connection = built(**pages)
        sql_functions.register(connection)
        return connection

    return make


@pytest.fixture(scope="session")
def all_sources(all_sources: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to the database of all samples, as the site has it."""
    sql_functions.register(all_sources)
    return all_sources
