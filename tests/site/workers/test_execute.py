"""Statements of Datasette in worker processes: the same results, within one budget."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from datasette.database import QueryInterrupted

from spack_cache_db.site import own_pages
from spack_cache_db.site.answers import Answer, Request
from spack_cache_db.site.own_pages import KeptAnswers
from spack_cache_db.site.workers import execute
from spack_cache_db.site.workers.execute import Budget, Pool, plain_params, set_budget
from tests.site.conftest import site

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("sql", "params", "options"),
    [
        ("SELECT * FROM specs ORDER BY id LIMIT 3", None, {}),
        ("SELECT id, hash FROM specs WHERE id = :id", {"id": 7}, {}),
        ('SELECT id AS [a "b], id AS [a "b] FROM specs WHERE id = ?', [7], {"truncate": True}),
        ("SELECT 1 WHERE 0", {}, {}),
        ("SELECT x'00ff', 1.5, NULL, 'é'", {}, {}),
        ("SELECT id FROM listings JOIN specs", {}, {"truncate": True, "page_size": 1000}),
        ("SELECT id FROM listings JOIN specs", {}, {"truncate": True}),
    ],
)
async def test_results_are_datasettes(
    datasette: Any, sql: str, params: Any, options: dict[str, Any]
) -> None:
    """Rows, their names and whether there were more are what Datasette itself finds."""
    await datasette.client.get("/")
    database = datasette.get_database("spack-cache")
    theirs = await database.execute(sql, params, **options)
    set_budget(b"x=1", 1.0, is_page=False, takes_all=False)
    ours = await database.execute(sql, params, **options)

    assert [tuple(row) for row in ours.rows] == [tuple(row) for row in theirs.rows]
    assert [row.keys() for row in ours.rows[:1]] == [row.keys() for row in theirs.rows[:1]]
    assert (ours.columns, ours.truncated) == (theirs.columns, theirs.truncated)
    assert not ours.rows or ours.rows[0][ours.columns[0]] == theirs.rows[0][0]


@pytest.mark.asyncio
async def test_errors_are_datasettes(datasette: Any) -> None:
    """What SQLite refuses and what takes too long is raised as Datasette expects it."""
    await datasette.client.get("/")
    database = datasette.get_database("spack-cache")
    set_budget(b"x=1", 1.0, is_page=False, takes_all=False)
    with pytest.raises(sqlite3.OperationalError, match="no such column: no_such"):
        await database.execute("SELECT no_such")
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        await database.execute("SELECT load_extension('x')")
    with pytest.raises(QueryInterrupted):
        await database.execute(ENDLESS, custom_time_limit=20)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_time_follows_the_setting(database: Path) -> None:
    """Where statements may take longer, or less, so may the request that runs them."""
    served = site(database, sql_time_limit_ms=40)
    await served.client.get("/")
    file = served.get_database("spack-cache")
    set_budget(b"x=1", 0.04, is_page=False, takes_all=False)
    with pytest.raises(QueryInterrupted):
        await file.execute(ENDLESS)
    with pytest.raises(QueryInterrupted):
        await file.execute(ENDLESS)
    with pytest.raises(QueryInterrupted):
        await file.execute("SELECT 1")
    set_budget(b"_stream=on", 0.04, is_page=False, takes_all=False)
    for _ in range(9):
        with pytest.raises(QueryInterrupted):
            await file.execute(ENDLESS)
    assert (await file.execute("SELECT 1")).single_value() == 1


class Magic(dict[str, Any]):
    """Parameters of which one is made when it is asked for, as Datasette has them."""

    def __getitem__(self, key: str) -> Any:
        return 42 if key == "_now_epoch" else super().__getitem__(key)


def test_parameters_that_are_made_when_asked_for() -> None:
    """They are asked for before a statement leaves; a colon in a cast or time is none."""
    sql = "SELECT :_now_epoch, :name, '::_x', CAST(1 AS TEXT)"

    assert plain_params(sql, Magic(name="a")) == {"name": "a", "_now_epoch": 42}
    assert plain_params("SELECT 1", None) == {}
    assert plain_params("SELECT ?", (1, 2)) == (1, 2)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_only_datasettes_own_statements_stay_outside(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A visitor's words, and all that our pages read, go to worker processes; each page once."""
    asked: list[str] = []
    run = Pool.run

    async def listened(
        self: Pool, budget: Budget, seconds: float, call: Any, *arguments: Any
    ) -> Any:
        asked.append(call.__name__)
        return await run(self, budget, seconds, call, *arguments)

    monkeypatch.setattr(Pool, "run", listened)
    served = site(database)
    for path in ("/spack-cache", "/spack-cache/specs/1"):
        assert (await served.client.get(path)).status_code == 200
    assert asked == []
    long = "/cover?q=" + "hdf5%0A" * 1_000
    pages = ("/package/hdf5?target=zen3", "/spec/aaaaaaa", "/find?q=%2Bmpi", "/cover?q=x", long)
    for path in pages:
        asked.clear()
        await served.client.get(path)
        assert asked == ["respond"], path
    asked.clear()
    assert (await served.client.get("/spack-cache/packages?_search=x")).status_code == 200
    assert {*asked} == {"check_data", "run_on"}


def test_what_is_kept_is_bounded() -> None:
    """The answers that are kept have at most so many bytes together."""
    kept = KeptAnswers(10_000)
    for number in range(9):
        kept.keep(Request(f"/package/{number}"), Answer(b"x" * 2_000))
        assert len(kept) == (1, 2, 3, 0)[number % 4]
    kept.keep(Request("/"), Answer(b"x" * 20_000))
    assert not kept


@pytest.mark.slow
@pytest.mark.asyncio
async def test_whole_pages_are_kept_and_nothing_else(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that was asked for is not made again; errors and redirects are."""
    served, asked = site(database), []

    async def listened(*arguments: Any) -> Answer:
        asked.append(arguments)
        return await execute.ask(*arguments)

    monkeypatch.setattr(own_pages, "ask", listened)
    for path, times in (("/package/hdf5", 1), ("/release/nope", 2), ("/package/HDF5", 2)):
        asked.clear()
        for _ in range(2):
            await served.client.get(path, follow_redirects=False)
        assert len(asked) == times, path
