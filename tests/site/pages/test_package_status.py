"""The list of packages beside Spack's: what is behind and what is missing, where it is asked."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.packages import behind
from spack_cache_db.site.answers import SiteSettings
from spack_cache_db.site.pages.lists import ListFilters, list_rows, load_packages
from spack_cache_db.site.workers.worker import open_site
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, write
from tests.site.conftest import asked_of, site

VERSIONS = ("1.0", "1.9", "1.10", "2.0", "3.1")
STACKS = ("e4s", "ml")
RELEASES = ("develop", "v0.23")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random binaries of ten packages, and the versions that Spack has of twelve."""
    folder, rng = tmp_path_factory.mktemp("lag"), random.Random(7)
    pages = {
        f"{package}-{release}": page(
            f"p{package}",
            release,
            [
                spec(rng.randrange(10**6), versions=[version], stacks=[rng.choice(STACKS)])
                for version in rng.sample(VERSIONS, rng.randint(1, 3))
            ],
        )
        for package in range(10)
        for release in rng.sample(RELEASES, rng.randint(1, 2))
    }
    known = [
        published(f"p{at}", *rng.sample(VERSIONS, 3), description="<b>What</b> it is. More.\n")
        for at in range(12)
    ]
    build([write(folder / "pages", **pages), write_packages(folder / "data", *known)],
          folder / "x.db")  # fmt: skip
    return folder / "x.db"


def test_the_list_is_that_of_the_command(file: Path) -> None:
    """In each release, each stack and both; what is missing is what has no row there."""
    conn = sqlite3.connect(file)
    lookups = read_lookups(conn)
    for release in (None, *RELEASES):
        for stack in (None, *STACKS):
            where = {"release": release or "", "stack": stack or ""}
            found = load_packages(lookups, ListFilters(**where, behind="1"))
            assert {(row["name"], row["version"], row["behind"]) for row in found.rows} == {
                (each.name, each.newest_version, each.versions_behind)
                for each in behind(file, release=release, stack=stack)
            }
            every = load_packages(lookups, ListFilters(**where))
            missing = load_packages(lookups, ListFilters(**where, missing="1"))
            assert {row["name"] for row in missing.rows} == {f"p{at}" for at in range(12)} - {
                row["name"] for row in every.rows
            }
            assert missing.rows
    conn.close()


def test_most_comes_first(file: Path) -> None:
    """Unless another order is asked for; rows are text, and CSV has their columns."""
    conn = sqlite3.connect(file)
    lookups = read_lookups(conn)
    found = load_packages(lookups, ListFilters(behind="1"))
    counts = [row["behind"] for row in found.in_order()]
    assert counts == sorted(counts, reverse=True)
    asked = ListFilters(missing="1", q="p1", sort="name")
    assert [row["name"] for row in load_packages(lookups, asked).in_order()] == ["p10", "p11"]
    rows = list_rows(load_packages(lookups, asked), "/package/")
    assert "&lt;b&gt;What&lt;/b&gt; it is.<" in rows
    text = asked_of(open_site(SiteSettings(file.as_uri())), f"/packages.csv{asked.address()}").body
    assert text.startswith(b"name,latest,dependents,summary\np10,")
    conn.close()


def test_what_cannot_be_compared_is_told(file: Path, samples_file: Path) -> None:
    """Without package data, and where nothing could be both."""
    found_site = open_site(SiteSettings(file.as_uri()))
    for other in ("behind", "lacks"):
        refused = asked_of(found_site, f"/packages.json?missing=1&{other}=x86_64").body
        expected = f"missing and {other} exclude each other: ask for one of them."
        assert json.loads(refused)["error"] == expected
    conn = sqlite3.connect(samples_file)
    found = load_packages(read_lookups(conn), ListFilters(behind="1"))
    assert found.rows
    assert found.faults == ("This database has no package data: it cannot be compared with Spack.",)
    conn.close()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_pages_of_releases_and_stacks_lead_to_the_lists(file: Path) -> None:
    """Narrowed to the release or the stack, where there is package data."""
    lookups, served = read_lookups(sqlite3.connect(file)), site(file)
    places = [("release", each.name) for each in lookups.releases.values()]
    places += [("stack", each.name) for each in lookups.stacks.values()]
    for kind, name in places:
        text = (await served.client.get(f"/{kind}/{name}")).text
        for field in ("behind", "missing"):
            address = f"/packages?{kind}={name}&{field}=1"
            assert address.replace("&", "&amp;") in text
            assert (await served.client.get(address)).status_code == 200
