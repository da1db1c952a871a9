"""attacks.target: an answer that betrays something, and a file that changed, are seen."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.target import Reply, Target

KEPT, NOT_KEPT = {"cache-control": "max-age=3600"}, {"cache-control": "no-store"}


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    """A file that no server serves: a process that does nothing stands for it."""
    (tmp_path / "a.db").write_bytes(b"SQLite")
    with subprocess.Popen(["sleep", "60"]) as idle:
        yield Target(tmp_path / "a.db", idle.pid, 1)
        idle.kill()


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (Reply(200, KEPT, b"rows"), 0),
        (Reply(400, NOT_KEPT, b"Error: no"), 0),
        (Reply(503, NOT_KEPT, b"Error: busy"), 0),
        (Reply(0, {}, b""), 1),
        (Reply(500, NOT_KEPT, b""), 1),
        (Reply(404, KEPT, b"Error: no"), 1),
        (Reply(200, KEPT, b"Traceback (most recent call last)"), 1),
        (Reply(200, KEPT, b"root:x:0:0"), 1),
    ],
)
def test_what_no_answer_may_say_is_seen(target: Target, reply: Reply, count: int) -> None:
    """Errors, kept errors and what tells of the machine are faults, refusals are none."""
    assert len(target.betrayals(reply)) == count


def test_the_folder_of_the_file_is_a_secret(target: Target, tmp_path: Path) -> None:
    """An answer that says where the file lies is a fault."""
    assert target.betrayals(Reply(200, KEPT, str(tmp_path / "a.db").encode()))


@pytest.mark.parametrize("name", ["a.db", "b.db"])
def test_what_was_written_is_seen(target: Target, tmp_path: Path, name: str) -> None:
    """A file that changed, or another beside it, is a fault; a server that is gone as well."""
    assert len(target.standing()) == 1
    (tmp_path / name).write_bytes(b"attacked")
    assert len(target.standing()) == 2
