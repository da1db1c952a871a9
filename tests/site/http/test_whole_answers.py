"""No answer is cut in silence: all rows of one that has many come, page by page."""

import asyncio
import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from spack_cache_db.site.http import own_pages
from spack_cache_db.site.http.own_pages import run_page
from tests.site.conftest import SQL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Time enough for our own pages on the slowest of machines: these tests are about
    rows.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_pages, "PAGE_SECONDS", 60.0)
        yield


NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {}) SELECT x FROM n"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "query",
    [
        "",
        "?_size=max",
        "?_stream=",
        "?_size=2&_size=max",
        "?_sort=name",
        "?name__not=zlib",
    ],
)
async def test_csv_of_a_table_has_all_rows(query: str, many: Any) -> None:
    """However it is asked for; who names a number of rows gets so many."""
    table = "/spack-cache/packages"
    counted = await many.client.get(f"{table}.json{query or '?'}&_size=0&_extra=count")
    total = counted.json().get("count") or counted.json().get(
        "filtered_table_rows_count"
    )
    rows = (await many.client.get(f"{table}.csv{query}")).text.splitlines()

    assert len(rows) - 1 == total > 1_000

    part = (await many.client.get(f"{table}.csv?_size=7")).text.splitlines()
    assert len(part) == 8


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("", ""),
        ("?_sort_desc=package", "ORDER BY package DESC"),
        ("?version__not=9", "WHERE version != '9'"),
    ],
)
async def test_csv_of_a_view_has_the_rows_of_sql(
    query: str, where: str, many: Any
) -> None:
    """In the same order, each once: its parts go on where the one before ended."""
    file = sqlite3.connect(many.get_database("spack-cache").path)
    expected = [str(row[0]) for row in file.execute(f"SELECT hash FROM builds {where}")]
    file.close()
    found = (await many.client.get(f"/spack-cache/builds.csv{query}")).text.splitlines()

    assert [line.partition(",")[0] for line in found[1:]] == expected
    assert len(expected) > 1_000


@pytest.mark.asyncio(loop_scope="session")
async def test_sql_without_a_place_for_a_sign_has_all_rows(many: Any) -> None:
    """CSV and bare rows: all of them, or a refusal with the reason; JSON says that rows
    are cut.
    """

    def asked(number: int) -> dict[str, str]:
        return {"sql": NUMBERS.format(number)}

    csv_rows = (
        await many.client.get(f"{SQL}.csv", params=asked(5_000))
    ).text.splitlines()
    streamed = await many.client.get(
        f"{SQL}.csv", params=asked(5_000) | {"_stream": "on"}
    )
    bare = await many.client.get(
        f"{SQL}.json", params=asked(5_000) | {"_shape": "array"}
    )
    told = await many.client.get(f"{SQL}.json", params=asked(5_000))
    for more in ({}, {"_stream": "on"}):
        refused = await many.client.get(f"{SQL}.csv", params=asked(30_000) | more)
        assert refused.status_code == 400
        assert "25,000 cells" in refused.text

    assert len(csv_rows) == len(streamed.text.splitlines()) == 5_001
    assert len(bare.json()) == 5_000
    assert told.json()["truncated"] is True


def rows_of(response: Any, address: str) -> int | None:
    """Return how many rows a response has; None if it says that there are more."""
    if ".csv" in address:
        return len(list(csv.DictReader(io.StringIO(response.text))))
    if "_nl=on" in address:
        return len([json.loads(line) for line in response.text.splitlines()])
    found = response.json()
    if not isinstance(found, dict) or "truncated" not in found:
        return len(found)
    return None if found["truncated"] else len(found["rows"])


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("_shape=array", 1_100),
        ("_shape=array&_size=max", 1_100),
        ("_shape=array&_nl=on", 1_100),
        ("_shape=arrayfirst", 1_100),
        ("_shape=array&_sort_desc=hash", 1_100),
        ("_shape=array&_size=7", 7),
        ("_shape=array&_next=1000&_size=max", 100),
        ("_shape=objects", None),
        ("_size=max", None),
        ("_size=max&_next=1000", 100),
    ],
)
async def test_json_of_a_view_is_whole_unless_a_part_is_asked_for(
    query: str, rows: int | None, many: Any
) -> None:
    """Rows alone come all and once; an object says whether there are more; parts have a
    link.
    """
    address = f"/spack-cache/builds.json?package=zlib&{query}"
    response = await many.client.get(address)

    assert rows_of(response, address) == rows
    assert ("next" in response.headers.get("link", "")) is (rows in (None, 7))
    if rows == 1_100 and "arrayfirst" not in query and "_nl" not in query:
        assert len({row["hash"] for row in response.json()}) == rows


@pytest.mark.asyncio(loop_scope="session")
async def test_rows_that_end_early_break_the_connection(
    many: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that cannot be read leaves no response that looks whole, in JSON or
    CSV.
    """
    messages: list[dict[str, Any]] = []

    async def keep(message: dict[str, Any]) -> None:
        messages.append(message)

    requests = iter([{"type": "http.request"}])

    async def receive() -> dict[str, Any]:
        if (request := next(requests, None)) is None:
            await asyncio.Event().wait()
        return request or {}

    app = many.app()
    calls: list[int] = []

    async def failing(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return await run_page(*arguments)

    monkeypatch.setattr(own_pages, "run_page", failing)
    scope = {"type": "http", "method": "GET", "headers": [], "http_version": "1.1"}
    path = {"path": "/find.json", "raw_path": b"/find.json", "query_string": b"q=*"}
    await app({**scope, **path}, receive, keep)

    assert messages[0]["status"] == 200
    assert messages[-1]["more_body"]
