"""MkDocs hook: the generated pages of the documentation, and links between all pages.

The first page is the README; CONTRIBUTING, CHANGELOG and SECURITY are pages as well. The page of
the schema is made of `spack_cache_db.schema` and of an empty database, which describes itself,
those of the Python API and of modules of docstrings.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import spack_cache_db
from spack_cache_db import api
from spack_cache_db.build.sqlite_file import create, finish, index_text
from spack_cache_db.query.database import descriptions
from spack_cache_db.schema import FULL_TEXT, TABLES, VIEWS, Table

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "builder" / "spack_cache_db"

AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Documents at the root of the repository, and the pages that show them."""

SQL_TYPES = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y = 176, 26, 56, 10
"""The size of a table in the diagram, and the space between tables."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in AT_ROOT.items()}
    pages |= {"api.md": api_page(), "schema.md": schema_page(), "modules.md": modules_page()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page, its links to files of the repository as links between pages."""
    return re.sub(r"(?<!!)\[([^]]+)\]\(([^):#]+)(#[^)]*)?\)|(?<=\]\()docs/", _link, markdown)


def _link(match: re.Match[str]) -> str:
    text, target, anchor = match.groups()
    if text is None:
        return ""
    name = target.removeprefix("../").removeprefix("docs/")
    if name in AT_ROOT or name.endswith(".md"):
        return f"[{text}]({AT_ROOT.get(name, name)}{anchor or ''})"
    return str(text)  # A file of the repository, which has no page.


def schema_page() -> str:
    """Return the page of the schema: a diagram, then each table and view with its columns."""
    parts = [
        # The diagram takes the place of the table of contents.
        "---\nhide: [toc]\n---",
        "# Schema",
        "Foreign keys have the name of what they point at, and tables of names have a column "
        "`name`. Start with the [views](#views), which have text in every column.",
        diagram(),
        "## Views",
        *(_described(name, None) for name in VIEWS),
        "## Tables",
        *(_described(table.name, table) for table in TABLES),
    ]
    return "\n\n".join(parts) + "\n"


@cache
def _descriptions() -> dict[str, dict[str | None, str]]:
    with closing(create(Path(":memory:"))) as db:
        index_text(db, {each.content: () for each in FULL_TEXT.values()})
        finish(db)
        return descriptions(db)


def _described(name: str, table: Table | None) -> str:
    """Return a table or a view: its heading, its description, a row for each column."""
    described = _descriptions()[name]
    columns = {each.name: each for each in table.columns} if table else {}
    rows = []
    for column, text in described.items():
        if column is None:
            continue
        sql, points = "", ""
        if column in columns:
            each = columns[column]
            sql = f" `{SQL_TYPES[each.type]}`{', or NULL' * each.nullable} |"
            points = f" → [{each.references}](#{each.references})" if each.references else ""
        rows.append(f"| `{column}` |{sql} {text}{points} |")
    head = "| column | type | |\n| --- | --- | --- |" if table else "| column | |\n| --- | --- |"
    return "\n".join([f"### {name}", "", str(described[None]), "", head, *rows])


def diagram() -> str:
    """Return the tables as SVG, with a line from each foreign key to the table it points at.

    A table stands to the right of all tables that it points at.
    """
    points_at = {
        table.name: {each.references for each in table.columns if each.references} - {table.name}
        for table in TABLES
    }

    def depth(name: str) -> int:
        return max((depth(each) + 1 for each in points_at[name]), default=0)

    layers: dict[int, list[str]] = {}
    for name in points_at:
        layers.setdefault(depth(name), []).append(name)
    places = {
        name: (layer * (BOX_WIDTH + GAP_X), row * (BOX_HEIGHT + GAP_Y))
        for layer, names in layers.items()
        for row, name in enumerate(names)
    }
    width = len(layers) * (BOX_WIDTH + GAP_X) - GAP_X
    height = max(map(len, layers.values())) * (BOX_HEIGHT + GAP_Y) - GAP_Y
    lines = [
        _line(places[to], places[name]) for name in points_at for to in sorted(points_at[name])
    ]
    boxes = [_box(name, *place) for name, place in places.items()]
    style = "width:100%;min-width:30rem;font:12px monospace"
    return "\n".join(
        [
            '<div style="overflow-x:auto">',
            f'<svg viewBox="-1 -1 {width + 2} {height + 2}" role="img" style="{style}">',
            "<title>Tables and their foreign keys</title>",
            *lines,
            *boxes,
            "</svg>",
            "</div>",
        ]
    )


def _line(to: tuple[int, int], name: tuple[int, int]) -> str:
    x, y = to[0] + BOX_WIDTH, to[1] + BOX_HEIGHT // 2
    end, end_y = name[0], name[1] + BOX_HEIGHT // 2
    curve = f"M{x},{y} C{x + GAP_X // 2},{y} {end - GAP_X // 2},{end_y} {end},{end_y}"
    return f'<path d="{curve}" fill="none" stroke="currentColor" stroke-opacity=".35"/>'


def _box(name: str, x: int, y: int) -> str:
    return (
        f'<a href="#{name}"><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="3" '
        'fill="var(--md-default-bg-color)" stroke="currentColor"/>'
        f'<text x="{x + 8}" y="{y + 17}" fill="currentColor">{escape(name)}</text></a>'
    )


def api_page() -> str:
    """Return the page of the Python API: all public names, for mkdocstrings."""
    public = {name: getattr(spack_cache_db, name) for name in api.__all__}
    kinds: dict[str, Callable[[Any], bool]] = {
        "Functions": inspect.isfunction,
        "Records": lambda each: inspect.isclass(each) and not issubclass(each, Exception),
        "Errors": lambda each: inspect.isclass(each) and issubclass(each, Exception),
    }
    parts = [
        "# Python API",
        "Everything here is imported from `spack_cache_db`. [Use it from Python](python.md) is the "
        "introduction.",
    ]
    for kind, holds in kinds.items():
        parts.append(f"## {kind}")
        parts += [
            f"::: {each.__module__}.{each.__qualname__}\n"
            f"    options:\n      heading: {name}\n      toc_label: {name}"
            for name, each in public.items()
            if holds(each)
        ]
    return "\n\n".join(parts) + "\n"


def modules_page() -> str:
    """Return the page of modules: for each room its modules, with what their docstrings say."""
    parts = [
        "# Modules",
        "The first sentence of each module's docstring. "
        "[Contributing](contributing.md#the-map) has the map of the rooms.",
    ]
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        head = f"## {folder.relative_to(PACKAGE.parent).as_posix()}"
        parts.append("\n".join([head, "", "| module | |", "| --- | --- |", *_modules(folder)]))
    return "\n\n".join(parts) + "\n"


def _modules(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
        yield f"| `{path.stem}` | {escape(first, quote=False)} |"
