"""Datasette's table, row and query pages as this site writes them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from datasette import app, utils
from datasette.utils import CustomRow
from datasette.views import table as tables
from markupsafe import Markup

from spack_cache_db.site.datasette065 import displayed, table_body, tilde_encode
from tests.paths import ROOT
from tests.site.cache import HOSTILE
from tests.site.conftest import site

OURS = ("_table.html",)
THEIRS = Path(app.__file__).parent / "templates"
ADDRESSES = (
    "/spack-cache/configurations",
    "/spack-cache/configurations?_sort_desc=spec_count&_size=3",
    "/spack-cache/configurations?_search=hdf5&_facet=platform",
    "/spack-cache/configurations?_search=nothing-has-this",
    "/spack-cache/configurations/1",
    "/spack-cache/listings?_size=2",
    "/spack-cache/builds?package=hdf5",
    "/spack-cache/variants",
    "/spack-cache/problems",
)


@pytest.fixture(scope="module")
def stock(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same site, but with Datasette's own templates for tables, rows and queries."""
    folder = tmp_path_factory.mktemp("stock") / "templates"
    shutil.copytree(ROOT / "templates", folder)
    for name in OURS:
        shutil.copy(THEIRS / name, folder)
    return site(database, templates=folder)


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("address", ADDRESSES)
async def test_pages_are_datasettes_own(
    datasette: Any, stock: Any, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Pages of tables and rows say what Datasette itself says, in its order."""
    ours = await datasette.client.get(address)
    monkeypatch.setattr(tables, "display_columns_and_rows", tables.datasettes_own)
    theirs = await stock.client.get(address)

    assert ours.status_code == theirs.status_code == 200
    assert _squeezed(ours.text) == _squeezed(theirs.text)


def _squeezed(html: str) -> str:
    """Leave out blanks between elements, the way to the rows, and how long the queries took."""
    html = re.sub(r'<a class="skip".*?</a>| id="rows" tabindex="-1"', "", html)
    return re.sub(r"\s*(<[^>]*>)\s*", r"\1", re.sub(r"Queries took [\d.]+ms", "", html))


VALUES = (
    *(None, "", 0, 1, -1, 1.5, "text", " ", HOSTILE, "x" * 300, b"", b"bytes", "hdf5"),
    *("https://a.example/<b>", " http://a.example/b ", "http://a.example/b c", "see http://a"),
    *(f"https://a.example/{'x' * 300}.tar.gz", f"https://a.example/{'x' * 300}"),
    *({"value": 1, "label": each} for each in (1, "1", "", HOSTILE, "gcc@13")),
    {"value": "a/b <c>", "label": "a"},
)


@pytest.mark.asyncio
@pytest.mark.parametrize("truncated", [0, 200])
@pytest.mark.parametrize("table", ["configurations", "listings", "builds", "packages"])
async def test_cells_are_datasettes_own(datasette: Any, table: str, truncated: int) -> None:
    """Of any value the cell is the one that Datasette itself would make."""
    await datasette.invoke_startup()
    file = datasette.get_database("spack-cache")
    columns = await file.table_columns(table)
    foreign = {each["column"] for each in await file.foreign_keys_for_table(table)}
    rows = [
        CustomRow(
            columns,
            {
                each: "text" if isinstance(value, dict) and each not in foreign else value
                for each in columns
            },
        )
        for value in VALUES
        # Of bytes in a view Datasette makes an error.
        if table != "builds" or not isinstance(value, bytes)
    ]
    keys = await file.primary_keys(table)
    given = (datasette, "spack-cache", table, [(each,) for each in columns], rows)
    options: dict[str, Any] = {
        "link_column": bool(keys),
        "truncate_cells": truncated,
        "sortable_columns": set(),
    }

    ours, theirs = [await each(*given, **options) for each in (displayed, tables.datasettes_own)]

    assert ours[0] == theirs[0]
    assert [row.cells for row in ours[1]] == [row.cells for row in theirs[1]]


def test_values_are_escaped() -> None:
    """A value is text unless Datasette, or a hook, made it HTML."""
    rows = [
        [{"column": "a b", "value_type": "str", "value": HOSTILE}],
        [{"column": "a b", "value_type": "str", "value": Markup("<b>1</b>")}],
    ]

    body = table_body(rows)

    assert HOSTILE not in body
    assert "<b>1</b>" in body
    assert body.count('class="col-a-b-') == 2


def test_no_rows() -> None:
    """Of no rows there is nothing."""
    assert table_body([]) == ""


@pytest.mark.parametrize("text", ["", "variant_sets", "x-1", "a/b", "a b", "~", "ü", "1.2", "٣"])
def test_addresses_are_encoded_as_datasette_does(text: str) -> None:
    """What needs no encoding is told from what does."""
    assert tilde_encode(text) == "".join(map(utils._tilde_encoder, text.encode()))
