"""MkDocs hook: the generated pages of the documentation, and links between all pages.

The first page is the README. The page of the schema comes from `spack_cache_db.schema`
and `metadata.yml`, those of the Python API and modules from docstrings, and that of
commands from help.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import spack_cache_db
from spack_cache_db import api
from spack_cache_db.assembly.file import create, finish, index_text
from spack_cache_db.assembly.options import BuildOptions, ReadOptions
from spack_cache_db.cli.main import COMMANDS, cli
from spack_cache_db.query.open.lookups import descriptions
from spack_cache_db.schema.full_text import FULL_TEXT
from spack_cache_db.schema.tables import TABLES, Table
from spack_cache_db.schema.views import VIEWS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "builder" / "spack_cache_db"

AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Documents at the root of the repository, and the pages that show them."""

GENERATED = {"Schema": "schema.md", "Python API": "api.md"}
"""Titles of generated pages: a document that names one in italics gets a link on the
website.
"""

SCHEMAS = json.loads((ROOT / "docs" / "schemas.json").read_text(encoding="utf-8"))[
    "$defs"
]
"""The JSON that commands print: by the name of the command, or the name of a part."""

SQL_TYPES = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}

MAIN_TABLES = (
    *("packages", "compilers", "operating_systems", "targets", "releases"),
    *("versions", "configurations", "specs", "listings", "dependencies"),
)
"""The tables in the diagram."""

BOX_WIDTH, HEAD_HEIGHT, ROW_HEIGHT, GAP_X, GAP_Y = 176, 24, 17, 56, 14
"""The size of a table in the diagram, of one of its columns, and the space between
tables.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        page: (ROOT / name).read_text(encoding="utf-8")
        for name, page in AT_ROOT.items()
    }
    pages |= {
        "api.md": api_page(),
        "schema.md": schema_page(),
        "modules.md": modules_page(),
    }
    pages["commands.md"] = commands_page()
    pages["index.md"] += (
        f"\nThis is the documentation of version {spack_cache_db.__version__}.\n"
    )
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with links to other pages, also to generated ones."""
    markdown = re.sub(
        r"(?<!\S)`(?:spack-cache-db )?([a-z-]+) --help`",
        lambda found: (
            f"[`{found[1]} --help`](commands.md#{found[1]})"
            if found[1] in COMMANDS
            else found[0]
        ),
        markdown,
    )
    # Without a prompt, all lines would look like output.
    markdown = re.sub(r"^```console\n(?!\$ )", "```sh\n", markdown, flags=re.MULTILINE)
    for title, page in GENERATED.items():
        markdown = markdown.replace(f"*{title}*", f"[{title}]({page})")
    return re.sub(
        r"(?<!!)\[([^]]+)\]\(([^):#]+)(#[^)]*)?\)|(?<=\]\()docs/", _link, markdown
    )


def _link(match: re.Match[str]) -> str:
    text, target, anchor = match.groups()
    if text is None:
        return ""
    name = target.removeprefix("../").removeprefix("docs/")
    if name in AT_ROOT or name.endswith(".md"):
        return f"[{text}]({AT_ROOT.get(name, name)}{anchor or ''})"
    return str(text)  # A file of the repository, which has no page.


def schema_page() -> str:
    """Return the page of the schema: a diagram, then each table and view with its
    columns.
    """
    parts = [
        # The diagram takes the place of the table of contents.
        "---\nhide: [toc]\n---",
        "# Schema",
        "Foreign keys end in `_id`, and tables of names have a column "
        "`name`. Start with the [views](#views), which have names, or with the "
        "[canned queries](#canned-queries).",
        diagram(),
        "## Views",
        *(_described(name, None) for name in VIEWS),
        "## Tables",
        *(_described(table.name, table) for table in TABLES),
        "## Canned queries",
        _canned_queries(),
    ]
    return "\n\n".join(parts) + "\n"


@cache
def _descriptions() -> dict[str, dict[str | None, str]]:
    with (
        TemporaryDirectory() as folder,
        closing(create(Path(folder, "empty.db"))) as db,
    ):
        index_text(db, {index.content: () for index in FULL_TEXT.values()})
        finish(db)
        return descriptions(db)


def _described(name: str, table: Table | None) -> str:
    """Return a table or a view: its heading, its description, a row for each column."""
    described = _descriptions()[name]
    columns = {column.name: column for column in table.columns} if table else {}
    rows = []
    for column, text in described.items():
        if column is None:
            continue
        sql, points = "", ""
        if column in columns:
            declared = columns[column]
            sql = f" `{SQL_TYPES[declared.type]}`{', or NULL' * declared.nullable} |"
            target = declared.references
            points = f" → [{target}](#{target})" if target else ""
        rows.append(f"| `{column}` |{sql} {text}{points} |")
    head = (
        "| column | type | |\n| --- | --- | --- |"
        if table
        else "| column | |\n| --- | --- |"
    )
    return "\n".join([f"### {name}", "", str(described[None]), "", head, *rows])


def _canned_queries() -> str:
    """Return the queries of the website as a table."""
    metadata = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))
    rows = []
    for name, query in metadata["databases"]["spack-cache"]["queries"].items():
        parameters = ", ".join(
            f"`{parameter}`" for parameter in query.get("params", ())
        )
        text = _cell(f"{query['title']}. {query['description']}")
        rows.append(f"| `{name}` | {parameters} | {text} |")
    return "\n".join(["| query | parameters | result |", "| --- | --- | --- |", *rows])


def diagram() -> str:
    """Return the main tables as SVG, with a line from each foreign key to the table it
    points at.

    A table stands to the right of all tables that it points at.
    """
    tables = {table.name: table for table in TABLES if table.name in MAIN_TABLES}

    def references(name: str) -> list[str]:
        columns = tables[name].columns
        return [
            column.references
            for column in columns
            if column.references in tables.keys() - {name}
        ]

    def depth(name: str) -> int:
        return max((depth(target) + 1 for target in references(name)), default=0)

    def height(name: str) -> int:
        return HEAD_HEIGHT + ROW_HEIGHT * len(tables[name].columns) + ROW_HEIGHT // 2

    bottoms: dict[int, int] = {}
    positions: dict[str, tuple[int, int]] = {}
    for name in sorted(MAIN_TABLES, key=MAIN_TABLES.index):
        layer = depth(name)
        y = bottoms.get(layer, 0)
        positions[name] = (layer * (BOX_WIDTH + GAP_X), y)
        bottoms[layer] = y + height(name) + GAP_Y
    width = len(bottoms) * (BOX_WIDTH + GAP_X) - GAP_X
    lines = [
        _line(positions[column.references], positions[name], row)
        for name, table in tables.items()
        for row, column in enumerate(table.columns)
        if column.references in references(name)
    ]
    boxes = [
        _box(tables[name], *position, height(name))
        for name, position in positions.items()
    ]
    style = "width:100%;min-width:44rem;font:12px monospace"
    return "\n".join(
        [
            '<div style="overflow-x:auto">',
            f'<svg viewBox="-1 -1 {width + 2} {max(bottoms.values())}" role="img" style="{style}">',
            "<title>The main tables and their foreign keys</title>",
            *lines,
            *boxes,
            "</svg>",
            "</div>",
        ]
    )


def _line(to: tuple[int, int], name: tuple[int, int], row: int) -> str:
    x, y = to[0] + BOX_WIDTH, to[1] + HEAD_HEIGHT // 2
    end, end_y = name[0], name[1] + HEAD_HEIGHT + ROW_HEIGHT * row + ROW_HEIGHT // 2 + 2
    curve = f"M{x},{y} C{x + GAP_X // 2},{y} {end - GAP_X // 2},{end_y} {end},{end_y}"
    return f'<path d="{curve}" fill="none" stroke="currentColor" stroke-opacity=".35"/>'


def _box(table: Table, x: int, y: int, height: int) -> str:
    columns = [
        f'<text x="{x + 8}" y="{y + HEAD_HEIGHT + ROW_HEIGHT * row + 14}" fill="currentColor" '
        f'opacity=".75">{escape(column.name)}</text>'
        for row, column in enumerate(table.columns)
    ]
    return (
        f'<a href="#{table.name}"><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{height}" '
        'rx="3" fill="var(--md-default-bg-color)" stroke="currentColor"/>'
        f'<text x="{x + 8}" y="{y + 17}" fill="currentColor" font-weight="bold">'
        f"{escape(table.name)}</text>{''.join(columns)}</a>"
    )


def commands_page() -> str:
    """Return the page of commands: the help of each, its options as a table."""
    parts = [
        "# Commands",
        "The help of every command, as `spack-cache-db COMMAND --help` prints it. The exit status "
        "is 0 for yes or success, 1 for no (no match, a difference, faulty input) and 2 for an "
        "error, as with `grep` and `diff`. Without FILE, commands use `$SPACK_CACHE_DB`, or else "
        "the only database in `dist/` and the current folder. `NO_COLOR` turns colours off.",
        "The keys of `--json` keep their names and types within a major version. "
        "[schemas.json](schemas.json) describes them as JSON schemas.",
    ]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        context = click.Context(command, info_name=f"spack-cache-db {name}")
        usage = command.get_usage(context).removeprefix("Usage: ")
        help_text = inspect.cleandoc(command.help or "").replace("\f", "")
        help_text = re.sub(
            r"^Example: (.+)$", r"```\n\1\n```", help_text, flags=re.MULTILINE
        )
        records = [
            parameter.get_help_record(context)
            for parameter in command.get_params(context)
        ]
        rows = []
        for record in records:
            if record and record[1]:
                # A range such as [x>=1] is not a link.
                text = _cell(record[1]).replace("[", r"\[")
                rows.append(f"| `{_cell(record[0])}` | {text} |")
        table = "\n".join(["| option | |", "| --- | --- |", *rows])
        parts += [f"## {name}", f"```\n{usage}\n```", _escaped(help_text), table]
        parts += [
            f"`{words} --json` prints:\n\n{_keys(schema)}"
            for words, schema in SCHEMAS.items()
            if words.split()[0] == name
        ]
    return "\n\n".join(parts) + "\n"


def _keys(schema: dict[str, Any], indent: str = "") -> str:
    """Return the keys of a JSON schema as a list."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    lines = [_keys(alternative, indent) for alternative in schema.get("anyOf", ())]
    if isinstance(schema.get("items"), dict):
        lines.append(_keys(schema["items"], indent))
    for key, value in schema.get("properties", {}).items():
        text = f": {value['description']}" if "description" in value else ""
        lines += [f"{indent}- `{key}`{text}", _keys(value, f"{indent}    ")]
    return "\n".join(filter(None, lines))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Return Markdown in which `<release>` is text, outside of blocks of code."""
    parts = text.split("```")
    return "```".join(
        part if number % 2 else escape(part, quote=False)
        for number, part in enumerate(parts)
    )


def api_page() -> str:
    """Return the page of the Python API: all public names, for mkdocstrings."""
    public = {name: getattr(spack_cache_db, name) for name in api.__all__}
    kinds: dict[str, Callable[[Any], bool]] = {
        "Functions": inspect.isfunction,
        "Records": lambda item: (
            inspect.isclass(item) and not issubclass(item, Exception)
        ),
        "Errors": lambda item: inspect.isclass(item) and issubclass(item, Exception),
    }
    parts = [
        "# Python API",
        "Everything here is imported from `spack_cache_db`. [Use it from Python](python.md) is the "
        "introduction.",
    ]
    for kind, holds in kinds.items():
        parts.append(f"## {kind}")
        parts += [
            _reference(name, item) for name, item in public.items() if holds(item)
        ]
        if kind == "Functions":
            parts.append("## Options of build, check and verify")
            parts.append("Give the attributes of these records as keywords.")
            for record in (ReadOptions, BuildOptions):
                parts.append(_reference(record.__name__, record))
    return "\n\n".join(parts) + "\n"


def _reference(name: str, item: Any) -> str:
    """Return the line for mkdocstrings that shows a function or a class."""
    return (
        f"::: {item.__module__}.{item.__qualname__}\n"
        f"    options:\n      heading: {name}\n      toc_label: {name}"
    )


def modules_page() -> str:
    """Return the page of modules: for each package its modules, with their
    docstrings.
    """
    parts = [
        "# Modules",
        "The first sentence of each module's docstring. "
        "[Contributing](contributing.md#the-map) has the map of the packages.",
    ]
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        head = f"## {folder.relative_to(PACKAGE.parent).as_posix()}"
        parts.append(
            "\n".join([head, "", "| module | |", "| --- | --- |", *_modules(folder)])
        )
    return "\n\n".join(parts) + "\n"


def _modules(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
        yield f"| `{path.stem}` | {escape(first, quote=False)} |"
