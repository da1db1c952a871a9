"""static: style sheets on one scale, that of tokens.css."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

STYLES = [
    *sorted((ROOT / "static").glob("*.css")),
    *sorted((ROOT / "static-site").glob("*.css")),
]
TOKENS = ROOT / "static" / "tokens.css"
USERS = [path for path in STYLES if path != TOKENS]
SPACED = re.compile(r"(margin|padding|scroll-margin)(-[a-z]+)*|(row-|column-)?gap")
COLOUR = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch|color|color-mix)\("
    r"|\b(white|black|red|green|blue|gr[ae]y|yellow|orange|navy|silver)\b",
    re.IGNORECASE,
)
SPACE = r"var\(--(space-[1-6]|edge|label)\)"
LENGTH = rf"0|1px|auto|inherit|{SPACE}|calc\(-1 \* {SPACE}\)"
"""A space of the scale, a hairline, or none."""


def declarations(path: Path) -> Iterator[tuple[str, str]]:
    """The properties of a style sheet with their values."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for line in text.splitlines():
        match = re.fullmatch(r"\s*([a-z0-9-]+): (.+);", line)
        if match:
            yield match[1], match[2].removesuffix(" !important")


def words(value: str) -> list[str]:
    """The parts of a value; a function is one part."""
    parts = re.findall(r"(?:[^\s(]|\((?:[^()]|\([^()]*\))*\))+", value)
    assert " ".join(parts) == value
    return parts


def is_on_the_scale(name: str, value: str) -> bool:
    """Whether the value of a property is made of tokens, if there are tokens for it."""
    if name == "font-size":
        # On paper all sizes become smaller at once.
        pattern = r"inherit|75%|var\(--text-[a-z]+\)"
    elif name == "font":
        pattern = "inherit"
    elif SPACED.fullmatch(name):
        pattern = LENGTH
    elif name.endswith("radius"):
        pattern = r"0|inherit|var\(--radius-[sl]\)"
    else:
        return not COLOUR.search(value)
    return all(re.fullmatch(pattern, word) for word in words(value))


@pytest.mark.parametrize("path", USERS, ids=lambda path: path.name)
def test_sizes_spaces_radii_and_colours_are_tokens(path: Path) -> None:
    """A new size is a decision about the scale, and not about one rule."""
    strange = [
        f"{name}: {value}"
        for name, value in declarations(path)
        if not is_on_the_scale(name, value)
    ]

    assert strange == []


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_a_line_has_one_declaration(path: Path) -> None:
    """Differences between versions of a style sheet can be read."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.count(";") > 1] == []
    text = re.sub(r"/\*.*?\*/", "", "\n".join(lines), flags=re.DOTALL)
    assert text.count(";") == len(list(declarations(path)))


def test_every_token_is_used_and_every_used_one_exists() -> None:
    """The scale has five sizes, six spaces and two radii, all of them in use."""
    defined = set(re.findall(r"^ +(--[a-z0-9-]+):", TOKENS.read_text(), re.MULTILINE))
    used = set()
    for path in STYLES:
        text = path.read_text(encoding="utf-8")
        used |= set(re.findall(r"var\((--[a-z0-9-]+)\)", text))

    assert used == defined

    sizes = {name for name in defined if name.startswith("--text-")}
    assert sizes == {f"--text-{size}" for size in ("xs", "s", "m", "l", "xl", "code")}
    assert sum(name.startswith("--space-") for name in defined) == 6
    assert sum(name.startswith("--radius-") for name in defined) == 2


def test_our_own_pages_need_no_importance() -> None:
    """Only pages of Datasette have rules that must be overridden."""
    for path in USERS:
        if path.name != "datasette.css":
            assert "!important" not in path.read_text(encoding="utf-8"), path.name
