"""The site in each version of Datasette: every kind of page, data, limits, the server
itself.
"""

import hashlib
from typing import Any

import httpx
import pytest

from tests.serving import Server
from tests.site.cache import MPI, spec_hash
from tests.site.conftest import IS_065, SQL

PAGES = {
    "/": "Is there a binary for my machine?",
    "/package/hdf5": "hdf5",
    f"/spec/{spec_hash(MPI)}": "Install",
    "/packages": "Packages",
    "/releases": "develop",
    "/stacks": "e4s",
    "/release/develop": "develop",
    "/stack/e4s": "e4s",
    "/coverage/develop": "develop",
    "/diff/develop...v0.23.1": "removed",
    "/find?q=%2Bmpi": "hdf5",
    "/cover?q=hdf5": "hdf5",
    "/about": "problem",
    "/spack-cache": "Ready to run",
    "/spack-cache/builds": '<html lang="en">',
    "/spack-cache/builds?package=hdf5": "/package/hdf5",
    "/spack-cache/builds?_facet_stack=stacks": "stacks__arraycontains=e4s",
    "/spack-cache/build_listings": "Count by stack",
    "/spack-cache/releases": "The page of releases",
    "/spack-cache/packages?_search=hdf5": "hdf5",
    "/spack-cache/specs/1": "configuration",
    "/spack-cache/variant_values_of_package?package=hdf5": "hdf5",
    f"{SQL}?sql=SELECT+count(*)+AS+n+FROM+specs": "23",
}
DATA = (
    "/package/hdf5.json",
    "/packages.json",
    "/find.json?q=hdf5",
    "/cover.json?q=hdf5",
)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_shown(datasette: Any, path: str) -> None:
    """Each kind of page has its content, with the headers that keep it safe."""
    answer = await datasette.client.get(path)

    assert answer.status_code == 200
    assert PAGES[path] in answer.text
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.asyncio
async def test_rows_are_the_same_in_each_form(datasette: Any) -> None:
    """JSON and CSV of a table have the same rows; JSON of our pages can be read."""
    rows = (await datasette.client.get("/spack-cache/builds.json?_shape=array")).json()
    lines = (await datasette.client.get("/spack-cache/builds.csv")).text.splitlines()

    assert len(rows) == len(lines) - 1 > 10
    for path in DATA:
        assert (await datasette.client.get(path)).json(), path


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{SQL}.json?sql=SELECT+zeroblob(900000000)", 400),
        (f"{SQL}.json?sql=DELETE+FROM+specs", 400),
        (f"{SQL}.json?sql=SELECT+load_extension('x')", 400),
        ("/spack-cache/builds?no_such=1", 400),
        ("/package/nope", 404),
        ("/-/threads", 404),
        ("/packages.json?no_such=1", 400),
    ],
)
async def test_what_is_refused_says_so(datasette: Any, path: str, status: int) -> None:
    """Statements beyond the limits, unknown names and closed tools have a status and a
    reason.
    """
    answer = await datasette.client.get(path)

    assert answer.status_code == status
    assert len(answer.text) > 20


@pytest.mark.slow
def test_a_server_starts(server: Server) -> None:
    """`serve` gives pages, the file with its digest, and a part of it."""
    with httpx.Client(base_url=server.address, verify=False, timeout=60) as ask:
        whole = ask.get("/spack-cache.db")
        part = ask.get("/spack-cache.db", headers={"Range": "bytes=0-15"})

        assert ask.get("/package/hdf5").status_code == 200
        assert hashlib.sha256(whole.content).hexdigest() in whole.headers["etag"]
        assert (part.status_code, part.content) == (206, b"SQLite format 3\0")
        assert IS_065 or ask.get("/spack-cache?sql=SELECT+1").status_code in (200, 302)
