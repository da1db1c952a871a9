"""Lists, suggestions, and what is found as data."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from spack_cache_db.site import routes
from spack_cache_db.site.answers import Site
from tests.commands import run
from tests.site.addresses import get
from tests.site.conftest import asked_of

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
@pytest.mark.parametrize("spec", ["hdf5", "hdf5@1.10: +mpi", "*", "/" + "d" * 7, "%gcc@13"])
@pytest.mark.parametrize("end", ["json", "csv"])
async def test_found_as_on_the_command_line(
    datasette: Any, database: Path, spec: str, end: str
) -> None:
    """`/find.json` and `/find.csv` are what `find --json` and `find --csv` print."""
    answer = await get(datasette, f"/find.{end}?q={quote(spec)}")
    printed = run("find", spec, database, f"--{end}").stdout

    assert answer.status_code == 200
    assert answer.text.rstrip("\n") == printed.rstrip("\n")
    assert len(answer.text.splitlines()) > 1


@pytest.mark.asyncio
async def test_nothing_found_is_no_fault(datasette: Any) -> None:
    """Without rows the answer is an empty array, and CSV has its heading."""
    nothing = await get(datasette, "/find.json?q=hdf5@99")
    assert nothing.status_code == nothing.json()["status"] == 404
    assert "no version 99 of hdf5: newest " in nothing.json()["error"]
    assert (await get(datasette, "/find.csv?q=hdf5@99")).text.startswith("Error: no binary in this")


@pytest.mark.parametrize("end", ["json", "csv"])
@pytest.mark.parametrize("spec", ["*", "hdf5", "nothing"])
def test_parts_are_the_whole(
    own_site: Site, monkeypatch: pytest.MonkeyPatch, spec: str, end: str
) -> None:
    """However many configurations are sent at once, the response is the same."""
    whole = asked_of(own_site, f"/find.{end}?q={spec}")
    for number in (1, 2, 5, 11, 12, 13):
        monkeypatch.setattr(routes, "FOUND_AT_ONCE", number)
        assert asked_of(own_site, f"/find.{end}?q={spec}") == whole


@pytest.mark.asyncio
async def test_suggestions(datasette: Any) -> None:
    """What is typed gets names that have it, whatever they are of, and nothing for nothing."""
    assert (await get(datasette, "/suggest.json?q=e4s-")).json() == [
        {"name": "e4s-arm", "kind": "stack"}
    ]
    assert (await get(datasette, "/suggest.json")).json() == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("/packages?sort=specs&q=t", 4),
        ("/packages?release=develop&stack=e4s&host=zen3", 5),
        ("/packages?compiler=gcc&os=rhel8", 1),
        ("/packages?target=aarch64:", 1),
        ("/releases?kind=snapshot", 2),
        ("/stacks", 3),
    ],
)
async def test_a_list_can_be_taken(datasette: Any, path: str, rows: int) -> None:
    """The links below a list lead to its rows as JSON and CSV, in its order, with its values."""
    page = (await get(datasette, path)).text
    names = re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', page)
    links = re.findall(r'href="(/\w+\.(?:json|csv)[^"]*)"', page)
    as_json, as_csv = [await get(datasette, html.unescape(each)) for each in links]

    assert [row["name"] for row in as_json.json()] == names
    assert len(names) == rows
    assert [*csv.DictReader(io.StringIO(as_csv.text))] == [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in as_json.json()
    ]


@pytest.mark.asyncio
async def test_a_list_of_what_is_not_there_is_refused(datasette: Any) -> None:
    """Data of a release or target that the file lacks is an error, and not that of all."""
    for asked in ("release=v9", "stack=x", "host=zen9", "target=zen9", "compiler=icc", "os=beos"):
        assert (await get(datasette, f"/packages.json?{asked}")).status_code == 400
