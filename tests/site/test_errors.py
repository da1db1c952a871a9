"""What a visitor reads where a request failed."""

from __future__ import annotations

from typing import Any

import pytest

from spack_cache_db.site.errors import NO_PAGE, UNKNOWN, failure_of
from spack_cache_db.site.queues import FULL, RETRY_AFTER_SECONDS
from spack_cache_db.site.sql.limits import NO_MEMORY
from spack_cache_db.site.sql.runners import COUNT, Runners
from tests.site.addresses import get
from tests.site.conftest import SQL

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


class WithStatus(Exception):
    """Stands for Datasette's own exceptions."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@pytest.mark.parametrize(
    ("exception", "status", "sentence"),
    [
        (WithStatus("404", 404), 404, NO_PAGE),
        (WithStatus("Table not found: x", 404), 404, "Table not found: x"),
        (WithStatus("Cannot sort table by x", 500), 400, "Cannot sort table by x"),
        (MemoryError(), 400, NO_MEMORY),
        (OSError("/secret/path is not there"), 500, UNKNOWN),
    ],
)
def test_every_exception_has_a_sentence(exception: Exception, status: int, sentence: str) -> None:
    """Datasette's refusals speak for themselves; a bug keeps to itself what it knows."""
    failure = failure_of(exception, 1000)

    assert (failure.status, failure.sentence) == (status, sentence)


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
async def test_an_error_comes_in_the_form_asked_for(datasette: Any, end: str) -> None:
    """A table that is not there is a 404 with the same sentence as a page, as JSON and as text."""
    answer = await get(datasette, f"/spack-cache/nope{end}")

    assert answer.status_code == 404
    assert "Table not found" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert end != ".json" or answer.json()["status"] == 404


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
async def test_who_meets_too_many_queries_is_told_when_to_come_back(
    datasette: Any, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process for SQL takes any more: what every queue says that is full."""
    visitors = datasette.get_database("spack-cache").execute.__self__
    monkeypatch.setattr(visitors, "_runners", Runners("file:unused", most_waiting=-COUNT))
    answer = await get(datasette, f"/spack-cache/packages{end}?_where=id")

    assert answer.status_code == 503
    assert FULL in answer.text
    assert answer.headers["retry-after"] == str(RETRY_AFTER_SECONDS)


@pytest.mark.asyncio
async def test_a_query_that_takes_too_long_is_shown_again(datasette: Any) -> None:
    """Whose query took too long reads how much time there is, and has the query still."""
    answer = await datasette.client.get(SQL, params={"sql": f"{ENDLESS} /* <b> */"})

    assert answer.status_code == 400
    assert "longer than 1,000 ms" in answer.text
    assert "/* &lt;b&gt; */" in answer.text


@pytest.mark.asyncio
async def test_a_lone_quote_is_told_clearly(datasette: Any) -> None:
    """Datasette's own search box refuses a lone quote; the answer says what to do."""
    answer = await get(datasette, "/spack-cache/configurations?_search=%22")

    assert answer.status_code == 400
    assert "put it in double quotes" in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["configurations", "packages", "releases", "stacks", "variants"])
async def test_columns_can_be_sorted_by_their_heads(datasette: Any, name: str) -> None:
    """The first column's head leads to a page, and a column that is not there to a refusal."""
    sorted_by_id = await get(datasette, f"/spack-cache/{name}?_sort=id")
    nonsense = await get(datasette, f"/spack-cache/{name}?_sort=nope")

    assert sorted_by_id.status_code in (200, 302)
    assert nonsense.status_code == 400
    assert "Cannot sort table by nope" in nonsense.text
