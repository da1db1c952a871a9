"""templates: pages lay out what records and words say, in lines that can be read."""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

LONGEST = 120
TEMPLATES = sorted((ROOT / "templates").glob("*.html"))
SHARED = [path for path in TEMPLATES if path.name.startswith("_")]
MACRO = re.compile(r"\{%-? macro (\w+)\(")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_lines_can_be_read(path: Path) -> None:
    """A line has one idea."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > LONGEST] == []


def test_every_shared_macro_is_used() -> None:
    """A macro that no template calls goes."""
    texts = {path: path.read_text(encoding="utf-8") for path in TEMPLATES}

    for path in SHARED:
        for name in MACRO.findall(texts[path]):
            call = re.compile(rf"\b{name}\(|, {name}\b")
            count = sum(len(call.findall(text)) for text in texts.values())
            assert count > 1, f"{path.name}: {name}"
