"""The whole file: its length, its entity tag, and parts of it."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from datasette.utils import tilde_encode

from spack_cache_db.site.http.download import choose_part
from tests.site.addresses import get
from tests.site.conftest import site

pytestmark = pytest.mark.slow

ETAG = '"sum"'


@pytest.mark.parametrize(
    ("headers", "status", "start", "length"),
    [
        ({}, 200, 0, 100),
        ({"range": "bytes=0-9"}, 206, 0, 10),
        ({"range": "bytes=90-"}, 206, 90, 10),
        ({"range": "bytes=-5"}, 206, 95, 5),
        ({"range": "bytes=-500"}, 206, 0, 100),
        ({"range": "bytes=50-500"}, 206, 50, 50),
        ({"range": "bytes=100-"}, 416, 100, 0),
        ({"range": "bytes=-0"}, 416, 100, 0),
        ({"range": "bytes=9-5"}, 200, 0, 100),
        ({"range": "bytes=-"}, 200, 0, 100),
        ({"range": "bytes=0-1,5-6"}, 200, 0, 100),
        ({"range": "lines=0-1"}, 200, 0, 100),
        ({"range": "bytes=0-9", "if-range": ETAG}, 206, 0, 10),
        ({"range": "bytes=0-9", "if-range": '"old"'}, 200, 0, 100),
        ({"if-none-match": ETAG}, 304, 0, 0),
        ({"if-none-match": '"old", W/"sum"'}, 304, 0, 0),
    ],
)
def test_chooses_the_part_of_a_file(
    headers: dict[str, str], status: int, start: int, length: int
) -> None:
    """Ranges, conditions and nonsense in a request lead to the answer that HTTP
    wants.
    """
    found, part, _ = choose_part(100, ETAG, headers)

    assert (found, part.start, len(part)) == (status, start, length)


@pytest.mark.asyncio
async def test_download_is_the_file(datasette: Any, database: Path) -> None:
    """The download is the file, with its length and an entity tag."""
    answer = await get(datasette, "/spack-cache.db")

    assert answer.content == database.read_bytes()
    assert int(answer.headers["content-length"]) == database.stat().st_size
    assert hashlib.sha256(answer.content).hexdigest() in answer.headers["etag"]


def copied(database: Path, file: Path) -> Path:
    """Copy a database and its inspect file."""
    file.write_bytes(database.read_bytes())
    inspected = database.with_suffix(".inspect.json").read_bytes()
    file.with_suffix(".inspect.json").write_bytes(inspected)
    return file


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "encoded"),
    [('ü "b"; c', "%C3%BC%20%22b%22%3B%20c.db"), ("a\\b\nX: 1", "a%5Cb%0AX%3A%201.db")],
)
async def test_a_download_has_the_name_of_the_file(
    name: str, encoded: str, database: Path, tmp_path: Path
) -> None:
    """Any name can be downloaded, and no page of the site fails because of it."""
    served = site(copied(database, tmp_path / f"{name}.db"))
    path = f"/{tilde_encode(name)}"
    answer = await get(served, f"{path}.db")

    assert answer.content == database.read_bytes()
    assert (
        answer.headers["content-disposition"]
        == f"attachment; filename*=UTF-8''{encoded}"
    )
    tables = (f"{path}/builds.{form}" for form in ("json?_size=1", "csv", "csv?_dl=on"))
    found = f"{path}/builds?_size=1&_facet=package"
    for page in (
        "/",
        "/about",
        "/find.json?q=hdf5",
        "/robots.txt",
        path,
        found,
        *tables,
    ):
        assert (await get(served, page)).status_code == 200, page
