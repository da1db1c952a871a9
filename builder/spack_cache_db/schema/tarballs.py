"""The address of a binary's tarball, as SQL."""

from __future__ import annotations

from string import Formatter

from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.schema.words import word_of

TARBALL_PATH = (
    "/build_cache/",
    "{platform}-{os}-{target}/",
    "{compiler}/",
    "{package}-{version}/",
    "{platform}-{os}-{target}-",
    "{compiler}-",
    "{package}-{version}-{hash}.spack",
)
"""The part of a tarball's URL after its mirror, in pieces; a compiler has a dash for
its `@`.

The layout of Spack's build caches before version 3 (Spack 0.23
`binary_distribution.py`).
"""


def _joined(piece: str) -> str:
    """Return a piece of a tarball's path as an SQL expression."""
    words = {column: word_of(column) for column in CONFIGURATION}
    words["compiler"] = f"replace({word_of('compiler')}, '@', '-')"
    words["hash"] = "specs.hash"
    parts = []
    for text, field, _, _ in Formatter().parse(piece):
        if text:
            parts.append(f"'{text}'")
        if field:
            parts.append(words[field])
    return " || ".join(parts)


_PATH = "\n      || ".join(_joined(piece) for piece in TARBALL_PATH)
TARBALL = f"""\
CASE
    WHEN tarball_prefixes.is_whole THEN tarball_prefixes.url
    ELSE tarball_prefixes.url || {_PATH}
  END AS tarball"""
"""The column with the whole URL of a tarball."""
