"""templates: pages lay out what records and words say, in lines that can be read."""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

LONGEST = 120
TEMPLATES = sorted((ROOT / "templates").glob("*.html"))
LONG = {
    "_facet_results",
    "_head",
}
"""Templates with longer lines; the icon of `_head` is one address."""
SHARED = [path for path in TEMPLATES if path.name.startswith("_")]
MACRO = re.compile(r"\{%-? macro (\w+)\(")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_lines_can_be_read(path: Path) -> None:
    """A line has one idea; templates with longer lines are known."""
    lines = path.read_text(encoding="utf-8").splitlines()
    is_long = any(len(line) > LONGEST for line in lines)
    assert is_long is (path.stem in LONG)


def test_every_shared_macro_is_used() -> None:
    """A macro that no template calls goes."""
    texts = {path: path.read_text(encoding="utf-8") for path in TEMPLATES}
    for path in SHARED:
        for name in MACRO.findall(texts[path]):
            call = re.compile(rf"\b{name}\(|, {name}\b")
            count = sum(len(call.findall(text)) for text in texts.values())
            assert count > 1, f"{path.name}: {name}"
