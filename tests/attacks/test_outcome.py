"""attacks.outcome: what did not hold is told."""

from __future__ import annotations

from attacks.outcome import MOST_TOLD, Outcome, report


def test_faults_are_told_and_counted() -> None:
    """A kind without faults held; of one with many the first are shown."""
    held, failed = Outcome("SQL"), Outcome("pages")
    held.judge("SELECT 1", [])
    for number in range(MOST_TOLD + 3):
        failed.judge(f"page {number}", ["a traceback"])
    told = report([held, failed])

    assert [line.split("|")[2:4] for line in told.splitlines()[2:4]] == [
        ["     1 ", "  yes "],
        ["    13 ", "   no "],
    ]
    assert "page 0: a traceback" in told
    assert "pages: 3 more" in told
