"""What is served: the site's files, the database's name, its inspect file, the settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from datasette.plugins import pm

from spack_cache_db.build.sqlite_file import inspect_path
from spack_cache_db.cli.server import SiteOptions, datasette, read_metadata, served, site_settings
from spack_cache_db.errors import DatabaseError
from spack_cache_db.site import site_folder


def test_the_database_is_called_spack_cache(samples_file: Path) -> None:
    """Whatever the file is called, its name in URLs is spack-cache; the link goes afterwards."""
    with served(samples_file) as file:
        assert file.path.name == "spack-cache.db"
        assert file.path.samefile(samples_file)
    assert not file.path.exists()


def test_a_stale_inspect_file_is_not_believed(samples_file: Path, tmp_path: Path) -> None:
    """An inspect file of another database is replaced by what this one really holds."""
    copy = tmp_path / "copy.db"
    shutil.copy(samples_file, copy)
    inspected = json.loads(inspect_path(samples_file).read_text(encoding="utf-8"))
    inspected["spack-cache"]["hash"] = "0" * 64
    inspected["spack-cache"]["tables"]["specs"]["count"] = 999
    inspect_path(copy).write_text(json.dumps(inspected), encoding="utf-8")
    with served(copy) as file:
        assert file.inspected["spack-cache"]["tables"]["specs"]["count"] == 413


def test_settings_are_those_of_the_site(samples_file: Path) -> None:
    """Datasette gets each setting, and visitors' SQL is on unless it is switched off."""
    with served(samples_file) as file:
        on = datasette(file, SiteOptions())
        off = datasette(file, SiteOptions(sql=False))

    assert {name: on.setting(name) for name in site_settings()} == site_settings()
    assert on.setting("default_allow_sql") is True
    assert off.setting("default_allow_sql") is False


def test_both_settings_files_say_the_same() -> None:
    """Datasette 0.65 and 1.0 read different files of a folder, and find the same in them."""
    for_065 = json.loads((site_folder() / "settings.json").read_text(encoding="utf-8"))

    assert for_065 == site_settings()


METADATA = """
title: Ours
settings:
  default_page_size: 3
  max_returned_rows: 7
plugins:
  secret-plugin:
    key: hidden
databases:
  spack-cache:
    license: MIT
    queries:
      ours:
        sql: select 42 as answer
    tables:
      packages:
        size: 2
"""
PLUGIN = """
from datasette import Response, hookimpl

@hookimpl
def register_routes():
    return [("^/ours$", lambda: Response.text("a page of ours"))]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plugins: 3", "expected a mapping.*plugins"),
        ("settings: [a]", "expected a mapping.*settings"),
        ("databases:", "expected a mapping.*databases"),
        ("[title]", "expected a mapping"),
        ("databases: {spack-cache: {queries: [select 1]}}", "expected a mapping.*queries"),
        ("databases: {a: {tables: {packages: {plugins: no}}}}", "expected a mapping.*plugins"),
        ("allow: 3", r"Expected `bool \| object \| null`.*allow"),
        ("databases: {a: {allow_sql: maybe}}", "allow_sql"),
        ("databases: {a: {tables: {allow: {allow: [root]}}}}", "allow"),
        ("databases: {a: {queries: {b: {sql: c, allow: 3}}}}", r"queries.*allow"),
    ],
)
def test_metadata_of_another_shape_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Sections and permissions that Datasette cannot read are named, with the file."""
    (tmp_path / "m.yml").write_text(text)
    with pytest.raises(DatabaseError, match=rf"m\.yml: .*{message}"):
        read_metadata(tmp_path / "m.yml")


def test_names_in_metadata_may_be_any_word(tmp_path: Path) -> None:
    """A query may be called like a permission."""
    text = "{allow: {id: root}, databases: {a: {allow_sql: no, queries: {allow: select 1}}}}"
    (tmp_path / "m.yml").write_text(text)

    assert read_metadata(tmp_path / "m.yml") == yaml.safe_load(text)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_what_is_given_comes_first(samples_file: Path, tmp_path: Path) -> None:
    """Metadata, settings, plugins and the base of addresses are merged with those of the site."""
    (tmp_path / "m.yml").write_text(METADATA)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "titled.py").write_text(PLUGIN)
    options = SiteOptions(
        metadata=read_metadata(tmp_path / "m.yml"),
        settings=[("max_returned_rows", "9"), ("base_url", "cache")],
        plugins_dir=tmp_path / "plugins",
    )
    with served(samples_file) as file:
        site = datasette(file, options)
        home = await site.client.get("/")
        page = await site.client.get("/ours")
        tables = await site.client.get("/spack-cache")
        ours = await site.client.get("/spack-cache/ours.json?_shape=array")
        stock = await site.client.get("/spack-cache/most_hashes.json?_shape=array")
        rows = await site.client.get("/spack-cache/packages.json?_shape=objects")
        shown = await site.client.get("/-/metadata.json")
        names = ("default_page_size", "max_returned_rows", "suggest_facets")
        settings = [site.setting(each) for each in names]
    pm.unregister(name="titled.py")

    assert 'href="/cache/packages"' in home.text
    assert page.text == "a page of ours"
    assert "MIT" in tables.text
    assert ours.json() == [{"answer": 42}], ours.text
    assert len(stock.json()) > 3
    assert len(rows.json()["rows"]) == 2
    assert settings == [3, 9, False]
    assert "hidden" not in shown.text or hasattr(site, "metadata")
