"""Threads for SQL: pools that do not wait for each other, statements that end when cancelled."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest

from spack_cache_db.site.sql_threads import SqlThreads, note_connection, pool_name

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
MANY = ENDLESS.replace("FROM n)", "FROM n LIMIT 5000)")
PATIENCE = 30


@pytest.fixture
def threads() -> Iterator[SqlThreads]:
    """One thread for pages, one for data."""
    executor = SqlThreads({"pages": 1, "data": 1})
    yield executor
    executor.shutdown(cancel_futures=True)


class Endless:
    """A statement without an end, and the moment in which it runs."""

    def __init__(self) -> None:
        self.runs = threading.Event()

    def __call__(self) -> Any:
        """Run the statement on a connection of this thread."""
        conn = sqlite3.connect(":memory:", check_same_thread=False)
        note_connection(conn)
        conn.set_progress_handler(self._tell, 1000)
        return conn.execute(ENDLESS).fetchone()

    def _tell(self) -> None:
        self.runs.set()


def in_pool(threads: SqlThreads, name: str, call: Any) -> Any:
    """Submit as a request in the queue `name` does."""

    def submit() -> Any:
        pool_name.set(name)
        return threads.submit(call)

    return copy_context().run(submit)


def test_cancelling_interrupts_sql(threads: SqlThreads) -> None:
    """A statement without an end ends when what was submitted is cancelled."""
    endless = Endless()
    work = threads.submit(endless)
    assert endless.runs.wait(PATIENCE)
    assert work.cancel() is False
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        work.result(PATIENCE)


def test_cancelling_between_statements_ends_the_next(threads: SqlThreads) -> None:
    """Cancelled while no statement runs, the work ends at its next statement."""
    begun, go_on, endless = threading.Event(), threading.Event(), Endless()

    def pause_and_select() -> Any:
        begun.set()
        go_on.wait(PATIENCE)
        return endless()

    work = threads.submit(pause_and_select)
    assert begun.wait(PATIENCE)
    assert work.cancel() is False
    go_on.set()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        work.result(PATIENCE)


def test_what_waits_never_runs_once_cancelled(threads: SqlThreads) -> None:
    """What was cancelled while it waited for a thread does not run."""
    endless, ran = Endless(), threading.Event()
    running = threads.submit(endless)
    assert endless.runs.wait(PATIENCE)
    waiting = threads.submit(ran.set)
    assert waiting.cancel()
    running.cancel()
    assert threads.submit(lambda: "next").result(PATIENCE) == "next"
    assert not ran.is_set()


def test_a_late_cancellation_hits_nobody_else(threads: SqlThreads) -> None:
    """Cancelling what has ended leaves the statement that its thread runs now alone."""
    opened: list[sqlite3.Connection] = []

    def open_one() -> None:
        opened.append(sqlite3.connect(":memory:", check_same_thread=False))
        note_connection(opened[0])

    ended = threads.submit(open_one)
    ended.result(PATIENCE)
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> int:
        begun.set()
        return int(go_on.wait(PATIENCE))

    def select() -> object:
        opened[0].create_function("wait", 0, wait)
        return opened[0].execute(MANY.replace("SELECT 1", "SELECT wait()")).fetchone()[0]

    now = threads.submit(select)
    assert begun.wait(PATIENCE)
    assert ended.cancel() is False
    go_on.set()
    assert now.result(PATIENCE) == 5000


def test_pools_do_not_wait_for_each_other(threads: SqlThreads) -> None:
    """While the only thread for data is busy, a page is read."""
    endless = Endless()
    data = in_pool(threads, "data", endless)
    assert endless.runs.wait(PATIENCE)
    assert in_pool(threads, "pages", lambda: "a page").result(PATIENCE) == "a page"
    assert not data.done()
    data.cancel()


def test_errors_reach_who_waits(threads: SqlThreads) -> None:
    """What a call raises is raised where its result is asked for."""
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(PATIENCE)


def test_ending_interrupts_what_runs() -> None:
    """Ending the executor interrupts what runs and drops what waits."""
    executor, endless = SqlThreads({"data": 1}), Endless()
    running, waiting = executor.submit(endless), executor.submit(int)
    assert endless.runs.wait(PATIENCE)
    executor.shutdown(cancel_futures=True)
    assert running.done()
    assert waiting.cancelled()
