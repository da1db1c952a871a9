"""What is counted of a second kind of source, held against plain Python."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings

from spack_cache_db import sources
from spack_cache_db.build import build
from tests.second_source.counts import counted, expected
from tests.second_source.inputs import INPUTS, Input, write


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(whole=INPUTS)
def test_every_count_is_that_of_plain_python(
    whole: Input, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Listings that several documents share count once; specs that none lists count nowhere."""
    folder = tmp_path_factory.mktemp("second")
    build([str(write(folder / "in", whole))], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    found = counted(connection)
    connection.close()
    for name, rows in expected(whole).items():
        assert found[name] == rows, name


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(whole=INPUTS)
def test_the_division_into_units_does_not_matter(
    whole: Input, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same bytes, and the same under other names of the folder."""
    folder = tmp_path_factory.mktemp("units")
    one, two = write(folder / "in", whole), write(folder / "other", whole)
    build([str(one)], folder / "x.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "ENTRIES_PER_UNIT", 1)
        build([str(two)], folder / "y.db")
    assert (folder / "x.db").read_bytes() == (folder / "y.db").read_bytes()
