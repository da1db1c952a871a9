"""The documents say what is true of the code."""

import inspect
import re
import sqlite3
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl

import click
import pytest
import yaml

import spack_cache_db
from spack_cache_db import api
from spack_cache_db.cli.main import COMMANDS, cli
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.routes import ROUTES
from tests.metadata import QUERIES, run
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SQL = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_commands_of_the_readme_exist() -> None:
    """The README's table names commands that there are."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]*) \| \[", README, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)", row)}
    assert named - {"sqlite3", "curl", "import"} <= set(COMMANDS)
    assert len(named) > 8


def test_views_of_the_guide_exist() -> None:
    """The table in docs/sql.md names views of the schema."""
    rows = set(
        re.findall(r"^\| `(\w+)` \|", SQL.partition("## Specs in SQL")[0], re.MULTILINE)
    )
    assert len(rows) > 8
    assert rows <= set(VIEWS)


def test_functions_and_errors_are_described() -> None:
    """The tables of docs/python.md name each public function and each error."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    public = {name: getattr(spack_cache_db, name) for name in api.__all__}
    named = {
        name
        for name, each in public.items()
        if inspect.isfunction(each)
        or (inspect.isclass(each) and issubclass(each, Exception))
    }
    rows = set(re.findall(r"^\| `spack_cache_db\.(\w+)` \|", text, re.MULTILINE))

    assert rows == named - {
        "BuilderError"
    }  # The base of them all stands above the table.


def test_every_package_is_on_the_map() -> None:
    """CONTRIBUTING's map has one row for each folder of the package, and every folder
    is there.
    """
    package = ROOT / "builder" / "spack_cache_db"
    rows = re.findall(r"^\| `(builder/[\w/]+/)` \|", CONTRIBUTING, re.MULTILINE)
    rooms = {path.parent for path in package.rglob("*.py")}

    assert sorted(rows) == sorted(
        f"{room.relative_to(ROOT).as_posix()}/" for room in rooms
    )


def test_every_route_is_in_the_table_of_addresses() -> None:
    """docs/site-reference.md has a row for each page of our own."""
    text = (ROOT / "docs" / "site-reference.md").read_text(encoding="utf-8")
    cells = " ".join(
        row.split("|")[1] for row in text.splitlines() if row.startswith("| `/")
    )
    paths = [re.sub(r"<\w+>", "x", path) for path in re.findall(r"`(/[^`?]*)", cells)]

    for route, *_ in ROUTES:
        assert any(re.match(route, path) for path in paths), route


def test_tests_and_paths_of_contributing_exist() -> None:
    """Each test that CONTRIBUTING names is one, and each path is that of a file or a
    folder.
    """
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")
    )
    named = set(re.findall(r"`(test_\w+)`", CONTRIBUTING))

    assert {name for name in named if f"def {name}(" not in tests} == set()

    recipes = CONTRIBUTING.partition("## How to add a column")[2]
    roots = (ROOT, ROOT / "builder" / "spack_cache_db")
    paths = set(re.findall(r"`([\w.-]+/[\w./-]*\w)`", recipes))

    for path in paths:
        assert any((root / path).exists() for root in roots), path


@pytest.mark.parametrize(
    ("section", "packages"),
    [
        ("A page, from file to rows", ("assembly", "sources")),
        ("A request", ("site", "serve")),
    ],
)
def test_the_functions_of_a_walk_exist(section: str, packages: tuple[str, ...]) -> None:
    """Each function and class on the way of a page, and on that of a request, in
    CONTRIBUTING is in the code that the section is about.
    """
    walk = re.split(r"^##", CONTRIBUTING.partition(f"## {section}")[2], flags=re.M)[0]
    package = ROOT / "builder" / "spack_cache_db"
    modules = [path for name in packages for path in (package / name).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in modules)
    named = set(re.findall(r"`(?:\w+\.)*(\w+)`", walk))

    assert len(named) > 15

    defined = set(
        re.findall(r"^(?: *(?:async )?def |class )?(\w+)\b", code, re.MULTILINE)
    )
    # `problems` is a table.
    assert named - defined - {"problems"} == set()


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md"))
)
def test_links_lead_somewhere(document: Path) -> None:
    """Each relative link of a document points at a file that exists."""
    targets = re.findall(
        r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")
    )

    assert [
        target for target in targets if not (document.parent / target).exists()
    ] == []


def test_the_citation_agrees_with_the_project() -> None:
    """CITATION.cff has the license and authors of pyproject.toml, which alone has the
    version.
    """
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    assert [cited["license"], cited["authors"]] == [built["license"], built["authors"]]
    assert "version" not in cited


def test_the_changelog_is_in_order() -> None:
    """What is not released stands first; each release has its number and its date,
    newest first.
    """
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *released = re.findall(r"^## (.*)$", text, re.MULTILINE)

    assert first == "Unreleased"
    assert [
        each
        for each in released
        if not re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", each)
    ] == []
    assert (
        released
        == sorted(
            released, key=lambda each: list(map(int, each.split()[0].split(".")))
        )[::-1]
    )


def test_commands_have_help() -> None:
    """Each command and each option explains itself."""
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.help
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), (
                    f"{command.name} {parameter.name}"
                )


def test_the_gallery_has_the_first_row_of_each_question(
    samples: sqlite3.Connection, all_sources: sqlite3.Connection
) -> None:
    """docs/sql.md has each query with a chart, its title and its answer."""
    with_chart = {name: each for name, each in QUERIES.items() if "chart" in each}
    rows = re.findall(r"^\| (.*?\?) \| `(\w+)(.*?)` \| (.*?) \|$", SQL, re.MULTILINE)

    assert [name for _, name, _, _ in rows] == list(with_chart)
    for title, name, parameter, answer in rows:
        assert title == with_chart[name]["title"]
        connection = all_sources if "needs" in with_chart[name] else samples
        params = dict(parse_qsl(parameter.removeprefix("?")))
        found = run(connection, name, **params)
        if not found:
            assert answer == "no rows: one snapshot only"
            continue
        assert answer == ", ".join(map(str, found[0].values())), name


def test_the_chart_of_the_gallery_has_the_shares(samples: sqlite3.Connection) -> None:
    """Bars of blocks, the longest of 40."""
    shares = run(samples, "target_shares")
    top = shares[0]["spec_count"]
    lines = []
    for share in shares:
        blocks = "█" * max(1, round(40 * share["spec_count"] / top))
        lines.append(f"{share['target']:<14} {blocks:<40} {share['spec_count']:>4}")

    assert "\n".join(lines) in SQL
