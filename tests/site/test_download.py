"""The whole file: its length, its entity tag, and parts of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.delivery import choose_part
from tests.site.addresses import get
from tests.site.conftest import site

pytestmark = pytest.mark.slow

ETAG = '"sum"'


@pytest.mark.once
@pytest.mark.parametrize(
    ("headers", "status", "start", "length"),
    [
        ({}, 200, 0, 100),
        ({"range": "bytes=0-9"}, 206, 0, 10),
        ({"range": "bytes=90-"}, 206, 90, 10),
        ({"range": "bytes=-5"}, 206, 95, 5),
        ({"range": "bytes=-500"}, 206, 0, 100),
        ({"range": "bytes=50-500"}, 206, 50, 50),
        ({"range": "bytes=100-"}, 416, 0, 0),
        ({"range": "bytes=-0"}, 416, 0, 0),
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
    """Ranges, conditions and nonsense in a request lead to the answer that HTTP wants."""
    part = choose_part(100, ETAG, headers)

    assert (part.status, part.start, part.length) == (status, start, length)


@pytest.mark.asyncio
async def test_download_is_the_file(datasette: Any, database: Path) -> None:
    """The download is the file, with its length and an entity tag."""
    answer = await get(datasette, "/spack-cache.db")

    assert answer.content == database.read_bytes()
    assert int(answer.headers["content-length"]) == database.stat().st_size
    assert hashlib.sha256(answer.content).hexdigest() in answer.headers["etag"]


@pytest.mark.asyncio
async def test_download_resumes(datasette: Any, database: Path) -> None:
    """A part of the file can be asked for, so that a broken download goes on."""
    answer = await get(datasette, "/spack-cache.db", range="bytes=100-199")

    assert answer.status_code == 206
    assert answer.content == database.read_bytes()[100:200]
    assert answer.headers["content-range"] == f"bytes 100-199/{database.stat().st_size}"


@pytest.mark.asyncio
async def test_download_is_not_sent_twice(datasette: Any) -> None:
    """Who has the file already gets nothing again."""
    first = await datasette.client.head("/spack-cache.db")
    again = await get(datasette, "/spack-cache.db", **{"if-none-match": first.headers["etag"]})

    assert first.content == b""
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.asyncio
async def test_download_can_be_turned_off(database: Path) -> None:
    """Datasette's own setting turns the download off."""
    answer = await get(site(database, allow_download=False), "/spack-cache.db")

    assert answer.status_code == 403


@pytest.mark.asyncio
async def test_a_file_that_was_overwritten_is_sent_no_more(database: Path, tmp_path: Path) -> None:
    """What has other bytes under the same entity tag is refused: a download would mix both."""
    file = tmp_path / database.name
    file.write_bytes(database.read_bytes())
    file.with_suffix(".inspect.json").write_bytes(
        database.with_suffix(".inspect.json").read_bytes()
    )
    served = site(file)
    assert (await get(served, "/spack-cache.db")).status_code == 200
    file.write_bytes(b"x" * file.stat().st_size)
    assert (await get(served, "/spack-cache.db")).status_code == 404
