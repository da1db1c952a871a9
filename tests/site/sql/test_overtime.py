"""A process whose statement does not notice that its time is over."""

import signal
import time
from collections.abc import Iterator

import pytest

from spack_cache_db.site.sql.overtime import TIMES, ended_after

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


def test_no_process_is_ended_that_nobody_starts_again() -> None:
    """Without a handler, as in `datasette .`, no timer runs."""
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
    with ended_after(SECONDS):
        assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
