"""query.why_not.misplaced: what stands behind a compiler, asked of the package."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.why_not.misplaced import corrected
from spack_cache_db.spack.parser import parse_query


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("py-x %gcc@13 target=zen3", "py-x target=zen3 %gcc@13"),
        ("py-x +a %gcc@13 target=zen3 os=rhel8 +b", "py-x +a +b os=rhel8 target=zen3 %gcc@13"),
        ("py-x %gcc /abc", "py-x /abc %gcc"),
        ("py-x target=zen3 %gcc@13", None),
        ("py-x %gcc@13", None),
        ("py-x ~b %gcc +b", None),
        ("py-x ^zlib +b %gcc +c", None),
        ("py-x", None),
    ],
)
def test_what_was_meant(samples: sqlite3.Connection, typed: str, meant: str | None) -> None:
    """What pages cannot answer either, or contradicts the rest, is not offered."""
    assert corrected(samples, parse_query(typed)) == meant
