"""Broad specs over more configurations than one value can name on the site."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.site.filters import EVERYWHERE, Filters, Narrowing
from spack_cache_db.site.http import own_pages
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import SearchPage
from spack_cache_db.site.sql import functions as sql_functions
from spack_cache_db.site.sql import limits
from tests.pagetexts import spec_hash
from tests.site.conftest import SQL, site

pytestmark = pytest.mark.slow

PACKAGES = 4
CONFIGURATIONS = 32_000
"""Their ids are a text of more than 200 kB."""
VERSIONS = CONFIGURATIONS // PACKAGES
BROAD = ("*", "@1: +x k=* target=:zen3")


def tables() -> dict[str, Iterator[tuple[Any, ...]]]:
    """Return the rows of a file in which each configuration has its own version and
    variants.
    """
    every = range(1, CONFIGURATIONS + 1)
    packages = range(1, PACKAGES + 1)

    def package(number: int) -> int:
        return (number - 1) // VERSIONS + 1

    def newest(number: int) -> str:
        return f"1.{number * VERSIONS}"

    named = (1, "develop", "branch", None, 1)
    counts = (None, PACKAGES, CONFIGURATIONS, None, None, 0)
    release = (*named, *counts)
    return {
        "releases": iter([release]),
        "packages": (
            (at, f"pkg-{at}", VERSIONS, VERSIONS, 1, newest(at), None, None, 1)
            for at in packages
        ),
        "versions": (
            (at, package(at), f"1.{at}", (at - 1) % VERSIONS + 1, None) for at in every
        ),
        "compilers": iter([(1, "gcc@13.2.0", "gcc", "13.2.0")]),
        "operating_systems": iter([(1, "rhel8")]),
        "platforms": iter([(1, "linux")]),
        "targets": iter([(1, "zen3", "x86_64")]),
        "stack_sets": iter([(1, "[]", "[]")]),
        "variants": ((at, *_variant(at)) for at in range(CONFIGURATIONS + 1)),
        "variant_sets": ((at, f"+x k={at}") for at in every),
        "variant_set_members": ((at, member) for at in every for member in (0, at)),
        "configurations": (
            (at, package(at), at, 1, 1, 1, 1, at, 1, 1, None, None, 1) for at in every
        ),
        "specs": (
            (at, spec_hash(at), at, 1, 1, 0, 1, None, None, 1, 0) for at in every
        ),
        "listings": ((1, at, 1, None, None) for at in every),
        "configuration_history": ((at, 1, 1, 0, 0) for at in every),
    }


def _variant(number: int) -> tuple[str, str, str]:
    return ("x", "true", "+x") if number == 0 else ("k", str(number), f"k={number}")


def records() -> dict[str, Iterator[tuple[Any, ...]]]:
    """Return the rows of an index in which every other spec depends on the first."""
    sizes = (CONFIGURATIONS, CONFIGURATIONS)
    flags = json.dumps({"cflags": ["-O3"]})
    source = (1, 1, 1, "develop/root/index.json", "0" * 64, "8")
    mirror = (*source, None, 0, None, None, *sizes, 1)
    return {
        "stacks": iter([(1, "root", 1, 1, CONFIGURATIONS)]),
        "mirrors": iter([mirror]),
        "nodes": iter([(1, "builtin", None, flags, None, 0, 0)]),
        "record_ranges": ((at, 1, 1, 1, 1) for at in range(1, CONFIGURATIONS + 1)),
        "dependency_types": iter([(1, "build,link")]),
        "dependency_virtuals": iter([(1, "")]),
        "dependencies": ((at, 1, 1, 1, 1) for at in range(2, CONFIGURATIONS + 1)),
    }


def written(file: Path, rows_of: dict[str, Iterator[tuple[Any, ...]]]) -> Path:
    """Write a file without pages or indexes."""
    # An open connection would keep its memory from the tests that follow a failure.
    with closing(sqlite_file.create(file)) as db:
        for table, rows in rows_of.items():
            sqlite_file.insert(db, table, rows)
        sqlite_file.index_text(
            db, {"configurations": [], "packages": [], "known_packages": []}
        )
        sqlite_file.finish(db)
    file.with_suffix(".inspect.json").write_text("{}")
    return file


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 32,000 configurations, as an index has them."""
    return written(
        tmp_path_factory.mktemp("large") / "spack-cache.db", tables() | records()
    )


@pytest.fixture(scope="module")
def served(large: Path) -> Iterator[Any]:
    """The site over that file, with time enough on the slowest of machines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_pages, "PAGE_SECONDS", 60.0)
        yield site(large, immutable=False, sql_time_limit_ms=60_000)


@pytest.fixture(scope="module")
def conn(large: Path) -> Iterator[sqlite3.Connection]:
    """A connection as bounded as those of the site."""
    connection = sqlite3.connect(large)
    sql_functions.register(connection)
    limits.restrict(connection)
    yield connection
    connection.close()


def test_the_file_is_too_large_for_one_value(conn: sqlite3.Connection) -> None:
    """The ids of all configurations, as one text, are refused: so no answer may need
    them.
    """
    with pytest.raises(sqlite3.DataError, match="too big"):
        conn.execute("SELECT ?", [json.dumps(list(range(1, CONFIGURATIONS + 1)))])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("%[deptypes=link] pkg-1 k=*", CONFIGURATIONS - 1),
        ("cflags=-O3 target=:zen3", CONFIGURATIONS),
        ("%gcc ^pkg-1", 0),
    ],
)
def test_what_is_asked_of_dependencies(
    conn: sqlite3.Connection, text: str, count: int
) -> None:
    """On every road, also where nothing satisfies it and it is said why."""
    lookups = read_lookups(conn)
    by_sql = (
        "SELECT count(*) FROM specs WHERE spec_match(?, hash)",
        "SELECT count(*) FROM configurations WHERE spec_match(?, id)",
    )

    narrowed = Narrowing(release="develop")
    pages = [Search(lookups, each).result(text) for each in (EVERYWHERE, narrowed)]
    asked = [conn.execute(each, [text]).fetchone()[0] for each in by_sql]

    found = [page for page in pages if isinstance(page, SearchPage)]
    counts = []
    for page in found:
        # A spec without a package is answered by packages.
        if page.packages is not None:
            counts.append(page.packages.configuration_count)
        elif page.answer is not None:
            counts.append(page.answer.count)
    assert counts == [count, count]
    assert asked == [count, count]
    assert len(find(conn, text, with_hashes=True)) == count
    assert all((page.why is None) == (count > 0) for page in found)


def test_a_package_of_thousands_of_versions(conn: sqlite3.Connection) -> None:
    """Its page and an environment that asks for it are answered as any other."""
    lookups = read_lookups(conn)
    specs = ["pkg-1", "pkg-1 +x", "pkg-2 ^pkg-1", "pkg-2@0"]

    pages = [
        load_package(lookups, "pkg-1", filters)
        for filters in (
            Filters(),
            Filters(release="develop", host="zen3", variant=("+x",)),
        )
    ]
    found = cover(conn, specs, release="develop")

    assert [page.configuration_count for page in pages if page] == [VERSIONS, VERSIONS]
    answers = [covered for covered in found.specs if covered.is_root is None]
    assert [each.configurations for each in answers] == [
        VERSIONS,
        VERSIONS,
        VERSIONS,
        0,
    ]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("text", BROAD)
async def test_every_page_answers(served: Any, text: str) -> None:
    """The search page and SQL answer broad specs on the site itself."""
    count = quote(
        "select count(*) as n from configurations where spec_match(:spec, id)"
    )

    search = await served.client.get(f"/find?q={quote(text)}")
    counted = await served.client.get(
        f"{SQL}.json?_shape=array&sql={count}&spec={quote(text)}"
    )

    assert search.status_code == 200
    assert f"{CONFIGURATIONS:,} configurations" in search.text
    assert counted.json() == [{"n": CONFIGURATIONS}]
