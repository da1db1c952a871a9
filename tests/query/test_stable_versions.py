"""Only stable versions: in Python, in `find --stable`, and on pages."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.api import find, install_plan
from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.site.pages.list_page import ListFilters
from spack_cache_db.site.pages.package_list import load_packages
from tests.commands import run
from tests.pagetexts import page, spec, write
from tests.site.conftest import asked_of, open_site

STABLE = ("1.0", "1.10", "2.0-rc1", "2024-01", "tr6_forwards")
MOVING = ("develop", "main", "master", "stable", "1.2.develop", "git.v1=1.5")
RELEASES = ("develop", "v0.23")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random versions of ten packages, one that only moves, and one that never does."""
    folder = tmp_path_factory.mktemp("stable")
    rng = random.Random(3)
    pages = {}
    for release in RELEASES:
        for number in range(10):
            versions = rng.sample(STABLE + MOVING, 4)
            specs = [
                spec(rng.randrange(10**6), versions=[version]) for version in versions
            ]
            pages[f"p{number}-{release}"] = page(f"p{number}", release, specs)
    pages["branch"] = page("branch", "develop", [spec(1, versions=["main"])])
    pages["number"] = page("number", "develop", [spec(2, versions=["1.0"])])
    build(write(folder / "in", **pages), folder / "x.db")
    return folder / "x.db"


@pytest.fixture(scope="module")
def lookups(file: Path) -> Iterator[Lookups]:
    """The database, as pages read it."""
    with closing(sqlite3.connect(file)) as connection:
        yield read_lookups(connection)


def test_an_answer_has_the_stable_versions(file: Path) -> None:
    """All of them and no other, of one package and of all, in any release."""
    for query in ("*", *(f"p{number}" for number in range(10))):
        for release in (None, *RELEASES):
            every = find(file, query, release=release)
            expected = [
                record for record in every if record.configuration.version in STABLE
            ]
            assert list(find(file, query, release=release, stable=True)) == expected


def test_a_list_counts_stable_versions(file: Path, lookups: Lookups) -> None:
    """Its numbers are those of `find`; a package without a stable version is left
    out.
    """
    for release in (None, *RELEASES):
        filters = ListFilters(stable="1", release=release or "")
        rows = {row["name"]: row for row in load_packages(lookups, filters).rows}
        found = find(file, "*", release=release, stable=True)
        counts: dict[str, int] = {}
        for record in found:
            name = record.configuration.package
            counts[name] = counts.get(name, 0) + record.spec_count
        assert {name: row["specs"] for name, row in rows.items()} == counts
        assert {row["version"] for row in rows.values()} <= set(STABLE)
        assert "branch" not in rows


def test_a_proposal_moves_only_if_all_matches_do(file: Path) -> None:
    """With the filter and without it; a query for a branch gets it."""
    for number in range(10):
        name = f"p{number}"
        plan = install_plan(file, name)
        assert plan is not None
        version = plan.build.split("@")[1].split(",")[0].split(" ")[0]
        assert (version in STABLE) == bool(find(file, name, stable=True))

    plan = install_plan(file, "branch")
    assert plan is not None
    assert plan.build.startswith("branch@main")
    assert install_plan(file, "branch", stable=True) is None


def test_the_command_says_what_it_leaves_out(file: Path) -> None:
    """If only branches match, a note names them, and the status is 1."""
    found = run("find", "number", file, "--stable", "--csv")
    assert found.exit_code == 0

    nothing = run("find", "branch", file, "--stable")
    assert nothing.exit_code == 1
    assert "without stable versions: 1 configuration; there is main" in nothing.stderr

    asked = run("find", "branch@main", file, "--stable", "--json")
    assert json.loads(asked.stdout) == []


def test_pages_leave_out_versions_that_move(file: Path) -> None:
    """The page of a package, its data, the search and the list, each with its box."""
    site = open_site(file)

    def text(address: str) -> str:
        return bytes(asked_of(site, address).body).decode()

    for address in (
        "/package/number?stable=1",
        "/packages?stable=1",
        "/find?q=number@:&stable=1",
    ):
        assert 'name="stable" value="1" checked' in text(address), address
    assert "stable versions only" in text("/package/number?stable=1")
    found = text("/find?q=number@:&stable=1")
    assert "<span>versions</span><b>stable versions only</b>" in found
    assert '<a href="/find?q=number%40%3A" aria-label="Remove stable' in found
    none = text("/package/branch?stable=1")
    assert "No configuration of branch matches all filters" in none
    assert "version__in=1.0" in text("/package/number?stable=1")
    rows = json.loads(text("/find.json?q=*&stable=1"))
    assert {row["version"] for row in rows} <= set(STABLE)
    assert json.loads(text("/packages.json?stable=1&q=number"))[0]["version"] == "1.0"
    refused = asked_of(site, "/packages.json?stable=1&q=branch")
    assert refused.status == 404
