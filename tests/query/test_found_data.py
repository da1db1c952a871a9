"""query.found_data: what is printed for programs."""

from __future__ import annotations

import csv
import io
import json

import pytest

from spack_cache_db.query.found_data import as_csv, as_json
from tests.cli.test_find_table import FOUND


@pytest.mark.parametrize("hashes", [False, True])
def test_json_and_csv_have_the_same_rows(hashes: bool) -> None:
    """One object or line for each configuration or spec, with the same columns in one order."""
    objects = json.loads(as_json(FOUND, hashes))
    lines = [*csv.DictReader(io.StringIO(as_csv(FOUND, hashes)))]

    assert len(objects) == len(lines) == (4 if hashes else 2)
    for each, line in zip(objects, lines, strict=True):
        assert [*each] == [*line]
        assert line == {
            key: " ".join(value) if isinstance(value, list) else str(value or "")
            for key, value in each.items()
        }
