"""What this package wrote itself, known by its first bytes: it may lie among the pages."""

from __future__ import annotations

from pathlib import Path

from spack_cache_db import schema

HEAD = 100
"""So many bytes of a file say whether it is one of ours (SQLite docs, "Database File Format")."""

_INSPECTION = b'{\n "spack-cache": {\n'


def is_own(head: bytes) -> bool:
    """Return whether a file that begins so is a database of ours, or the inspect file of one."""
    is_ours = head[68:72] == schema.APPLICATION_ID.to_bytes(4, "big")
    return (head.startswith(b"SQLite format 3\0") and is_ours) or head.startswith(_INSPECTION)


def is_database(path: Path) -> bool:
    """Return whether a file is a database of ours; False where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return is_own(stream.read(HEAD))
    except OSError:
        return False
