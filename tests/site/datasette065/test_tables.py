"""Datasette's table, row and query pages as this site writes them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from datasette import app, utils
from markupsafe import Markup

from spack_cache_db.site.datasette065 import table_body, tilde_encode
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
async def test_pages_are_datasettes_own(datasette: Any, stock: Any, address: str) -> None:
    """Pages of tables and rows say what Datasette's own templates say, in its order."""
    ours, theirs = [await each.client.get(address) for each in (datasette, stock)]

    assert ours.status_code == theirs.status_code == 200
    assert _squeezed(ours.text) == _squeezed(theirs.text)


def _squeezed(html: str) -> str:
    """Leave out blanks between elements, the way to the rows, and how long the queries took."""
    html = re.sub(r'<a class="skip".*?</a>| id="rows" tabindex="-1"', "", html)
    return re.sub(r"\s*(<[^>]*>)\s*", r"\1", re.sub(r"Queries took [\d.]+ms", "", html))


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
