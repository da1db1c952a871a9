"""The schema of a file that does not change is asked once, and is what it is."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.datasette065 import kept_schema
from tests.site.conftest import SQL, site

PATHS = (
    "/spack-cache",
    "/spack-cache.json",
    "/spack-cache/packages.json?_shape=array",
    "/spack-cache/builds.json?_size=3&package=hdf5",
    "/spack-cache/Specs.json?_size=3",
    "/spack-cache/specs/1.json?_shape=objects",
    "/spack-cache/no-such-table.json",
)


@pytest.mark.asyncio
async def test_every_answer_is_the_same(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again and again, pages and data are those of a site that keeps nothing."""
    keeping = site(database)
    await keeping.invoke_startup()
    with monkeypatch.context() as patch:
        patch.setattr(kept_schema, "keep", lambda _: None)
        plain = site(database)
        await plain.invoke_startup()

    for path in PATHS:
        expected = await plain.client.get(path)
        for _ in range(3):
            found = await keeping.client.get(path)
            assert found.status_code == expected.status_code
            assert told(found) == told(expected), path


def told(answer: Any) -> Any:
    """Return what an answer says, without how long it took."""
    if not answer.headers["content-type"].startswith("application/json"):
        return re.sub(r"took [\d.]+ms", "", answer.text)
    said = answer.json()
    if isinstance(said, dict):
        said.pop("query_ms", None)
    return said


@pytest.mark.asyncio
async def test_the_list_of_tables_asks_for_little(database: Path) -> None:
    """The second time the page costs a few hops to another thread, not some for every table."""
    served = site(database)
    await served.invoke_startup()
    await served.client.get("/spack-cache")
    file = served.databases["spack-cache"]
    inner, hops = file.execute_fn, []

    async def counted(function: Any) -> Any:
        hops.append(function)
        return await inner(function)

    file.execute_fn = counted
    answer = await served.client.get("/spack-cache")

    assert answer.status_code == 200
    assert len(hops) < 20


@pytest.mark.asyncio
async def test_a_file_that_changes_is_asked_again(database: Path, tmp_path: Path) -> None:
    """A table that was not there before is seen, where the file may change."""
    file = Path(shutil.copy(database, tmp_path / "spack-cache.db"))
    shutil.copy(database.with_suffix(".inspect.json"), tmp_path)
    served = site(file, immutable=False)
    before = (await served.client.get("/spack-cache")).text
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE added_later (id INTEGER PRIMARY KEY)")
    connection.commit()
    connection.close()

    assert "added_later" not in before
    assert "added_later" in (await served.client.get("/spack-cache")).text


@pytest.mark.asyncio
async def test_names_that_visitors_choose_are_not_kept_for_ever(database: Path) -> None:
    """However many are asked for, and a statement of a visitor's own is always run."""
    served = site(database)
    await served.invoke_startup()
    file = served.databases["spack-cache"]
    (answers,) = (
        cell.cell_contents
        for cell in file.primary_keys.__closure__ or ()
        if isinstance(cell.cell_contents, dict)
    )
    for number in range(kept_schema.MOST_KEPT + 10):
        await file.primary_keys(f"nothing-{number}")
    keys = await file.primary_keys("specs")
    keys.append("changed")

    assert len(answers) <= kept_schema.MOST_KEPT
    assert await file.primary_keys("specs") == ["id"]
    statement = kept_schema.SPELLING.replace("?", ":name")
    for name in ("specs", "pages"):
        rows = await served.client.get(
            f"{SQL}.json", params={"sql": statement, "name": name, "_shape": "array"}
        )
        assert rows.json() == [{"name": name}]
