"""Files that queries are asked over, as the site opens them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.queries.asking import connected


@pytest.fixture(scope="session")
def samples(samples_file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database of the five sample pages, as the site has it."""
    yield from connected(samples_file)


@pytest.fixture(scope="session")
def real_index(real_index_file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database of a real index, as the site has it."""
    yield from connected(real_index_file)
