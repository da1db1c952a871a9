"""The attacks: a moment of each kind holds, and what does not hold is reported."""

import math
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from attacks import neighbours, pages, requests, visitors
from attacks.__main__ import BUILT, KINDS, SERVED, main
from attacks.target import field, serving
from tests.examples import FACTOR

OTHERS = {"hosts", "endings"}
"""Kinds that other tests run: `tests/serve/test_server.py` ends servers and asks by
other names.
"""

LONGER = {"sql": 12 * FACTOR, "repetition": 4 * FACTOR}
"""Seconds for kinds of which no other test is: they try most of what they have in a
weekly run.
"""


@pytest.fixture
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks of few visitors, none of which depends on what else the machine does."""
    # Memory takes several times the processor time to get where other processes use it
    # as well. A statement that nothing ends still exceeds this.
    monkeypatch.setattr(requests, "SECONDS", 4 * requests.SECONDS)
    for attacks, name in (
        ("HEAVY", "names that are not there"),
        ("SLOW_CLIENTS", "half a form"),
    ):
        monkeypatch.setattr(
            neighbours, attacks, {name: getattr(neighbours, attacks)[name]}
        )
    monkeypatch.setattr(pages, "PAGES", 50)
    monkeypatch.setattr(visitors, "LEAVING", 4)
    monkeypatch.setattr(
        neighbours, "POLITE", dict.fromkeys(neighbours.POLITE, math.inf)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("smaller")
def test_a_short_attack_holds(samples_file: Path, tmp_path: Path) -> None:
    """Each kind tries something of its own, all of which holds."""
    # In an empty folder: whatever appears beside the file was written by an attack.
    file = shutil.copy(samples_file, tmp_path)
    with serving(Path(file)) as target:
        outcomes = {
            name: attack(target, LONGER.get(name, 0.3))
            for name, attack in SERVED.items()
            if name not in OTHERS
        }
    outcomes |= {name: attack(0.3) for name, attack in BUILT.items()}

    assert set(outcomes) == set(KINDS) - OTHERS
    assert {
        name: outcome.faults for name, outcome in outcomes.items() if outcome.faults
    } == {}
    assert [name for name, each in outcomes.items() if not each.tried] == []


@pytest.mark.slow
def test_the_command_reports_what_it_tried(samples_file: Path) -> None:
    """A row for each kind that was chosen, and status 0 where all of them held."""
    arguments = ["readers", "--seconds", "0.1", "--file", str(samples_file)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "| readers" in done.stdout


@pytest.mark.slow
def test_an_attack_on_datasette_alone_does_harm(
    samples_file: Path, tmp_path: Path
) -> None:
    """Without defences a response contains a path of the machine, and the attack
    notices that.
    """
    # Below a folder that no answer but this one names.
    file = Path(shutil.copy(samples_file, tmp_path))
    with serving(file, plain=True) as target:
        statement = field("sql", "SELECT * FROM pragma_database_list")
        reply = target.ask(f"/{file.stem}.json?{statement}")
        assert target.reply_faults(reply)
