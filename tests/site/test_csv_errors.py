"""Errors of CSV, by status or by an answer without an end; never as rows."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.site.conftest import SQL, serving_directory

pytestmark = pytest.mark.slow

MANY = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 900) SELECT x FROM n"
TOO_MANY = MANY.replace("SELECT x FROM", f"SELECT '{'x' * 2_000}' FROM")
"""More than a megabyte."""


def test_a_visitor_sees_that_rows_are_missing(database: Path) -> None:
    """A real server breaks the connection, so that a visitor's program ends with an error."""
    with serving_directory(database, "--setting", "max_csv_mb", "1") as server:
        address = f"{server.address}{SQL}.csv"
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            httpx.get(address, params={"sql": TOO_MANY}, timeout=60, verify=False)
        assert httpx.get(address, params={"sql": MANY}, timeout=60, verify=False).status_code == 200
