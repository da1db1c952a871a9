"""The floor: read every page and decode its two JSON keys, in one process, and nothing else.

No build that reads the pages can be faster in one process; its time is the unit of the table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

_KEYS = (b"meta: ", b"spec_details: ")


def page_files(folder: str) -> Iterator[str]:
    """Yield every file below `folder`."""
    for where, _, names in os.walk(folder):
        for name in names:
            yield f"{where}/{name}"


def decode_all(folder: str) -> tuple[int, int]:
    """Decode every page below `folder`; return how many pages and listings there were."""
    pages = listings = 0
    for path in page_files(folder):
        decoded = [
            orjson.loads(line[len(key) :])
            for line in Path(path).read_bytes().splitlines()
            for key in _KEYS
            if line.startswith(key)
        ]
        pages += 1
        listings += len(decoded[1])
    return pages, listings


if __name__ == "__main__":
    print(*decode_all(sys.argv[1]))
