"""Datasette's statements in the sandbox: the same results as before, within one budget."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from datasette.database import QueryInterrupted

from spack_cache_db.site.sandbox import database as database_module
from spack_cache_db.site.sandbox.database import (
    KEPT_BYTES,
    MOST_KEPT_BYTES,
    budget_of,
    plain_params,
)
from spack_cache_db.site.sandbox.pool import Budget, Pool
from spack_cache_db.site.sandbox.statements import run_statement
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
    with budget_of("/x.json", b"x=1", 1.0):
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
    with budget_of("/x.json", b"x=1", 1.0):
        with pytest.raises(sqlite3.OperationalError, match="no such column: no_such"):
            await database.execute("SELECT no_such")
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            await database.execute("SELECT load_extension('x')")
        with pytest.raises(QueryInterrupted):
            await database.execute(ENDLESS, custom_time_limit=20)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_all_statements_of_a_request_share_its_time(datasette: Any) -> None:
    """When the time of a request is used up, its next statement does not begin."""
    await datasette.client.get("/")
    database = datasette.get_database("spack-cache")
    with budget_of("/x.json", b"x=1", 1.0):
        for _ in range(2):
            with pytest.raises(QueryInterrupted):
                await database.execute(ENDLESS)
        with pytest.raises(QueryInterrupted):
            await database.execute("SELECT 1")
    with budget_of("/x.json", b"x=1", 1.0):
        assert (await database.execute("SELECT 1")).single_value() == 1


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_time_follows_the_setting(database: Path) -> None:
    """Where statements may take longer, or less, so may the request that runs them."""
    served = site(database, sql_time_limit_ms=40)
    await served.client.get("/")
    file = served.get_database("spack-cache")
    with budget_of("/x.json", b"x=1", 0.04):
        with pytest.raises(QueryInterrupted):
            await file.execute(ENDLESS)
        with pytest.raises(QueryInterrupted):
            await file.execute(ENDLESS)
        with pytest.raises(QueryInterrupted):
            await file.execute("SELECT 1")
    with budget_of("/x.json", b"_stream=on", 0.04):
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
    assert plain_params("SELECT ?", (1, 2)) == [1, 2]


@pytest.mark.asyncio
async def test_a_stream_is_a_field_and_no_part_of_one(datasette: Any) -> None:
    """`?n=_stream` is no stream, and has no more time than any other page."""
    await datasette.client.get("/")
    database = datasette.get_database("spack-cache")
    with budget_of("/x.json", b"n=_stream", 0.02):
        for _ in range(2):
            with pytest.raises(QueryInterrupted):
                await database.execute(ENDLESS)
        with pytest.raises(QueryInterrupted):
            await database.execute("SELECT 1")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_only_datasettes_own_statements_stay_outside(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A visitor's words, and all that our pages read, go to the sandbox."""
    asked: list[str] = []
    run = Pool.run

    async def listened(self: Pool, budget: Budget, seconds: float, call: Any, *more: Any) -> Any:
        asked.append(more[0] if call is run_statement else more[0].__name__)
        return await run(self, budget, seconds, call, *more)

    monkeypatch.setattr(Pool, "run", listened)
    served = site(database)
    # The first page with a name reads all names.
    assert (await served.client.get("/package/zlib")).status_code == 200
    asked.clear()
    for path in ("/spack-cache", "/spack-cache/specs/1"):
        assert (await served.client.get(path)).status_code == 200
    assert asked == []
    long = "/cover?q=" + "hdf5%0A" * 1_000
    for path in (
        "/package/hdf5?target=zen3",
        "/spec/aaaaaaa",
        "/find?q=%2Bmpi",
        "/cover?q=x",
        long,
    ):
        asked.clear()
        await served.client.get(path)
        # A search reads the names of packages and virtual packages once; a long text is read there.
        more = 2 * path.startswith("/find") + (path == long)
        assert len(asked) == 1 + more, path
    asked.clear()
    assert (await served.client.get("/spack-cache/packages?_search=x")).status_code == 200
    assert asked


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "most_bytes"),
    [
        ("/diff/develop...nope", MOST_KEPT_BYTES),
        ("/find.atom?q=%40%40", MOST_KEPT_BYTES),
        ("/release/develop", KEPT_BYTES),
    ],
)
async def test_neither_errors_nor_large_pages_are_kept(
    database: Path, monkeypatch: pytest.MonkeyPatch, path: str, most_bytes: int
) -> None:
    """A page with nothing but an error, or larger than all that may be kept, is read again."""
    served, asked, run = site(database), [], Pool.run
    await served.client.get("/package/zlib")
    monkeypatch.setattr(database_module, "MOST_KEPT_BYTES", most_bytes)

    async def listened(self: Pool, *task: Any) -> Any:
        asked.append(task)
        return await run(self, *task)

    monkeypatch.setattr(Pool, "run", listened)
    for _ in range(2):
        await served.client.get(path)
    assert len(asked) == 2


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.asyncio
async def test_names_that_are_not_there_fill_no_cache(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is kept stays kept, whatever else is asked for."""
    served = site(database)
    paths = ("/", "/about", "/release/develop")
    for path in paths:
        await served.client.get(path)
    for number in range(300):
        await served.client.get(f"/release/nope{number}")
        await served.client.get(f"/stack/nope{number}")

    async def refused(*_: object) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(Pool, "run", refused)
    for path in paths:
        assert (await served.client.get(path)).status_code == 200
