"""The attacks: a moment of each kind holds, and what does not hold is reported."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from attacks import neighbours, requests, statements, visitors
from attacks.__main__ import BUILT, KINDS, SERVED, main
from attacks.outcome import MOST_TOLD, Outcome, report
from attacks.target import Reply, Target, field, require_short, serving

OTHERS = {"endings", "nginx"}
"""Kinds that other tests run: tests/cli/test_serve.py ends servers with work under way.

The attacks on nginx are those of `neighbours`.
"""


@pytest.fixture
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks of few visitors, none of which depends on what else the machine does."""
    monkeypatch.setattr(visitors, "CROWD", 4)
    # Memory takes several times the processor time to get where other processes use it as well.
    # A statement that nothing ends still exceeds this.
    monkeypatch.setattr(requests, "SECONDS", 4 * requests.SECONDS)
    few = ("half a form", "names that are not there", "processes that are killed")
    monkeypatch.setattr(neighbours, "HEAVY", {name: neighbours.HEAVY[name] for name in few})
    monkeypatch.setattr(neighbours, "POLITE", dict.fromkeys(neighbours.POLITE, math.inf))


@pytest.mark.slow
@pytest.mark.usefixtures("smaller")
def test_a_short_attack_holds(samples_file: Path, tmp_path: Path) -> None:
    """Each kind tries something of its own, all of which holds."""
    # In an empty folder: whatever appears beside the file was written by an attack.
    file = shutil.copy(samples_file, tmp_path)
    with serving(Path(file)) as target:
        outcomes = {
            name: attack(target, 0.3) for name, attack in SERVED.items() if name not in OTHERS
        }
    outcomes |= {name: attack(0.3) for name, attack in BUILT.items()}

    assert {*outcomes} == {*KINDS} - OTHERS
    assert {name: each.faults for name, each in outcomes.items() if each.faults} == {}
    assert [name for name, each in outcomes.items() if not each.tried] == []


@pytest.mark.slow
def test_the_command_reports_what_it_tried(samples_file: Path) -> None:
    """A row for each kind that was chosen, and status 0 where all of them held."""
    arguments = ["readers", "--seconds", "0.1", "--file", str(samples_file)]
    done = CliRunner().invoke(main, arguments)

    assert done.exit_code == 0, done.output
    assert "| readers" in done.stdout


@pytest.mark.slow
def test_every_attack_reaches_what_it_attacks() -> None:
    """No address is refused for its length alone."""
    for statement in statements.WRITES + statements.TELLING + statements.LARGE + statements.SLOW:
        require_short(f"{requests.SQL}.json?{field('sql', statement)}")
    with pytest.raises(ValueError, match="would test nothing"):
        require_short(f"{requests.SQL}.json?{field('sql', 'é' * 9_000)}")


@pytest.mark.slow
@pytest.mark.parametrize("plain", [True, False])
def test_an_attack_on_datasette_alone_does_harm(
    plain: bool, samples_file: Path, tmp_path: Path
) -> None:
    """Without defences, an answer tells a path of the machine, and the attack notices that."""
    # Below a folder that no answer but this one names.
    file = Path(shutil.copy(samples_file, tmp_path))
    with serving(file, plain=plain) as target:
        statement = field("sql", "SELECT * FROM pragma_database_list")
        reply = target.ask(f"/{file.stem}.json?{statement}")
        assert bool(target.betrayals(reply)) is plain


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
