"""A database with values that no build writes gives answers or says that it is
damaged.
"""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.inspection import current_inspection
from spack_cache_db.database_damage import wrong_value
from spack_cache_db.inspect_file import inspect_path
from spack_cache_db.schema import tables as tables_module
from spack_cache_db.schema import views
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.package_data import published, write_packages
from tests.site.conftest import site
from tests.trees import installed, write_tree

CHANGES = [
    "UPDATE packages SET name = x'ff00'",
    "UPDATE versions SET name = x'31'",
    "UPDATE releases SET name = x'ff'",
    "UPDATE releases SET kind = x'ff'",
    "UPDATE releases SET date = x'37'",
    "UPDATE specs SET hash = x'ff' WHERE id = 1",
    "UPDATE specs SET configuration_id = 'one'",
    "UPDATE configurations SET package_id = 99",
    "UPDATE stack_sets SET stacks = 7, shown = x'5b'",
    "UPDATE variant_sets SET text = x'ff'",
    "UPDATE targets SET name = 7, family = x'78'",
    "UPDATE mirrors SET url = x'68747470', settings = '[1]'",
    "UPDATE known_packages SET description = x'ff', latest_version = 1.5",
    "UPDATE origin SET value = x'ff'",
    "UPDATE known_packages SET versions = ''",
    "UPDATE nodes SET parameters = '{'",
    "UPDATE configurations SET spec_count = 9223372036854775807",
    "UPDATE configurations SET spec_count = -spec_count",
    "UPDATE specs SET is_gone = 2",
    "UPDATE specs SET release_count = 0",
    "UPDATE specs SET release_count = -1",
    "UPDATE releases SET position = -9223372036854775807",
    "DELETE FROM dependency_types",
    "DELETE FROM versions",
    "DELETE FROM stack_sets",
    "DELETE FROM releases",
    "DELETE FROM packages",
]
COMMANDS = [
    ("find", "top", "FILE"),
    ("find", "top", "FILE", "--install"),
    ("find", "other", "FILE", "--hashes"),
    ("history", "top", "FILE"),
    ("cover", "ENVIRONMENT", "FILE"),
    ("info", "FILE"),
    ("releases", "FILE"),
    ("stacks", "FILE"),
    ("behind", "FILE"),
    ("deps", hash_of("top"), "FILE"),
    ("diff", "a", "here", "FILE"),
    ("retention", "FILE", "--newest", "1", "--release", "a"),
]
PAGES = [
    "/", "/packages", "/releases", "/stacks", "/about", "/feed.atom", "/badge/top.svg",
    "/package/top", f"/spec/{hash_of('top')}", "/release/a", "/find?q=top",
    "/diff/a...here", "/coverage/a", "/spack-cache/builds",
    "/spack-cache/builds.json?_facet_array=stacks",
]  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of an index, an installation and package data."""
    folder = tmp_path_factory.mktemp("whole")
    mirror = folder / "in" / "a" / "s"
    mirror.mkdir(parents=True)
    records = record(node("top", edge("low", "link"))), record(node("low"))
    (mirror / "index.json").write_bytes(index(*records))
    data = write_packages(
        folder / "data", published("top", "9.0"), published("other", "1.0")
    )
    tree = write_tree(folder / "tree", [installed(node("low"))])
    build([folder / "in", data], folder / "x.db", installations=[("here", tree)])
    (folder / "spack.yaml").write_text("spack:\n  specs: [top, other, low@2]\n")
    return folder / "x.db"


@pytest.fixture(params=CHANGES)
def changed(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> Path:
    """The database after a statement that SQLite does not refuse."""
    file = tmp_path / "x.db"
    shutil.copy(whole, file)
    shutil.copy(inspect_path(whole), inspect_path(file))
    with sqlite3.connect(file) as conn:
        conn.execute("PRAGMA foreign_keys = off")
        conn.execute(request.param.replace("UPDATE", "UPDATE OR IGNORE"))
    return file


def test_every_command_answers_or_says_what_is_wrong(
    changed: Path, whole: Path
) -> None:
    """No command ends with an unexpected exception; the message names the column."""
    with sqlite3.connect(changed) as conn:
        fault = wrong_value(conn)

    assert fault is not None
    for command in COMMANDS:
        words = {"FILE": changed, "ENVIRONMENT": whole.parent / "spack.yaml"}
        result = run(*(words.get(word, word) for word in command))
        assert result.exit_code in (0, 1, 2), (command, result.output)
        assert "please report it" not in result.output, (command, result.output)
        assert isinstance(result.exception, SystemExit | None), command


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_page_fails_with_500(changed: Path) -> None:
    """A page of a damaged database is an answer, or 503 with a sentence."""
    found = site(changed)
    for path in PAGES:
        response = await found.client.get(path)
        assert response.status_code != 500, (path, response.text[-500:])


@pytest.mark.slow
@pytest.mark.asyncio
async def test_pages_of_datasette_say_that_a_database_is_damaged(
    whole: Path, tmp_path: Path
) -> None:
    """Also a page whose address is checked in a part that cannot be read."""
    file = tmp_path / "x.db"
    shutil.copy(inspect_path(whole), inspect_path(file))
    data = bytearray(whole.read_bytes())
    # The pages after those of the schema are lost.
    start = len(data) // 3
    data[start:] = bytes(len(data) - start)
    file.write_bytes(data)
    found = site(file)
    await found.invoke_startup()
    statuses = set()

    for path in (
        "builds",
        "builds?_facet=package",
        "listings.csv?x=1",
        "specs/1",
        "packages?a=1",
    ):
        response = await found.client.get(f"/spack-cache/{path}")
        statuses.add(response.status_code)
        assert response.status_code != 500, (path, response.text[-500:])
    assert 503 in statuses


@pytest.mark.parametrize("schema_format", [5, 99, 2**31])
def test_an_unknown_format_of_the_schema_is_damage(
    whole: Path, tmp_path: Path, schema_format: int
) -> None:
    """SQLite reads no statement of such a file."""
    file = tmp_path / "x.db"
    data = bytearray(whole.read_bytes())
    data[44:48] = schema_format.to_bytes(4, "big")
    file.write_bytes(data)

    for command in (("find", "top", file), ("info", file), ("releases", file)):
        assert "is damaged" in run(*command).output


def test_a_whole_database_has_no_wrong_value(
    whole: Path, all_samples: sqlite3.Connection
) -> None:
    """What a build writes has the types and rows that are checked."""
    with sqlite3.connect(whole) as conn:
        assert wrong_value(conn) is None
    assert wrong_value(all_samples) is None


def test_a_bug_is_not_called_damage(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception over a whole database is reported as unexpected."""

    def broken(*_: object, **__: object) -> Any:
        raise TypeError("a bug")

    monkeypatch.setattr("spack_cache_db.query.answers.find.found_part", broken)
    result = run("find", "top", whole)
    assert (
        isinstance(result.exception, TypeError) or "please report it" in result.output
    )


def _tables(value: Any) -> Any:
    return lambda inspected: inspected["spack-cache"].update(tables=value)


@pytest.mark.parametrize(
    "lie",
    [
        _tables(None),
        _tables({}),
        _tables([]),
        _tables({"packages": {"count": "many"}}),
        _tables({"packages": 7}),
        lambda inspected: inspected["spack-cache"].update(size="large"),
        lambda inspected: inspected["spack-cache"].pop("tables"),
        lambda inspected: inspected["spack-cache"].update(file=None),
        lambda inspected: inspected["spack-cache"]["tables"].popitem(),
        lambda inspected: inspected["spack-cache"]["tables"].update(more={"count": 1}),
        lambda inspected: inspected["spack-cache"].update(views=[]),
        lambda inspected: inspected["spack-cache"].update(
            views={"builds": {"count": "many"}}
        ),
        lambda inspected: inspected["spack-cache"]["views"].update(specs={"count": 1}),
        lambda inspected: inspected.update({"spack-cache": 7}),
    ],
)
def test_an_inspect_file_that_lies_is_not_used(
    lie: Any, whole: Path, tmp_path: Path
) -> None:
    """With the right hash and other content, the database is inspected again."""
    file = tmp_path / "x.db"
    shutil.copy(whole, file)
    inspected = json.loads(inspect_path(whole).read_text())
    lie(inspected)
    inspect_path(file).write_text(json.dumps(inspected))
    found = current_inspection(file)["spack-cache"]
    tables = found["tables"]

    assert set(found["views"]) == set(views.VIEW_COUNTS)
    assert {table.name for table in tables_module.TABLES} <= tables.keys()
    assert all(type(table["count"]) is int for table in tables.values())
