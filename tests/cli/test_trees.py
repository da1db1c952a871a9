"""Installed trees at the command line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.commands import run
from tests.documents import fences, typed
from tests.indexes import index, node, record
from tests.paths import ROOT
from tests.trees import real_tree, write_tree


def test_the_documented_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of docs/installed.md that ends by itself has an answer on a real tree."""
    monkeypatch.chdir(tmp_path)
    tree = write_tree(tmp_path / "opt", real_tree())
    mirror = tmp_path / "mirrors" / "develop" / "e4s"
    mirror.mkdir(parents=True)
    (mirror / "index.json").write_bytes(index(record(node("a"))))
    commands = [each for fence in fences(ROOT / "docs" / "installed.md") for each in typed(fence)]
    ran = 0
    for each in commands:
        for place in ('"$(spack location --install-root)"', "/opt/software"):
            each_text = each.command.replace(place, str(tree))
            if each_text != each.command:
                break
        name, *arguments = shlex.split(each_text, comments=True)
        if name != "spack-cache-db" or arguments[0] == "serve":
            continue
        result = run(*arguments)
        assert (result.exit_code, result.stderr) == (arguments[0] == "diff", ""), each
        ran += 1
    assert ran >= 5
