"""What keeps Datasette's event loop from answering others, and what is done about it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable
from threading import get_ident
from typing import Any

import pytest
from datasette import utils
from datasette.database import Database
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, Environment

from spack_cache_db.site import datasettes
from spack_cache_db.site.datasettes import SLICE_SECONDS, Recent, SlicedContext, SlicedTemplate
from tests.site.conftest import IS_065, SQL

PARTS = ["/*", "*/", "--", "\n", " ", "select", "with", "explain", "x", "-", "/", "*"]
TEMPLATES = {
    "plain": "{% for each in rows %}<b>{{ each }}</b>{% endfor %}",
    "block": "{% block all %}{% for each in rows %}<b>{{ each }}</b>{% endfor %}{% endblock %}",
    "included": "{% include 'block' %}",
    "super": "{% extends 'block' %}{% block all %}{{ super() }}{% endblock %}",
}
ENDLESS = [
    "/**/" + " " * 31_000 + "x",
    "/*" * 15_000,
    "/**/" * 7_000 + "x",
    "[" * 31_000,
    "'" * 30_999,
    "/**/--x\n" * 3_000,
    "\n" * 15_000 + "-" * 15_000,
]


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ENDLESS, ids=lambda each: each[:9])
async def test_looking_at_sql_takes_little(datasette: Any, text: str) -> None:
    """No text within the bound of an address makes Datasette's check of SQL take a second."""
    await datasette.invoke_startup()
    began = time.process_time()
    for look in (utils.validate_sql_select, getattr(utils, "named_parameters", None)):
        if look is None:
            continue
        with contextlib.suppress(utils.InvalidSql):
            look(text)

    assert time.process_time() - began < 1


@pytest.mark.asyncio
async def test_names_are_not_compared_where_others_wait(
    datasette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names like one that does not exist are looked for in a process of the sandbox."""

    def refused(*_: object) -> None:
        raise AssertionError("names were compared on the event loop")

    monkeypatch.setattr("difflib.get_close_matches", refused)
    answer = await datasette.client.get("/package/hdf6")
    assert answer.status_code == 404 and "/package/hdf5" in answer.text


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=60))
def test_what_is_kept_is_bounded_by_its_size(asked: list[tuple[int, int]]) -> None:
    """Of answers of any sizes, those asked for last are kept, together at most so much."""
    recent: Recent = Recent(100, lambda kept: kept[0][1])  # type: ignore[index]
    read: list[tuple[int, int]] = []

    async def ask(key: tuple[int, int]) -> None:
        async def answer() -> tuple[int, int]:
            read.append(key)
            return key

        assert await recent.once(key, answer) == key

    kept: list[tuple[int, int]] = []
    for key in asked:
        was_read = len(read)
        asyncio.run(ask(key))
        assert (len(read) == was_read) == (key in kept)
        kept = [*(each for each in kept if each != key), key]
        while sum(size for _, size in kept) > 100:
            del kept[0]
        assert len(recent) == len(kept)


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_what_is_allowed_stays_the_same(text: str) -> None:
    """A statement is taken for a SELECT by the quick expressions where the slow ones take it so."""
    allowed = (r"select\b", r"explain\s+select\b", r"with\b")
    for each in allowed:
        slow = re.match(utils.comment_re + each, text)
        quick = re.match(datasettes._COMMENTS + each, text)
        assert (slow and slow.group()) == (quick and quick.group())


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["plain", "block", "included", "super"])
async def test_others_have_their_turn_while_a_page_is_rendered(name: str) -> None:
    """A large page gives way again and again, and comes out as it does in one piece."""
    environment = Environment(enable_async=True, autoescape=True, loader=DictLoader(TEMPLATES))
    environment.template_class, environment.context_class = SlicedTemplate, SlicedContext
    template = environment.get_template(name)
    turns, ended = 0, False

    async def others() -> None:
        nonlocal turns
        while not ended:
            turns += 1
            await asyncio.sleep(0)

    asking = asyncio.create_task(others())
    # Of this thread alone: what else the machine does is no time of the page.
    began = time.thread_time()
    rows = range(50_000)
    pages = await asyncio.gather(*(template.render_async(rows=rows) for _ in range(2)))
    ended = True
    await asking

    assert turns > (time.thread_time() - began) / SLICE_SECONDS / 3
    assert pages == ["".join(f"<b>{each}</b>" for each in rows)] * 2


@pytest.mark.slow
@pytest.mark.asyncio
async def test_our_own_pages_are_rendered_beside_the_event_loop() -> None:
    """Others have their turn while a page that is one macro is rendered."""
    rows = "{% macro all() %}{% for row in rows %}<b>{{ row }}</b>{% endfor %}{% endmacro %}"
    environment = Environment(autoescape=True, loader=DictLoader({"own": rows + "{{ all() }}"}))
    environment.template_class = SlicedTemplate
    rendering = asyncio.ensure_future(
        environment.get_template("own").render_async(rows=range(200_000))
    )
    turns = 0
    while not rendering.done():
        turns += 1
        await asyncio.sleep(0)

    assert turns > 10
    assert (await rendering) == "".join(f"<b>{row}</b>" for row in range(200_000))


@pytest.mark.asyncio
async def test_a_page_shows_so_many_cells(datasette: Any) -> None:
    """As HTML a result is cut after ten thousand cells, and says so; as JSON it is whole."""
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000)"
    sql = f"{numbers} SELECT {', '.join(['x'] * 20)} FROM n"
    page = await datasette.client.get(SQL, params={"sql": sql})
    data = await datasette.client.get(f"{SQL}.json", params={"sql": sql, "_shape": "arrays"})

    assert page.status_code == data.status_code == 200
    assert page.text.count("<td") == 10_000
    assert "more than 500 rows" in page.text or not IS_065
    assert len(data.json()["rows"]) == 1000


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_two_threads_meet_in_a_connection(
    datasette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of Datasette's connections is one thread's: in one that calls Python two wait for ever.

    A thread that runs a statement has the lock of the connection and needs Python's for a callback;
    one that sets a callback has Python's and needs that of the connection.
    """
    name = "execute_fn" if IS_065 else "_execute_fn"
    execute = getattr(Database, name)
    users: dict[sqlite3.Connection, set[int]] = defaultdict(set)

    async def noted(self: Any, function: Callable[[sqlite3.Connection], object]) -> object:
        def run(conn: sqlite3.Connection) -> object:
            users[conn].add(get_ident())
            return function(conn)

        return await execute(self, run)

    monkeypatch.setattr(Database, name, noted)
    await datasette.invoke_startup()
    paths = ("/spack-cache", "/spack-cache/packages", "/spack-cache/stacks.csv", "/packages")
    await asyncio.gather(*(datasette.client.get(path) for path in paths * 5))

    assert len({thread for each in users.values() for thread in each}) > 1
    assert {len(each) for each in users.values()} == {1}
