"""The parts of `make test-spack` that need no Spack."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from live_spack.__main__ import main
from live_spack.covers import agrees
from live_spack.installs import printed_commands
from tests.commands import run


def test_commands_are_all_lines_after_the_table(samples_file: Path) -> None:
    """Only the lines to paste are taken from an answer: each is a comment or a
    command.
    """
    lines = printed_commands(
        run("find", "py-mpi4py@3", samples_file, "--install").stdout
    )

    assert len(lines) >= 2
    for line in lines:
        assert line.startswith(("# ", "spack ", "yes | spack "))


def test_an_answer_without_commands_has_none(samples_file: Path) -> None:
    """The table of an answer is never taken for commands."""
    assert printed_commands(run("find", "py-mpi4py@3", samples_file).stdout) == []


@pytest.mark.parametrize(
    ("status", "is_taken", "is_right"),
    [
        ("binary", True, True),
        ("binary", False, False),
        ("near", True, False),
        ("near", False, True),
        ("incomplete", False, True),
        ("unknown", True, False),
        ("unknown", False, False),
    ],
)
def test_a_status_is_right_if_spack_does_the_same(
    status: str, is_taken: bool, is_right: bool
) -> None:
    """Only `binary` says that Spack takes a binary, and `unknown` is wrong where Spack
    decides.
    """
    assert agrees(status, is_taken=is_taken, may_be_unknown=False) is is_right


def test_unknown_is_right_where_the_settings_do_not_decide() -> None:
    """There, and only there, `unknown` is no mistake; what is said must still be
    true.
    """
    assert agrees("unknown", is_taken=False, may_be_unknown=True)
    assert not agrees("binary", is_taken=False, may_be_unknown=True)


def test_a_folder_that_is_missing_is_refused_in_one_line(tmp_path: Path) -> None:
    """Without both checkouts nothing is done."""
    result = CliRunner().invoke(main, [str(tmp_path), str(tmp_path / "packages")])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith("packages' does not exist.")
