"""Permissions: what `allow` keeps to some holds for our pages and the file, in both
Datasettes.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.routes import ROUTES
from tests.site.addresses import OWN, UNKNOWN
from tests.site.cache import MPI, spec_hash
from tests.site.conftest import SQL, metadata, site_described

pytestmark = pytest.mark.slow

STAFF = {"id": "staff"}
COMPARED = "/diff?old=develop&new=v0.23.1"
DATA = (
    "/suggest.json?q=hdf",
    "/find.json?q=hdf5",
    "/find.csv?q=hdf5",
    "/package/hdf5.json",
    "/llms.txt",
    "/robots.txt",
    "/sitemap.xml",
    "/opensearch.xml",
    COMPARED,
    "/feed.atom",
    "/badge/hdf5.svg",
    "/badge/release/develop.svg",
    "/badge.svg",
)
SPEC = f"/spec/{spec_hash(MPI)[:7]}"
CLOSED = (*OWN, *UNKNOWN, *DATA, "/spack-cache.db", SPEC, f"{SPEC}.json")
DATASETTES = (
    "/spack-cache",
    "/spack-cache/specs.json",
    "/spack-cache/most_hashes.json?package=hdf5",
)


def closed(database: Path, *where: str, to: object, key: str = "allow") -> Any:
    """Return the site with an `allow` somewhere in its metadata, or in 1.0 its
    configuration.
    """
    described = metadata()
    place = described
    for each in where:
        place = place.setdefault(each, {})
    place[key] = to
    return site_described(database, described)


async def status(served: Any, path: str, actor: dict[str, str] | None = None) -> int:
    """Return the status with which somebody's request is answered."""
    cookies = {"ds_actor": served.sign({"a": actor}, "actor")} if actor else {}
    answer = await served.client.get(path, cookies=cookies)
    return int(answer.status_code)


def test_every_route_is_asked_for_here() -> None:
    """Each of our routes is that of some address below; a new one needs an address."""
    paths = [address.partition("?")[0] for address in CLOSED]

    for pattern, *_ in ROUTES:
        assert any(re.match(pattern, path) for path in paths), pattern


@pytest.mark.asyncio
@pytest.mark.parametrize("where", [(), ("databases", "spack-cache")])
async def test_who_may_not_view_gets_nothing(
    database: Path, where: tuple[str, ...]
) -> None:
    """With `allow` on the instance or the database, all of it is 403, and kept by no
    cache.
    """
    served = closed(database, *where, to=STAFF)

    for path in (*CLOSED, *DATASETTES):
        assert await status(served, path) == 403, path
        assert await status(served, path, STAFF) in (200, 302, 404), path
    assert await status(served, "/package/hdf5", {"id": "other"}) == 403
    refused = await served.client.get("/spack-cache.db")
    assert refused.headers["cache-control"] == "no-store"
    assert not refused.content.startswith(b"SQLite")


@pytest.mark.asyncio
async def test_what_some_may_view_is_kept_for_nobody(database: Path) -> None:
    """An answer to somebody who is known is not kept by a cache that others share."""
    served = closed(database, to=STAFF)
    cookies = {"ds_actor": served.sign({"a": STAFF}, "actor")}

    for path in ("/", "/package/hdf5", "/spack-cache.db"):
        answer = await served.client.get(path, cookies=cookies)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "private, no-store"


@pytest.mark.asyncio
async def test_a_database_may_be_open_where_the_rest_is_not(database: Path) -> None:
    """What is said of the database comes before what is said of the instance."""
    described = metadata() | {"allow": STAFF}
    described["databases"]["spack-cache"]["allow"] = True
    served = site_described(database, described)

    assert [await status(served, path) for path in ("/", "/spack-cache.db")] == [
        200,
        200,
    ]
    assert await status(served, "/-/versions.json") == 403


@pytest.mark.asyncio
async def test_sql_and_queries_can_be_kept_to_some(database: Path) -> None:
    """`allow_sql` and the `allow` of a canned query leave the pages open."""
    no_sql = closed(database, "databases", "spack-cache", to=STAFF, key="allow_sql")
    asked = f"{SQL}.json?sql=select+1"

    assert [await status(no_sql, asked, each) for each in (None, STAFF)] == [403, 200]
    assert await status(no_sql, "/find?q=hdf5+%2Bmpi") == 200
    assert await status(no_sql, DATASETTES[2]) == 200


@pytest.mark.asyncio
async def test_a_canned_query_can_be_kept_to_some(database: Path) -> None:
    """Who may not view a query gets a 403 for it, in both Datasettes."""
    one = closed(
        database, "databases", "spack-cache", "queries", "most_hashes", to=STAFF
    )

    assert [await status(one, DATASETTES[2], each) for each in (None, STAFF)] == [
        403,
        200,
    ]
    assert await status(one, "/find?q=hdf5+%2Bmpi") == 200
