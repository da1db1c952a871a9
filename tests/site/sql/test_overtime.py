"""A process whose statement does not notice that its time is over."""

import signal
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from spack_cache_db.site.sql.overtime import TIMES, ended_after
from tests.site.addresses import get

SECONDS = 0.05


@pytest.fixture
def signals() -> Iterator[list[int]]:
    """The signals that this process has received, with a handler as `serve` has."""
    received: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, _: received.append(number))
    yield received
    signal.signal(signal.SIGPROF, before)


def work(seconds: float) -> None:
    """Use so much processor time of this process."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1_000))


def test_overtime_is_signalled_once(signals: list[int]) -> None:
    """After more processor time than a statement may take, and never after its end."""
    with ended_after(SECONDS):
        work(4 * TIMES * SECONDS)
    work(4 * TIMES * SECONDS)
    assert signals == [signal.SIGPROF]


def test_a_statement_within_its_time_is_not_signalled(signals: list[int]) -> None:
    """Nor is the work that follows it, even if the statement failed."""
    with pytest.raises(LookupError), ended_after(SECONDS):
        raise LookupError
    work(4 * TIMES * SECONDS)
    assert signals == []


@pytest.mark.asyncio
@pytest.mark.parametrize("milliseconds", ["-1", "-999999999999999999999", "1"])
async def test_a_visitor_ends_no_process_with_a_short_time(
    milliseconds: str, datasette: Any, signals: list[int]
) -> None:
    """A statement that has less time than it needs is refused, and nothing else."""
    slow = (
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
        " LIMIT 300000) SELECT max(n) FROM numbers"
    )
    query = urlencode({"sql": slow, "_timelimit": milliseconds})
    answer = await get(datasette, f"/spack-cache.json?{query}")

    assert answer.status_code == 400
    assert signals == []


def test_no_process_is_ended_that_nobody_starts_again() -> None:
    """Without a handler, as in `datasette .`, no timer runs."""
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
    with ended_after(SECONDS):
        assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
