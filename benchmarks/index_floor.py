"""The floor of an index: decode each of its records with msgspec, in one process, and
nothing else.

The first pass keeps records undecoded over a memory map, the second decodes them one by
one. Decoding all at once would take ten times the size of the file in memory.
"""

from __future__ import annotations

import sys
from mmap import PROT_READ, mmap
from pathlib import Path

import msgspec
from msgspec import Raw, Struct


class _Database(Struct):
    installs: dict[str, Raw]


class _Index(Struct):
    database: _Database


def decode_all(path: Path) -> tuple[int, int]:
    """Decode every record of an index; return the numbers of records and edges."""
    with path.open("rb") as file:
        data = mmap(file.fileno(), 0, prot=PROT_READ)
    installs = msgspec.json.decode(data, type=_Index).database.installs
    edge_count = 0
    for text in installs.values():
        record = msgspec.json.decode(text)
        edge_count += len(record["spec"].get("dependencies", ()))
    return len(installs), edge_count


if __name__ == "__main__":
    print(*decode_all(Path(sys.argv[1])))
