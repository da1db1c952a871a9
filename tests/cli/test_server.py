"""The server that serve starts: its file, settings, metadata and socket, and what it refuses."""

import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from datasette.plugins import pm

import spack_cache_db.site
from spack_cache_db.cli.serve import ListenError, address_of, listen
from spack_cache_db.cli.server import (
    PREFIX,
    SiteOptions,
    datasette,
    pinned,
    read_metadata,
    served,
    site_settings,
)
from spack_cache_db.database_file import inspect_path
from spack_cache_db.errors import DatabaseError
from spack_cache_db.site import site_folder
from tests.commands import run
from tests.paths import ROOT
from tests.processes import completed


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


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and a folder for temporary files on the same file system."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "beside").mkdir()
    path = tmp_path / "beside" / "x.db"
    path.write_bytes(b"old")
    return path


def no_links(self: Path, target: Path) -> None:
    """Refuse to link, as a file system without links does."""
    raise OSError(errno.EPERM, "Operation not permitted")


def replace(file: Path) -> None:
    """Put another file in its place, as a build does."""
    other = file.with_suffix(".tmp")
    other.write_bytes(b"new")
    other.replace(file)


@pytest.mark.parametrize("can_link", [True, False])
def test_what_replaces_the_file_changes_nothing(
    file: Path, can_link: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linked or copied, the other path leads to the file that stood there; then it is gone."""
    if not can_link:
        monkeypatch.setattr(Path, "hardlink_to", no_links)
    with pinned(file, "y.db") as path:
        assert path.name == "y.db"
        assert path.samefile(file) is can_link
        replace(file)
        assert path.read_bytes() == b"old"
    assert not path.parent.exists()
    assert file.read_bytes() == b"new"


def test_no_place_for_a_copy_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: one message that says what to do, and nothing left."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    monkeypatch.setattr(shutil, "copyfile", full)
    place = Path(tempfile.gettempdir())
    with pytest.raises(DatabaseError) as caught, pinned(file, "y.db"):
        pass
    assert str(caught.value) == (
        f"{file}: cannot be copied to {place}: No space left on device; "
        "set TMPDIR to another folder"
    )
    assert not list(place.iterdir())


def test_only_what_was_left_behind_is_removed(file: Path) -> None:
    """Folders of killed servers go; those of living and new ones, links and files stay."""
    place = Path(tempfile.gettempdir())
    left = place / f"{PREFIX}left"
    left.mkdir()
    (left / "spack-cache.db").write_bytes(b"left")
    (place / f"{PREFIX}new").mkdir()
    os.utime(left, (0, 0))
    (place / f"{PREFIX}link").symlink_to(file.parent)
    (place / f"{PREFIX}file").write_bytes(b"")
    with pinned(file, "y.db") as living, pinned(file, "z.db"):
        assert living.exists()
        assert not left.exists()
    names = {f"{PREFIX}{end}" for end in ("link", "file", "new")}
    assert {path.name for path in place.iterdir()} == names
    assert file.exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0"])
def test_it_listens_where_it_says(host: str) -> None:
    """A visitor reaches the address, and small pieces are sent to it without delay."""
    with closing(listen(host, 0)) as listener:
        name, port = listener.getsockname()[:2]
        assert address_of(listener).endswith(f":{port}/")
        assert ("[" in address_of(listener)) is (":" in name)
        with closing(socket.create_connection((name, port))):
            accepted, _ = listener.accept()
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            accepted.close()


@pytest.mark.parametrize(
    "host", ["192.0.2.7", "no.such.host.invalid", "", "a..b", "a\0b", "\ud800", "x" * 300]
)
def test_an_odd_host_is_told(host: str) -> None:
    """A host that is none, or not of this machine: one line that says what to do."""
    with pytest.raises(ListenError, match="use an address of this machine") as caught:
        listen(host, 0)
    assert str(caught.value).startswith(f"--host {host}: ")
    assert "\n" not in str(caught.value)


def run_serve(*arguments: object) -> tuple[int, str]:
    """Run `serve` until it ends, which it does at once when it refuses: its status and errors."""
    done = completed(
        [sys.executable, "-m", "spack_cache_db", "serve", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stderr


def refusal(file: Path) -> str:
    """Return why a file is not served."""
    with pytest.raises(DatabaseError) as caught, served(file):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_a_refusal_is_one_line(samples_file: Path, tmp_path: Path) -> None:
    """A port that is in use and a file that is missing: status 2, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusals = {
            f"Error: port {port} is in use; ": run_serve(samples_file, "--port", port),
            "Error: --proxy nginx: ": run_serve(samples_file, "--proxy", "nginx"),
            f"Error: {tmp_path}/missing.db: ": run_serve(tmp_path / "missing.db"),
        }
    for start, (status, said) in refusals.items():
        *loading, refusal = said.splitlines()
        assert status == 2
        assert refusal.startswith(start)
        assert len(loading) <= 1 and all(each.startswith("Loading ") for each in loading)


@pytest.mark.parametrize(
    ("start", "new", "message"),
    [
        (-3000, b"", "is damaged: "),
        (10_000, b"\xff" * 9_000, "is damaged: "),
        (100, bytes(3996), "is damaged: "),
        (0, b"something else", "expected a file made by build"),
    ],
)
def test_a_damaged_file_is_refused(
    start: int, new: bytes, message: str, samples_file: Path, tmp_path: Path
) -> None:
    """A file that is cut off, overwritten, or of another kind is refused before it is served."""
    data, copy = samples_file.read_bytes(), tmp_path / "damaged.db"
    copy.write_bytes(data[:start] + new + (data[start + len(new) :] if start > 0 else b""))
    assert message in refusal(copy)


def test_a_file_without_a_table_is_refused(samples_file: Path, tmp_path: Path) -> None:
    """A missing table, a folder and a missing file are reported as they are."""
    copy = Path(shutil.copy(samples_file, tmp_path))
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("DROP TABLE listings")
    assert refusal(copy).endswith(", or build it again")
    assert refusal(tmp_path).endswith(": is a folder, expected a regular file")
    assert "no such file; build one with: " in refusal(tmp_path / "missing.db")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--setting", "sql_time_limit", "5"), "close: sql_time_limit_ms"),
        (("--setting", "sql_time_limit_ms", "soon"), "not a whole number"),
        (("--setting", "allow_download", "5"), "neither on nor off"),
        (("--metadata", "[1]"), "expected a mapping"),
        (("--metadata", "a: [b"), "m.yml:1: broken YAML"),
        (("--metadata", "a:\n " + "[" * 9_999), "m.yml:2: is nested more than 32 levels deep: "),
        (("--metadata", "a: 1\na: 2"), "m.yml:1: a repeated key, expected each once"),
        (("--metadata", "settings: {nope: 1}"), "no setting is called 'nope'"),
        (("--metadata", "plugins: {spack-cache-db: {open: 1}}"), "no key is called 'open'"),
    ],
)
def test_what_it_cannot_be_told_is_refused(
    samples_file: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """A setting, a metadata file or an allowance that is wrong: one line that names it."""
    *option, value = arguments
    if option == ["--metadata"]:
        value = str(tmp_path / "m.yml")
        Path(value).write_text(arguments[-1])
    found = run("serve", samples_file, *option, value, "--port", "0")

    assert found.exit_code == 2
    assert said in found.stderr
    assert found.stderr.splitlines()[-1].startswith("Error: ")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package elsewhere, in `builder/` of what may be a checkout."""
    folder = tmp_path / "builder" / "spack_cache_db"
    (folder / "site" / "files").mkdir(parents=True)
    monkeypatch.setattr(spack_cache_db.site, "__file__", str(folder / "site" / "__init__.py"))
    return folder


def test_the_files_of_a_wheel_come_first(package: Path) -> None:
    """Files in the package win over those of a folder around it; without both, the error helps."""
    with pytest.raises(DatabaseError, match="install spack-cache-db again") as error:
        site_folder()
    for folder in (package / "site" / "files", package.parents[1]):
        assert str(folder) in str(error.value)
    for folder in (package / "site" / "files", package.parents[1]):
        (folder / "metadata.yml").touch()
    assert site_folder() == package / "site" / "files"


def test_it_prints_the_folder_alone() -> None:
    """Its output is a folder's path alone, for a shell; a checkout's root is its own site."""
    result = run("site")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{ROOT}\n", "")
