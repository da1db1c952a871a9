"""Metadata that is not copied means what it meant."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.datasette065 import share_databases
from tests.site.conftest import metadata, site


def test_a_copy_is_the_same() -> None:
    """The copy of what the metadata says of a database is that itself, and equals the original."""
    databases = {"a": {"tables": {"t": {"columns": {"c": "text"}}}}, "b": None}
    original = copy.deepcopy(databases)

    share_databases(databases)

    assert databases == original
    assert copy.deepcopy(databases)["a"] is databases["a"]


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_closed_table_stays_closed(database: Path) -> None:
    """A table that the metadata closes stays closed, the others open, the metadata as it was."""
    described = metadata()
    described["databases"]["spack-cache"]["tables"]["pages"]["allow"] = False
    served = site(database, described)

    asked = ["pages", "specs", "pages", "specs"]
    found = [(await served.client.get(f"/spack-cache/{name}")).status_code for name in asked]

    assert found == [403, 200, 403, 200]
    tables: Any = served.metadata("tables", database="spack-cache")
    assert tables["pages"]["allow"] is False
    assert "allow" not in tables["specs"]
