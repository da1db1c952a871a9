"""A name from a database is one word of a command that people paste."""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

COMMAND = re.compile(r"""["']spack [^"']*["'] ~ ([^,)]+)""")
TEMPLATES = [
    path
    for path in sorted(ROOT.glob("templates/*.html"))
    if COMMAND.search(path.read_text())
]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_quote_what_they_join_to_a_command(path: Path) -> None:
    """Commands are made in Python, or their words are quoted for the shell."""
    text = path.read_text()

    for word in COMMAND.findall(text):
        assert re.match(r"(?:shell_)?quoted\(", word), word
        # A macro of this name would put quotation marks for readers around it.
        name = word.partition("(")[0]
        assert f"macro {name}(" not in text
