"""Limits of connections, and results just within them on a real server."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from spack_cache_db.site.sql.limits import LIMITS, restrict
from tests.serving import Server, serving
from tests.site.conftest import SQL

SECONDS = 2.0
MEGABYTES = 512
ENDED_SECONDS = 2 * 2.0
"""A process is ended after 1.3 times the limit of a statement, which is 2 s."""

NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "
A_LOT = "replace(hex(zeroblob(49500)), '00', 'a')"
MOST = f"({A_LOT} || {A_LOT} || {A_LOT} || {A_LOT})"
CONTROLS = "replace(hex(zeroblob(49500)), '00', printf('%c%c', 1, 2) || '\t\v')"


def repeated(column: str, count: int) -> str:
    """Return a statement for one row with as many columns."""
    return f"SELECT {', '.join([column] * count)}"


def thousand_rows(column: str) -> str:
    """Return a statement for a thousand rows of 24 columns."""
    return f"{NUMBERS.format('')}{repeated(column, 24)} FROM n LIMIT 1000"


LARGE = {
    "cells": thousand_rows("x"),
    "addresses": thousand_rows("'https://a.b/' || x"),
    "hashes": thousand_rows(f"'{'a' * 32}' AS hash"),
    "control characters": repeated(CONTROLS, 20),
    "a million letters": repeated(MOST, 19),
}
"""Results just within the limits: their pages have to be."""
MEMBERS = (
    NUMBERS.format(" LIMIT 13000")
    + ", k(j) AS MATERIALIZED (SELECT json_group_object('k' || x, 1) FROM n) "
)
PATCHES = f"{MEMBERS} SELECT {' + '.join(['length(json_patch(j, j))'] * 60)} FROM k"
"""Few instructions of SQLite, each of which takes a third of a second or more."""


def test_a_connection_is_bounded() -> None:
    """Each limit holds, and the connection only reads."""
    conn = sqlite3.connect(":memory:")
    restrict(conn)

    # SQLite before 3.32 has a lower limit of its own for parameters.
    with closing(sqlite3.connect(":memory:")) as plain:
        own = {limit: plain.getlimit(limit) for limit in LIMITS}
    assert {limit: conn.getlimit(limit) for limit in LIMITS} == {
        limit: min(value, own[limit]) for limit, value in LIMITS.items()
    }
    # SQLite before 3.31 does not have the setting.
    if sqlite3.sqlite_version_info >= (3, 31):
        assert conn.execute("PRAGMA trusted_schema").fetchone() == (0,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        conn.execute("CREATE TABLE x (y)")


@pytest.fixture(scope="module")
def own_server(database: Path) -> Iterator[Server]:
    """A server whose memory no other test has used."""
    with serving(database) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
@pytest.mark.parametrize("name", LARGE)
def test_a_large_result_is_shown_within_bounds(
    own_server: Server, name: str, end: str
) -> None:
    """Results just within the limits are shown in every form, within 2 s of processor
    time.
    """
    before = own_server.cpu_seconds()
    address = f"{own_server.address}{SQL}{end}"
    params = {"sql": LARGE[name]}
    answer = httpx.get(address, params=params, timeout=60, verify=False)

    assert answer.status_code == 200, answer.text[:300]
    assert len(answer.content) > 10_000
    assert own_server.cpu_seconds() - before < SECONDS
    assert own_server.peak_megabytes() < MEGABYTES


@pytest.mark.slow
def test_a_statement_that_cannot_be_interrupted_is_ended(own_server: Server) -> None:
    """Its process ends soon after its time, the visitor reads why, and others are
    served.
    """
    before = own_server.cpu_seconds()
    address = f"{own_server.address}{SQL}.json"
    params = {"sql": PATCHES}
    answer = httpx.get(address, params=params, timeout=60, verify=False)

    # 400 if this SQLite is quick enough to notice the time between two of the calls.
    assert answer.status_code in (400, 503)
    assert own_server.cpu_seconds() - before < ENDED_SECONDS
    assert own_server.get("/").status_code == 200
