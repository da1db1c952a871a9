"""Databases of any name and beside others, and the title, source and choices of
each.
"""

import json
import re
import shutil
import sqlite3
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from datasette.utils import StartupError, tilde_encode

from spack_cache_db.assembly.builds import build
from spack_cache_db.schema import identity
from tests.indexes import index, node, record
from tests.paths import ROOT
from tests.site.addresses import OWN, get
from tests.site.cache import MPI, spec_hash
from tests.site.conftest import IS_065, metadata, site

pytestmark = pytest.mark.slow


def plain(*files: Path, **options: Any) -> Any:
    """A Datasette started on files alone; its plugin is loaded, as if it were
    installed.
    """
    from datasette.plugins import pm

    from spack_cache_db.site import plugin

    if not pm.is_registered(plugin):
        pm.register(plugin)
    return Datasette([], immutables=[str(path) for path in files], **options)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A database that somebody else made, with names that ours has as well."""
    file = tmp_path / "foreign.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE packages (name TEXT, hash TEXT)")
    connection.execute("INSERT INTO packages VALUES ('zlib', ?)", [spec_hash(MPI)])
    connection.commit()
    connection.close()
    return file


def links_of(text: str) -> set[str]:
    """Return the addresses to which a page links on this site, without what follows `?`
    or `#`.
    """
    return {unescape(each) for each in re.findall(r'(?:href|src)="(/[^"#?]*)', text)}


@pytest.mark.asyncio
async def test_a_file_may_have_any_name(database: Path, tmp_path: Path) -> None:
    """Every page of ours is there, and every link to data leads to the file under its
    own name.
    """
    name = "cache.v2 größe"
    served = plain(Path(shutil.copy(database, tmp_path / f"{name}.db")))
    data = f"/{tilde_encode(name)}"
    seen = set()
    for path in OWN:
        answer = await get(served, path)
        assert answer.status_code in (200, 302), path
        seen |= {each for each in links_of(answer.text) if each.startswith(data)}

    assert {data, f"{data}.db", f"{data}/builds"} <= seen
    for path in seen | {"/static/parts.css"}:
        assert (await get(served, path)).status_code == 200, path
    rows = await get(
        served, f"{data}/compilers_of_release.json?release=develop&_shape=array"
    )
    assert rows.json()
    assert "/spack-cache" not in (await get(served, "/robots.txt")).text


@pytest.mark.asyncio
async def test_files_stand_beside_each_other(
    database: Path, tmp_path: Path, foreign: Path
) -> None:
    """The first catalogue has our pages; all others are linked and have theirs, as they
    are.
    """
    first, second = (
        Path(shutil.copy(database, tmp_path / f"{name}.db")) for name in "ab"
    )
    served = plain(foreign, first, second)
    home = (await get(served, "/about")).text
    spec = f'<a href="/spec/{spec_hash(MPI)}">'

    assert {"/a", "/b", "/foreign"} <= links_of(home)
    for name in "ab":
        assert (
            await get(served, f"/{name}/most_hashes?package=hdf5")
        ).status_code == 200
        described = (await get(served, f"/{name}/packages")).text
        assert (
            "Packages that have a binary" in described
            or "Releases that have" in described
        )
    assert spec in (await get(served, "/a/builds?package=hdf5")).text
    assert spec not in (await get(served, "/b/builds?package=hdf5")).text
    rows = await get(served, "/foreign/packages.json?_shape=array")
    assert [each["name"] for each in rows.json()] == ["zlib"]
    assert "/spec/" not in (await get(served, "/foreign/packages")).text
    assert (await get(served, "/foreign.db")).content == foreign.read_bytes()
    assert (await get(served, "/nothing.db")).status_code == 404


@pytest.mark.asyncio
async def test_who_may_not_view_a_database_sees_no_link_to_it(
    database: Path, foreign: Path
) -> None:
    """The page about the site links only what its visitor may open."""
    allow = {"databases": {"foreign": {"allow": {"id": "staff"}}}}
    served = plain(database, foreign, **{"metadata" if IS_065 else "config": allow})
    staff = {"ds_actor": served.sign({"a": {"id": "staff"}}, "actor")}

    assert "/foreign" not in links_of((await get(served, "/about")).text)
    shown = await served.client.get("/about", cookies=staff)
    assert "/foreign" in links_of(shown.text)


@pytest.mark.asyncio
async def test_a_datasette_without_a_catalogue_stays_as_it_is(foreign: Path) -> None:
    """An installed plugin changes nothing where no file of ours is served."""
    served = plain(foreign)
    home = await get(served, "/")

    assert "/foreign" in links_of(home.text)
    assert "/static/parts.css" not in home.text
    assert "content-security-policy" not in home.headers
    for path in ("/find", "/static/parts.css"):
        assert (await get(served, path)).status_code == 404


@pytest.mark.asyncio
async def test_the_log_says_why_a_file_has_no_pages(
    database: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file of another schema is no catalogue: the log names it and says what to
    do.
    """
    old = Path(shutil.copy(database, tmp_path / "old.db"))
    connection = sqlite3.connect(old)
    connection.execute(f"PRAGMA user_version = {identity.SCHEMA_VERSION - 1}")
    connection.close()
    served = plain(old, plugins_dir=str(ROOT / "plugins"))
    home = await get(served, "/")

    assert home.status_code == 404
    assert "made by spack-cache-db" in home.text
    said = capfd.readouterr().err
    assert str(old) in said
    assert "brings it up to date" in said


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["find", "package", "about", "stacks", "static"])
async def test_a_name_that_is_a_page_is_refused(
    database: Path, tmp_path: Path, name: str
) -> None:
    """A file whose tables our pages would hide is refused at the start, by name."""
    served = plain(Path(shutil.copy(database, tmp_path / f"{name}.db")))
    with pytest.raises(StartupError, match=f"'{name}'.*rename"):
        await served.invoke_startup()


PAGES = (
    "/",
    "/package/hdf5",
    "/release/develop",
    "/stack/e4s",
    "/find?q=hdf5%401",
    "/find?q=hdf5%40%3A2",
    "/find?q=%22",
    "/package/nope",
    "/spack-cache",
    "/spack-cache/releases",
)


def own_mirror(folder: Path) -> Path:
    """Build the file of a mirror of one's own."""
    place = folder / "input" / "develop" / "e4s"
    place.mkdir(parents=True)
    (place / "index.json").write_bytes(
        index(record(node("hdf5")), record(node("zlib")))
    )
    (place / "mirror.json").write_text(
        json.dumps({"url": "https://cache.example.org/v1"})
    )
    build(folder / "input", folder / "spack-cache.db")
    return folder / "spack-cache.db"


@pytest.mark.asyncio
async def test_a_mirror_of_ones_own_is_called_by_its_address(tmp_path: Path) -> None:
    """Title, text and commands are those of the mirror; nothing speaks of Spack's
    public cache.
    """
    served = site(own_mirror(tmp_path))
    home = (await get(served, "/")).text

    assert "<title>Build cache of cache.example.org: " in home
    package = (await get(served, "/package/hdf5")).text
    assert 'data-copy="spack mirror add develop https://cache.example.org/v1' in package
    assert "spack install --cache-only hdf5/" in package
    for path in PAGES:
        text = (await get(served, path)).text
        assert "Build cache of cache.example.org" in text, path
        for word in (
            "public",
            "cache.spack.io",
            "binaries.spack.io",
            "pages show",
            "Apache",
        ):
            assert word not in text, (path, word)


@pytest.mark.asyncio
async def test_pages_are_the_public_cache(datasette: Any) -> None:
    """A file of pages is Spack's public build cache, with its source and license."""
    home = (await get(datasette, "/")).text
    tables = (await get(datasette, "/spack-cache")).text

    assert "<title>Spack build cache: " in home
    assert "Spack&#39;s public build cache" in home
    assert 'href="https://cache.spack.io/"' in home
    assert 'href="https://cache.spack.io/"' in tables
    assert "Apache-2.0" in tables


@pytest.mark.asyncio
async def test_metadata_comes_first(tmp_path: Path) -> None:
    """Who serves the file may say another source, and what is not said comes from the
    file.
    """
    described = {"title": "Software of <us>"} | metadata()
    ours = {"source": "Ours", "source_url": "https://ours.example.org/"}
    described["databases"]["spack-cache"] |= ours
    served = site(own_mirror(tmp_path), described)
    text = (await get(served, "/spack-cache")).text

    assert 'href="https://ours.example.org/"' in text
    assert "the mirror at" not in text
    for path in PAGES:
        text = (await get(served, path)).text
        assert "Software of &lt;us&gt;" in text, path
        assert "Build cache of cache.example.org" not in text, path
