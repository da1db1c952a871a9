"""deploy/spack-cachedb: a command of Spack, found and called as Spack's documentation
says.
"""

import argparse
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.commands import run
from tests.paths import ROOT

EXTENSION = ROOT / "deploy" / "spack-cachedb"
SPEC = "py-mpi4py@4 target=x86_64_v3"


@pytest.fixture
def command() -> ModuleType:
    """The command's module, from where Spack looks for `cache-db` in this extension."""
    named = re.fullmatch(r"spack-(\w[-\w]*)", EXTENSION.name)
    assert named is not None
    path = EXTENSION / named[1] / "cmd" / "cache_db.py"
    spec = importlib.util.spec_from_file_location("cache_db", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(command: ModuleType, *arguments: str) -> int:
    """Call the command as Spack does: it sets the parser up, and gives it what was
    parsed.
    """
    parser = argparse.ArgumentParser(prog="spack cache-db")
    command.setup_parser(parser)
    status: int = command.cache_db(parser, parser.parse_args(arguments))
    return status


@pytest.mark.slow
def test_it_answers_as_the_program_does(
    command: ModuleType,
    samples_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Options, output and exit status are those of spack-cache-db."""
    program = tmp_path / "spack-cache-db"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m spack_cache_db "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    status = call(command, "find", SPEC, str(samples_file), "--json", "--hashes")
    found = capfd.readouterr().out

    assert status == 0
    assert json.loads(found) == json.loads(
        run("find", SPEC, samples_file, "--json", "--hashes").stdout
    )
    assert call(command, "find", "nothing-has-this-name", str(samples_file)) == 1


def test_a_missing_program_is_named(
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where it is not on PATH, the message says what to do."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit):
        call(command, "find", SPEC)
    assert "activate its environment" in capsys.readouterr().err
