"""The documents say what is true of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builder.cli import cli
from builder.schema import VIEWS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_command_is_in_the_readme() -> None:
    """The README shows each command."""
    missing = [name for name in cli.commands if f"spack-cache-db {name}" not in README]
    assert missing == []


def test_every_view_is_in_the_readme() -> None:
    """The README's table names each view."""
    assert set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)) >= set(VIEWS)


def test_every_module_is_on_the_map() -> None:
    """CONTRIBUTING's map names each module of the builder."""
    modules = {path.name for path in (ROOT / "builder").glob("*.py")} - {
        "__init__.py",
        "__main__.py",
    }
    assert {name for name in modules if f"`{name}`" not in CONTRIBUTING} == set()


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_links_lead_somewhere(document: Path) -> None:
    """Each relative link of a document points at a file that exists."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_commands_have_help() -> None:
    """Each command and each option explains itself."""
    for command in cli.commands.values():
        assert command.help
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{command.name} {parameter.name}"
