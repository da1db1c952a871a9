"""Real worker processes, and what ends them."""

import asyncio
import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.answers import DATA, PAGES, Answer, Kind, SiteSettings
from spack_cache_db.site.sandbox.statements import Rows, run_statement
from spack_cache_db.site.workers import execute
from spack_cache_db.site.workers import worker as worker_module
from spack_cache_db.site.workers.execute import Budget, BusyError, Pool
from spack_cache_db.site.workers.worker import run_on
from tests.processes import completed
from tests.serving import eventually
from tests.site.workers.tasks import fail, grow, ignore_the_alarm, process_id, sleep, stay

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_workers")]

ONE = Kind("one", 1, niceness=5)
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def uri(database: Path) -> str:
    """The address of the invented cache."""
    return f"{database.as_uri()}?immutable=1"


async def ask(pool: Pool, sql: str, seconds: float = 1.0) -> Any:
    """Run a statement; return its rows, or the exception that it ended in."""
    try:
        found = await pool.run(Budget(60, ONE), seconds, run_on, run_statement, sql, {}, 1000)
    except (sqlite3.Error, MemoryError, BusyError, RuntimeError) as error:
        return error
    assert isinstance(found, Rows)
    return [*map(tuple, found.rows)]


async def own_id(pool: Pool) -> int:
    """Return the number of the process that takes the next task."""
    found = await pool.run(Budget(1, ONE), 1, process_id)
    assert isinstance(found, Answer)
    return int(found.body)


def with_pool(uri: str, use: Callable[[Pool], Awaitable[Any]]) -> Any:
    """Return the result of a function of a new pool."""

    async def used() -> Any:
        return await use(Pool(SiteSettings(uri)))

    return asyncio.run(used())


def children() -> set[int]:
    """The processes that this one started and that still run."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        # A thread of an earlier test may end meanwhile.
        with suppress(OSError):
            found.update(map(int, (thread / "children").read_text(encoding="ascii").split()))
    return found


@pytest.mark.parametrize(
    ("task", "error", "message", "is_same"),
    [
        ((run_on, run_statement, ENDLESS, {}, 1), sqlite3.OperationalError, "interrupted", True),
        ((fail,), RuntimeError, r"(?s)Traceback.*ZeroDivisionError", True),
        ((grow, worker_module.BOUNDS["RLIMIT_AS"]), MemoryError, "more memory", False),
        ((ignore_the_alarm,), sqlite3.OperationalError, "interrupted", False),
        ((grow, 2_000), MemoryError, "more memory", False),
    ],
)
def test_a_failure_ends_the_process_only_if_it_must(
    uri: str,
    task: tuple[Any, ...],
    error: type[Exception],
    message: str,
    is_same: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupted statement and a bug leave the process; memory, a hang, a large answer do not.

    The next visitor is answered in any case.
    """
    monkeypatch.setattr(execute, "LATE_SECONDS", 0.2)
    monkeypatch.setattr(execute, "MOST_BYTES", 1_000)
    seconds = 0.1 if ignore_the_alarm in task else 2

    async def use(pool: Pool) -> tuple[bool, Any]:
        before = await own_id(pool)
        with pytest.raises(error, match=message):
            await pool.run(Budget(60, ONE), seconds, *task)
        return before == await own_id(pool), await ask(pool, "SELECT 2")

    assert with_pool(uri, use) == (is_same, [(2,)])


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (signal.SIGSEGV, sqlite3.OperationalError, "made SQLite fail"),
        (signal.SIGKILL, BusyError, ""),
        (signal.SIGTERM, BusyError, ""),
        (signal.SIGPROF, sqlite3.OperationalError, "interrupted"),
    ],
)
def test_the_death_of_a_process_is_told_as_it_was(
    uri: str, tmp_path: Path, number: signal.Signals, kind: type[Exception], message: str
) -> None:
    """A crash, a kill by the system and the alarm are told apart, to that visitor alone."""
    begun = tmp_path / "task.begun"

    async def use(pool: Pool) -> list[Any]:
        before = children()
        task = asyncio.create_task(pool.run(Budget(60, ONE), 60, stay, str(tmp_path / "task")))
        while not task.done():
            if begun.exists():
                begun.unlink()
                for pid in children() - before:
                    os.kill(pid, number)
            await asyncio.sleep(0.05)
        return [task.exception(), await ask(pool, "SELECT 2")]

    found, after = with_pool(uri, use)

    assert isinstance(found, kind)
    assert message in str(found)
    assert after == [(2,)]


def test_a_process_killed_between_two_visitors_is_replaced(uri: str) -> None:
    """Whoever comes next does not hear of it."""

    async def use(pool: Pool) -> list[Any]:
        found = []
        for _ in range(5):
            os.kill(await own_id(pool), signal.SIGKILL)
            found.append(await ask(pool, "SELECT 2"))
        return found

    assert with_pool(uri, use) == [[(2,)]] * 5


def test_a_process_that_has_run_many_tasks_is_replaced(uri: str) -> None:
    """A new process runs the next task, and no visitor hears of it."""

    async def use(pool: Pool) -> list[int]:
        return [await own_id(pool) for _ in range(worker_module.MOST_TASKS + 1)]

    first, *_, last, new = with_pool(uri, use)
    assert first == last != new


def test_work_ends_with_its_visitor(uri: str) -> None:
    """A visitor who leaves ends the process, and the next visitor is answered by another."""

    async def use(pool: Pool) -> list[Any]:
        found = []
        for _ in range(3):
            pid = await own_id(pool)
            asked = asyncio.create_task(pool.run(Budget(600, ONE), 600, sleep, 600))
            await asyncio.sleep(0.1)
            asked.cancel()
            found.append(await asyncio.wait_for(ask(pool, "SELECT 2"), 60))
            is_gone = partial(lambda pid: pid not in children(), pid)
            await asyncio.to_thread(eventually, is_gone)
        return found

    assert with_pool(uri, use) == [[(2,)]] * 3


def test_each_kind_of_request_has_processes_of_its_own(uri: str, tmp_path: Path) -> None:
    """No kind has more than its share or waits for another; who leaves is forgotten.

    A kind with a larger share has a process to spare.
    """

    async def use(pool: Pool) -> int:
        before = children()

        async def ask(name: str, own: Kind) -> None:
            await pool.run(Budget(60, own), 60, stay, str(tmp_path / name))

        async def have_begun(*names: str) -> None:
            async with asyncio.timeout(60):
                while len(begun()) < len(names):
                    await asyncio.sleep(0.01)
            assert begun() == sorted(names)

        kinds = {"first": ONE, "gone": ONE, "last": ONE, "page": PAGES, "sql": DATA}
        tasks = {name: asyncio.create_task(ask(name, own)) for name, own in kinds.items()}
        await have_begun("first", "page", "sql")
        tasks.pop("gone").cancel()
        (tmp_path / "first.end").touch()
        await have_begun("first", "page", "sql", "last")
        for name in tasks:
            (tmp_path / f"{name}.end").touch()
        await asyncio.gather(*tasks.values())
        return len(children() - before)

    def begun() -> list[str]:
        return sorted(path.stem for path in tmp_path.glob("*.begun"))

    assert with_pool(uri, use) == 1 + 2 + 2


def test_a_task_does_not_wait_for_ever(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all processes of its kind stay busy a request is refused, and may come again."""

    async def use(pool: Pool) -> Any:
        await own_id(pool)
        monkeypatch.setattr(execute, "PATIENCE_SECONDS", 0.1)
        busy = asyncio.create_task(pool.run(Budget(60, ONE), 60, sleep, 600))
        await asyncio.sleep(0)
        refused = await ask(pool, "SELECT 1")
        busy.cancel()
        monkeypatch.undo()
        return type(refused), await ask(pool, "SELECT 2")

    assert with_pool(uri, use) == (BusyError, [(2,)])


def test_a_request_has_one_budget(uri: str) -> None:
    """What its tasks have taken is gone, without time left none begins, and waiting is free."""

    async def use(pool: Pool) -> list[Any]:
        budget = Budget(0.5, ONE)
        crowd = [asyncio.create_task(ask(pool, ENDLESS, 0.2)) for _ in range(2)]
        await asyncio.sleep(0)
        await pool.run(budget, 1, sleep, 0.1)
        left = budget.seconds
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            await pool.run(budget, 1, run_on, run_statement, ENDLESS, {}, 1)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            await pool.run(budget, 1, run_on, run_statement, "SELECT 1", {}, 1)
        await asyncio.wait(crowd)
        return [left]

    assert 0.3 < with_pool(uri, use)[0] < 0.5


def test_a_process_has_bounds_of_its_own(uri: str) -> None:
    """The kernel holds it to its memory and files, and ends it before the server."""

    async def use(pool: Pool) -> tuple[Any, ...]:
        pid = await own_id(pool)
        limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
        score = Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii")
        return limits, int(score), os.getpriority(os.PRIO_PROCESS, pid)

    limits, score, priority = with_pool(uri, use)
    bounds = dict(re.findall(r"^Max (address space|file size|core file size) +(\w+)", limits, re.M))

    assert bounds == {
        "address space": str(worker_module.BOUNDS["RLIMIT_AS"]),
        "file size": str(worker_module.BOUNDS["RLIMIT_FSIZE"]),
        "core file size": "0",
    }
    assert score == int(worker_module.OOM_SCORE)
    assert priority == min(19, os.getpriority(os.PRIO_PROCESS, 0) + ONE.niceness)


def test_no_process_outlives_its_server(uri: str) -> None:
    """A process ends when the connection to its server closes, without a signal."""
    program = (
        "import asyncio, os, sys\n"
        "from spack_cache_db.site.answers import SiteSettings\n"
        "from spack_cache_db.site.workers.execute import Worker\n"
        "worker = asyncio.run(Worker.started(SiteSettings(sys.argv[1]), 0))\n"
        "print(worker.process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = completed([sys.executable, "-c", program, uri], check=True)
    for _ in range(100):
        if not Path(f"/proc/{int(done.stdout)}").exists():
            return
        time.sleep(0.1)
    pytest.fail("the process outlived its server")


def test_a_process_that_does_not_start_is_an_error_of_the_server(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be started, ends at once, or does not become ready; the next one is answered."""

    async def use(pool: Pool) -> list[type[Exception]]:
        before, kinds = children(), []
        changes = (
            (sys, "executable", "/nowhere/python"),
            (execute, "_PROGRAM", "raise SystemExit"),
            (execute, "_PROGRAM", "import time; time.sleep(600)"),
        )
        for target, name, value in changes:
            with monkeypatch.context() as patch:
                patch.setattr(target, name, value)
                patch.setattr(execute, "PATIENCE_SECONDS", 0.5)
                kinds.append(type(await ask(pool, "SELECT 1")))
        await asyncio.to_thread(eventually, lambda: children() <= before)
        assert await ask(pool, "SELECT 2") == [(2,)]
        return kinds

    assert with_pool(uri, use) == [BusyError] * 3
