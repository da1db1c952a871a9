"""Real processes that answer statements, and what ends them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.sql import runner as runner_module
from spack_cache_db.site.sql.runners import BusyError, NoRunnerError, Runner, Runners
from spack_cache_db.site.sql.statement import BROKEN, INTERRUPTED, Refusal, Rows, Statement

pytestmark = [pytest.mark.slow, pytest.mark.once]

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
LONG = "replace(hex(zeroblob(49500)), '00', 'a')"
# One step after the other, each a comparison of 500 characters at 198,000 places.
STRAIGHT = (
    f"WITH x(v, p) AS MATERIALIZED (SELECT {LONG} || {LONG} || {LONG} || {LONG},"
    " '%' || replace(hex(zeroblob(490)), '00', 'a') || 'b') SELECT "
    + " + ".join(["(v LIKE p)"] * 150)
    + " FROM x"
)


@pytest.fixture
def uri(database: Path) -> str:
    """The address of the invented cache."""
    return f"{database.as_uri()}?immutable=1"


@pytest.fixture
def runner(uri: str) -> Iterator[Runner]:
    """A runner that has started."""
    started = Runner(uri)
    yield started
    del started


def asked(sql: str, ms: float = 1000) -> Statement:
    """A statement without parameters."""
    return Statement(sql, {}, ms, 1000)


def children() -> list[int]:
    """The processes that this one started and that still run."""
    tasks = Path("/proc/self/task").iterdir()
    texts = ((task / "children").read_text(encoding="ascii") for task in tasks)
    return [int(each) for text in texts for each in text.split()]


def test_a_runner_goes_before_a_server(runner: Runner) -> None:
    """Where there is no memory left, the kernel takes it for the larger of the two."""
    assert runner.is_alive
    scores = [
        int(Path(f"/proc/{each}/oom_score_adj").read_text(encoding="ascii"))
        for each in (os.getpid(), *children())
    ]

    assert scores[0] < max(scores) == int(runner_module.FIRST_TO_GO)


def test_a_runner_answers(runner: Runner) -> None:
    """Statements are answered one after the other, with the functions of the site."""
    answers = [
        runner.answer(asked("SELECT count(*) FROM specs")),
        runner.answer(asked("SELECT no_such")),
        runner.answer(asked("SELECT spec_error('hdf5 ^mpi') LIKE '%no dependencies%'")),
        runner.answer(asked("SELECT escape_fts('a b')")),
    ]

    assert [each.rows for each in answers if isinstance(each, Rows)] == [
        [(23,)],
        [(1,)],
        [('"a" "b"',)],
    ]
    assert [each.kind for each in answers if isinstance(each, Refusal)] == ["OperationalError"]


def test_an_endless_statement_does_not_end_the_runner(runner: Runner) -> None:
    """A statement that SQLite can interrupt is, and the process goes on."""
    assert runner.answer(asked(ENDLESS, ms=50)) == INTERRUPTED
    assert runner.is_alive
    assert isinstance(runner.answer(asked("SELECT 1")), Rows)


def test_straight_line_code_ends_with_its_process(runner: Runner) -> None:
    """What SQLite cannot interrupt is told the same, and its process is gone."""
    assert runner.answer(asked(STRAIGHT, ms=100)) == INTERRUPTED
    assert not runner.is_alive


def test_a_fault_of_sqlite_stays_in_its_process(runner: Runner) -> None:
    """A process that breaks while it works is a refusal, whatever the signal was."""
    process = runner._process
    os.kill(process.pid, signal.SIGSEGV)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert runner.answer(asked("SELECT 1")) == BROKEN
    assert not runner.is_alive


def test_a_runner_has_bounds_of_its_own(runner: Runner) -> None:
    """The kernel holds a process to its memory and temporary files, and lets others go first."""
    folder = Path(f"/proc/{runner._process.pid}")
    limits = (folder / "limits").read_text(encoding="ascii")
    bounds = dict(re.findall(r"^Max (address space|file size|core file size) +(\w+)", limits, re.M))

    assert bounds == {
        "address space": str(runner_module.MEMORY_BYTES),
        "file size": str(runner_module.FILE_BYTES),
        "core file size": "0",
    }
    assert os.getpriority(os.PRIO_PROCESS, runner._process.pid) > os.getpriority(os.PRIO_PROCESS, 0)


def test_a_runner_ends_with_its_server(uri: str) -> None:
    """Where the other side of its pipes is gone a process ends, without a signal."""
    program = (
        "import sys, os\n"
        "from spack_cache_db.site.sql.runners import Runner\n"
        "runner = Runner(sys.argv[1])\n"
        "print(runner._process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, uri], capture_output=True, text=True, check=True
    )
    for _ in range(100):
        if not Path(f"/proc/{int(done.stdout)}").exists():
            return
        time.sleep(0.1)
    pytest.fail("the runner outlived its server")


def test_what_cannot_start_is_told(tmp_path: Path) -> None:
    """A file that is not there is no runner."""
    with pytest.raises(NoRunnerError):
        Runner(f"{(tmp_path / 'missing.db').as_uri()}?mode=ro")


def test_a_runner_that_ended_is_replaced(uri: str) -> None:
    """After a statement that took its process with it the next is answered by another."""
    runners = Runners(uri, count=1)

    async def ask() -> list[Any]:
        sqls = ("SELECT 1", STRAIGHT, "SELECT 2")
        return [(await runners.answer(asked(sql, ms=100)))[0] for sql in sqls]

    first, second, third = asyncio.run(ask())

    assert isinstance(first, Rows) and isinstance(third, Rows)
    assert (first.rows, second, third.rows) == ([(1,)], INTERRUPTED, [(2,)])


def test_the_queue_has_an_end(uri: str) -> None:
    """As many statements run as there are processes, some wait, and the rest is refused at once."""
    runners = Runners(uri, count=2, most_waiting=3)

    async def crowd() -> list[Any]:
        asks = (runners.answer(asked(ENDLESS, ms=200)) for _ in range(9))
        return await asyncio.gather(*asks, return_exceptions=True)

    before = set(children())
    found = asyncio.run(crowd())

    refused = [each for each in found if isinstance(each, BusyError)]
    assert len(refused) == 4
    assert [each[0] for each in found if isinstance(each, tuple)] == [INTERRUPTED] * 5
    assert len(set(children()) - before) == 2
    assert isinstance(asyncio.run(runners.answer(asked("SELECT 1")))[0], Rows)


def test_a_statement_that_nobody_waits_for_ends(uri: str) -> None:
    """When its visitor goes, its process ends, and the next visitor's statement is answered."""

    async def ask() -> Any:
        runners = Runners(uri, count=1)
        await runners.answer(asked("SELECT 1"))
        endless = asyncio.create_task(runners.answer(asked(ENDLESS, ms=600_000)))
        await asyncio.sleep(0.2)
        endless.cancel()
        return await asyncio.wait_for(runners.answer(asked("SELECT 2")), 60)

    answer, _ = asyncio.run(ask())

    assert isinstance(answer, Rows)
    assert [tuple(row) for row in answer.rows] == [(2,)]
