"""No answer is cut in silence: all rows of one that has many come, page by page."""

from __future__ import annotations

import csv
import io
import sqlite3
from typing import Any

import pytest

from tests.many import (
    EVERY_ANSWER,
    EVERY_DEPENDENCY_ANSWER,
    EVERY_PACKAGE_ANSWER,
    MANY,
    build_many_dependencies,
    build_many_packages,
)
from tests.queries.asking import DEPENDENCY_QUERIES, PACKAGE_QUERIES, QUERIES
from tests.site.conftest import SQL, site

pytestmark = pytest.mark.slow

EVERY_WHOLE = EVERY_ANSWER | EVERY_DEPENDENCY_ANSWER | EVERY_PACKAGE_ANSWER


@pytest.fixture(scope="module")
def asked(many: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The site that has many rows for a query: that of its file."""
    of_dependencies = site(build_many_dependencies(tmp_path_factory.mktemp("many")))
    of_packages = site(build_many_packages(tmp_path_factory.mktemp("packages")))
    return (
        dict.fromkeys(EVERY_ANSWER, many)
        | dict.fromkeys(EVERY_DEPENDENCY_ANSWER, of_dependencies)
        | dict.fromkeys(EVERY_PACKAGE_ANSWER, of_packages)
    )


def test_no_query_is_left_out() -> None:
    """The test below asks each."""
    assert EVERY_ANSWER.keys() == QUERIES.keys()
    assert EVERY_DEPENDENCY_ANSWER.keys() == set(DEPENDENCY_QUERIES)
    assert EVERY_PACKAGE_ANSWER.keys() == set(PACKAGE_QUERIES)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("query", EVERY_WHOLE)
@pytest.mark.parametrize("form", ["json", "csv"])
async def test_no_answer_is_cut_in_silence(query: str, form: str, asked: dict[str, Any]) -> None:
    """Page by page all rows come; the last row of all pages but the last names the next."""
    params, total, keys = EVERY_WHOLE[query]
    found: list[dict[str, Any]] = []
    for number in ("", "2"):
        response = await asked[query].client.get(
            f"/spack-cache/{query}.{form}", params=params | {"page": number, "_shape": "array"}
        )
        assert response.status_code == 200, response.text
        text = response.text
        answer = response.json() if form == "json" else list(csv.DictReader(io.StringIO(text)))
        if number == "":
            last = answer.pop()
            of = "" if total is None else f" of {total}"
            assert last.pop("error") == f"row 1000{of} is on page 2"
            assert not any(last.values())
            assert len(answer) == 999
        assert not any(row["error"] for row in answer)
        found += answer
    assert len(found) == len({tuple(map(row.get, keys)) for row in found}) == (total or MANY)


NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {}) SELECT x FROM n"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "query",
    ["", "?_size=max", "?_stream=on", "?_stream=&_size=max", "?_sort=name", "?name__not=zlib"],
)
async def test_csv_of_a_table_has_all_rows(query: str, many: Any) -> None:
    """However it is asked for; who names a number of rows gets so many."""
    table = "/spack-cache/packages"
    counted = await many.client.get(f"{table}.json{query or '?'}&_size=0&_extra=count")
    total = counted.json().get("count") or counted.json().get("filtered_table_rows_count")
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
async def test_csv_of_a_view_has_the_rows_of_sql(query: str, where: str, many: Any) -> None:
    """In the same order, each once: its parts go on where the one before ended."""
    file = sqlite3.connect(many.get_database("spack-cache").path)
    expected = [str(row[0]) for row in file.execute(f"SELECT hash FROM builds {where}")]
    file.close()
    found = (await many.client.get(f"/spack-cache/builds.csv{query}")).text.splitlines()
    assert [line.partition(",")[0] for line in found[1:]] == expected
    assert len(expected) > 1_000


@pytest.mark.asyncio(loop_scope="session")
async def test_sql_without_a_place_for_a_sign_has_all_rows(many: Any) -> None:
    """CSV and bare rows: all of them, or a refusal with the reason; JSON says that rows are cut."""

    def asked(number: int) -> dict[str, str]:
        return {"sql": NUMBERS.format(number)}

    csv_rows = (await many.client.get(f"{SQL}.csv", params=asked(5_000))).text.splitlines()
    streamed = await many.client.get(f"{SQL}.csv", params=asked(5_000) | {"_stream": "on"})
    bare = await many.client.get(f"{SQL}.json", params=asked(5_000) | {"_shape": "array"})
    told = await many.client.get(f"{SQL}.json", params=asked(5_000))
    for more in ({}, {"_stream": "on"}):
        refused = await many.client.get(f"{SQL}.csv", params=asked(30_000) | more)
        assert (refused.status_code, "25,000 cells" in refused.text) == (400, True)

    assert len(csv_rows) == len(streamed.text.splitlines()) == 5_001
    assert len(bare.json()) == 5_000
    assert told.json()["truncated"] is True


@pytest.mark.asyncio(loop_scope="session")
async def test_the_last_line_of_a_page_of_csv_names_the_next(many: Any) -> None:
    """The rows of `/find.csv` are those of all pages, to which each page but the last leads."""
    address, found = "/find.csv?q=*", []
    while address:
        rows = list(csv.reader((await many.client.get(address)).text.splitlines()))
        *_, last = rows
        is_more = last[0].startswith("more rows: ")
        found += rows[1:-1] if is_more else rows[1:]
        address = last[0].removeprefix("more rows: http://localhost") if is_more else ""
    whole = (await many.client.get("/find.json?q=*")).json()
    assert len(whole) == 1_000
    assert len(found) > 1_000
    assert len(found) == len({tuple(row) for row in found})
