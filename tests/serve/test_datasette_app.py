"""The Datasette of a server process: settings, metadata and plugins, and what it
refuses.
"""

import json
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from datasette.plugins import pm

from spack_cache_db.assembly.inspection import current_inspection
from spack_cache_db.errors import DatabaseError
from spack_cache_db.serve.datasette_app import SiteDatasette, SiteOptions, datasette_of
from spack_cache_db.serve.metadata import read_metadata, site_settings
from spack_cache_db.site.folder import site_folder


def served(file: Path, options: SiteOptions) -> SiteDatasette:
    """Return the Datasette over a file."""
    return datasette_of(file, current_inspection(file), options)


def test_the_database_is_called_spack_cache(samples_file: Path) -> None:
    """Whatever the file is called, its name in URLs is spack-cache."""
    assert list(served(samples_file, SiteOptions()).databases)[-1] == "spack-cache"


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["каталог", "a b?c=d", "50%25#x", "spack-cache"])
async def test_a_file_may_have_any_name(
    name: str, samples_file: Path, tmp_path: Path
) -> None:
    """Pages, rows and the download work, and the download has the bytes of its entity
    tag.
    """
    file = tmp_path / f"{name}.db"
    file.write_bytes(samples_file.read_bytes())
    client = served(file, SiteOptions()).client
    home = await client.get("/")
    rows = await client.get("/spack-cache/packages.json?_shape=array&_size=1")
    whole = await client.get("/spack-cache.db")

    assert (home.status_code, rows.status_code, len(rows.json())) == (200, 200, 1)
    assert whole.content == samples_file.read_bytes()
    assert whole.headers["etag"] == f'"{sha256(whole.content).hexdigest()}"'
    assert quote(name, safe="") in whole.headers["content-disposition"]


@pytest.mark.asyncio
async def test_logins_hold_in_every_process(
    samples_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options have one secret for all that is made from them; the environment may set
    it.
    """
    options = SiteOptions()
    first = served(samples_file, options)
    second = served(samples_file, options)

    assert second.unsign(first.sign("a")) == "a"

    monkeypatch.setenv("DATASETTE_SECRET", "ours")
    assert SiteOptions().secret == "ours"


def test_settings_are_those_of_the_site(samples_file: Path) -> None:
    """Datasette gets each setting, and visitors' SQL is on unless it is switched
    off.
    """
    on = served(samples_file, SiteOptions())
    off = served(samples_file, SiteOptions(sql=False))

    assert {name: on.setting(name) for name in site_settings()} == site_settings()
    assert on.setting("default_allow_sql") is True
    assert off.setting("default_allow_sql") is False


def test_both_settings_files_say_the_same() -> None:
    """Datasette 0.65 and 1.0 read different files of a folder, and find the same in
    them.
    """
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
        (
            "databases: {spack-cache: {queries: [select 1]}}",
            "expected a mapping.*queries",
        ),
        (
            "databases: {a: {tables: {packages: {plugins: no}}}}",
            "expected a mapping.*plugins",
        ),
        ("allow: 3", r"Expected `bool \| object \| null`.*allow"),
        ("databases: {a: {allow_sql: maybe}}", "allow_sql"),
        ("databases: {a: {tables: {allow: {allow: [root]}}}}", "allow"),
        ("databases: {a: {queries: {b: {sql: c, allow: 3}}}}", r"queries.*allow"),
    ],
)
def test_metadata_of_another_shape_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
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
    """Metadata, settings, plugins and the base of addresses are merged with those of
    the site.
    """
    (tmp_path / "m.yml").write_text(METADATA)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "titled.py").write_text(PLUGIN)
    options = SiteOptions(
        metadata=read_metadata(tmp_path / "m.yml"),
        settings=[("max_returned_rows", "9"), ("base_url", "cache")],
        plugins_dir=tmp_path / "plugins",
    )
    site = served(samples_file, options)
    home = await site.client.get("/")
    page = await site.client.get("/ours")
    tables = await site.client.get("/spack-cache")
    ours = await site.client.get("/spack-cache/ours.json?_shape=array")
    stock = await site.client.get("/spack-cache/most_hashes.json?_shape=array")
    rows = await site.client.get("/spack-cache/packages.json?_shape=objects")
    shown = await site.client.get("/-/metadata.json")
    names = ("default_page_size", "max_returned_rows", "suggest_facets")
    settings = [site.setting(name) for name in names]
    pm.unregister(name="titled.py")

    assert 'href="/cache/packages"' in home.text
    assert page.text == "a page of ours"
    assert "MIT" in tables.text
    assert ours.json() == [{"answer": 42}], ours.text
    assert len(stock.json()) > 3
    assert len(rows.json()["rows"]) == 2
    assert settings == [3, 9, False]
    assert "hidden" not in shown.text or hasattr(site, "metadata")
