"""records: what every room knows is plain, quick to load, and sorts by what it says."""

from __future__ import annotations

from typing import Any

import pytest

from spack_cache_db.cli.find import find_table
from spack_cache_db.query import csv_text
from spack_cache_db.query.answers import find, found_rows
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.selection import Candidates
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.sources.pages import SpecDetail
from tests.conftest import Build
from tests.pagetexts import page, spec


def test_every_field_of_a_configuration_has_a_column() -> None:
    """In the order of the record, each with the table that names its values."""
    assert tuple(CONFIGURATION) == Configuration._fields


OF_A_LISTING = {"hash", "stacks", "size", "tarball"}
"""The fields of a detail that do not belong to the configuration."""


@pytest.mark.parametrize("field", sorted({*SpecDetail.__struct_fields__} - OF_A_LISTING))
def test_specs_that_differ_in_one_field_are_two_wherever_they_are_shown(
    field: str, built: Build
) -> None:
    """In what is found, as data and as a table, where it is asked why, and in the views."""
    value: Any = {"versions": ["2.0"], "variants": ["+x"]}.get(field, "other")
    connection = built(a=page(specs=[spec(1), spec(2, **{field: value})]))
    found = find(connection, "zlib")

    assert len({each.configuration for each in found}) == 2
    shown_rows = found_rows(found, hashes=False)
    one, two = shown_rows.records
    assert one != two
    for lines in (csv_text(shown_rows).splitlines(), find_table(found, hashes=False)):
        *_, last, another = lines
        assert last != another
    candidates = Candidates(read_lookups(connection))
    rows = map(candidates.configuration, candidates.rows("zlib"))
    assert {*rows} == {each.configuration for each in found}
    for view in ("builds", "build_listings", "host_builds WHERE host = 'zen3'"):
        cursor = connection.execute(f"SELECT * FROM {view}")
        names = [name for name, *_ in cursor.description]
        shown = {
            tuple(cell for name, cell in zip(names, row, strict=True) if name != "hash")
            for row in cursor
        }
        assert len(shown) == (1 if field == "target" and view.startswith("host") else 2), view
