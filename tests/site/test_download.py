"""site.download: which part of the file a request gets."""

from __future__ import annotations

import pytest

from spack_cache_db.site.download import choose_part

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
