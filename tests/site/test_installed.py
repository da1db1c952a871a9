"""The site of an installed tree speaks of what is installed, and not of mirrors."""

import html
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from tests.site.conftest import site
from tests.trees import real_tree, write_tree

pytestmark = pytest.mark.slow

EXPLICIT = "SELECT * FROM installations WHERE explicit"
HDF5 = "SELECT hash, prefix FROM installations WHERE package = 'hdf5' AND explicit ORDER BY hash"


@pytest.fixture(scope="module")
def tree_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of an installed tree alone."""
    folder = tmp_path_factory.mktemp("tree")
    build(write_tree(folder / "opt", real_tree()), folder / "spack-cache.db")
    return folder / "spack-cache.db"


@pytest.fixture(scope="module")
def tree(tree_file: Path) -> Any:
    """A site of an installed tree alone."""
    return site(tree_file)


async def followed(pages: Any, path: str) -> str:
    """Return the page to which an address leads, also where it says that there is
    nothing.
    """
    response = await pages.client.get(path, follow_redirects=True)
    return str(response.text)


async def text(pages: Any, path: str) -> str:
    """Return what a page says."""
    response = await pages.client.get(path)
    assert response.status_code == 200, path
    return str(response.text)


def words_of(page: str) -> str:
    """Return what a page says, also in attributes, without what it quotes as code."""
    told = re.findall(
        r'(?:content|title|placeholder|(?:aria|data)-label)="([^"]*)"', page
    )
    text = re.sub(r"<(script|style|code)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return html.unescape(" ".join((text, *told)))


@pytest.mark.asyncio
async def test_no_page_of_a_tree_speaks_of_a_build_cache(
    tree: Any, tree_file: Path
) -> None:
    """Whatever is asked, and also where nothing is found: what is listed is called a
    spec.
    """
    dag_hash, _ = sqlite3.connect(tree_file).execute(HDF5).fetchone()
    paths = (
        "/", "/packages", "/releases", "/stacks", "/about", "/cover", "/find", "/feed.atom",
        "/release/installed", "/package/hdf5", "/package/glibc", f"/spec/{dag_hash}",
        "/packages?has=zen9", "/packages?release=installed", "/packages?host=zen4",
        f"/package/hdf5?open={dag_hash}", "/package/hdf5?version=9", "/find?q=hdf5@99",
        "/find?q=*", "/find?q=he", "/find?q=%22", "/cover?q=hdf5",
        "/cover?q=hdf5@99%0Anope", "/coverage/installed?by=target", "/package/nope",
        "/spec/zzzzzzz", "/release/nope", "/stack/nope", "/opensearch.xml",
    )  # fmt: skip

    for path in paths:
        page = await followed(tree, path)
        found = re.search(
            r"(?i)\bbinar|mirror|build cache|prebuilt|\binstall\b", words_of(page)
        )
        assert found is None, f"{path}: {found}"


@pytest.mark.asyncio
async def test_pages_of_a_tree_give_the_command_that_loads(
    tree: Any, tree_file: Path
) -> None:
    """And the prefix, who asked for it, and when it was installed; none that
    installs.
    """
    dag_hash, prefix = sqlite3.connect(tree_file).execute(HDF5).fetchone()
    for path in (
        "/",
        "/release/installed",
        "/package/hdf5",
        f"/spec/{dag_hash}",
        "/releases",
    ):
        said = await text(tree, path)
        assert not re.search(r"spack (mirror|buildcache|install )|>Install<", said), (
            path
        )

    said = await text(tree, f"/spec/{dag_hash}")
    assert f"spack load hdf5/{dag_hash[:7]}" in said
    assert prefix in said
    assert "Requested explicitly, installed on 2023-12-06" in said

    count = (
        sqlite3.connect(tree_file)
        .execute(f"SELECT count(*) FROM ({EXPLICIT})")
        .fetchone()[0]
    )
    assert f"{count} specs that were installed explicitly" in await text(
        tree, "/release/installed"
    )
    table = "/spack-cache/installations.json?release=installed&explicit=1&_shape=array&_size=max"
    assert len((await tree.client.get(table)).json()) == count > 1
    assert "<h1>What is installed?</h1>" in await text(tree, "/")


@pytest.mark.asyncio
async def test_pages_of_a_tree_and_a_mirror_say_which_of_both(
    real_tree_file: Path, real_tree: sqlite3.Connection
) -> None:
    """A spec of both can be loaded, and installed from the mirror."""
    dag_hash, _ = real_tree.execute(HDF5).fetchone()
    said = await text(site(real_tree_file), f"/spec/{dag_hash}")
    assert f"spack load hdf5/{dag_hash[:7]}" in said
    assert f"spack install --cache-only hdf5/{dag_hash[:7]}" in said


@pytest.mark.asyncio
async def test_what_was_asked_for_explicitly_can_be_chosen(
    tree: Any, tree_file: Path
) -> None:
    """In a search and from a package's page; the rows, the JSON and the CSV leave out
    all else.
    """
    asked = f"SELECT package, hash FROM ({EXPLICIT}) ORDER BY 1, 2"
    hashes: dict[str, set[str]] = {}
    for package, dag_hash in sqlite3.connect(tree_file).execute(asked):
        hashes.setdefault(package, set()).add(dag_hash)

    for package in sorted(hashes)[:8]:
        page = await tree.client.get(f"/package/{package}")
        assert f"/find?q={package}@:&amp;explicit=1" in page.text
        said = await text(tree, f"/find?q={package}&explicit=1")
        assert set(re.findall(r'title="([a-z2-7]{32})"', said)) <= hashes[package]
        assert re.search(r'name="explicit" value="1" checked', said)
        found = (await tree.client.get(f"/find.json?q={package}&explicit=1")).json()
        assert sum(each["spec_count"] for each in found) == len(hashes[package])


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site of two installations; only the first one has hdf5."""
    folder = tmp_path_factory.mktemp("machines")
    records = real_tree()
    others = [record for record in records if record["spec"]["name"] != "hdf5"]
    trees = {"derecho": records, "casper": others}
    for name, own in trees.items():
        write_tree(folder / name / "opt", own)
    build([folder / name for name in trees], folder / "machines.db")
    return site(folder / "machines.db")


@pytest.mark.asyncio
async def test_an_environment_is_loaded_on_each_machine(machines: Any) -> None:
    """A command loads only what its machine has."""
    page = await text(machines, "/cover?q=hdf5%0Acmake%0Aautoconf")
    card = page[page.index('id="install"') : page.index("Change or share")]
    parts = re.split(r"On (casper|derecho)</h3>", card)[1:]
    commands = dict(zip(parts[::2], parts[1::2], strict=True))
    loaded = {
        name: set(re.findall(r"(hdf5|cmake|autoconf)/", html.unescape(part)))
        for name, part in commands.items()
    }

    assert loaded == {"derecho": {"hdf5"}, "casper": {"cmake", "autoconf"}}


@pytest.mark.asyncio
async def test_installations_are_called_so(tree: Any, machines: Any) -> None:
    """Pages of installations have neither releases, stacks nor days of snapshots."""
    for path in ("/", "/packages", "/package/cmake", "/releases", "/about"):
        for pages in (tree, machines):
            words = words_of(await text(pages, path))
            found = re.search(r"\b[Rr]eleases?\b|Last snapshot|The newest is", words)
            assert found is None, f"{path}: {found}"
    for path in ("/find?q=%25gcc", "/dependents?q=zlib-ng", "/stacks", "/diff"):
        words = words_of(await text(tree, path))
        found = re.search(r"\b[Rr]eleases?\b|[Bb]inar|installed built", words)
        assert found is None, f"{path}: {found}"
    # One installation cannot be compared with another.
    assert "/diff" not in await text(tree, "/")
    assert "Compare two installations" in await text(machines, "/")

    # Processors for which nothing is installed have no column.
    packages = await text(tree, "/packages?q=hdf5")
    columns = re.findall(r'<span class="name">([^<]+)<', packages)
    assert columns == ["x86-64-v3", "other"]
