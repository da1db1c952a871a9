"""No request can hurt the server: hostile SQL against a real server process."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spack_cache_db.site.limits import bounded_rows
from tests.site.conftest import SQL, Server, serving

SECONDS = 2.0
MEGABYTES = 512

NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "
A_LOT = "replace(hex(zeroblob(49999)), '00', 'a')"

HOSTILE = {
    "zeroblob": "SELECT zeroblob(900000000)",
    "randomblob": "SELECT randomblob(900000000)",
    "printf": "SELECT printf('%.*c', 900000000, 'x')",
    "printf width": "SELECT format('%900000000d', 1)",
    "hex": "SELECT hex(zeroblob(199999))",
    "wide row": "SELECT " + ", ".join(["randomblob(199000)"] * 190),
    "wide rows": NUMBERS.format("") + "SELECT " + ", ".join(["zeroblob(19999)"] * 9) + " FROM n",
    "many rows": NUMBERS.format("") + "SELECT randomblob(199000) FROM n",
    "no end": NUMBERS.format("") + "SELECT count(*) FROM n",
    "growing text": "WITH RECURSIVE n(x) AS (SELECT 'xxxxxxxx' UNION ALL SELECT x || x FROM n) "
    "SELECT max(length(x)) FROM n",
    "group_concat": NUMBERS.format("") + "SELECT group_concat(x) FROM n",
    "group_concat, ended": NUMBERS.format(" LIMIT 900000") + "SELECT group_concat(x) FROM n",
    "json_group_array": NUMBERS.format("") + "SELECT json_group_array(x) FROM n",
    "sorted blobs": NUMBERS.format("") + "SELECT randomblob(9000) AS b FROM n ORDER BY b",
    "distinct blobs": "SELECT count(*) FROM ("
    + NUMBERS.format("")
    + "SELECT DISTINCT randomblob(9000) FROM n)",
    "replace": "SELECT replace(replace(hex(zeroblob(40000)), '0', '00'), '0', '0000')",
    "trim": f"SELECT trim({A_LOT}, {A_LOT})",
    "instr": NUMBERS.format("")
    + f"SELECT count(*) FROM n WHERE instr({A_LOT} || {A_LOT} || x, {A_LOT} || 'b' || x)",
    "glob": NUMBERS.format("")
    + f"SELECT count(*) FROM n WHERE ({A_LOT} || x) GLOB '{'*[a-b]?a' * 50}*c'",
    "100-way join": "SELECT * FROM " + ", ".join(f"specs AS s{each}" for each in range(100)),
    "60-way join": "SELECT count(*) FROM " + ", ".join(f"specs AS s{each}" for each in range(60)),
    "deep": "SELECT " + "(" * 900 + "1" + ")" * 900,
    "long sum": "SELECT " + "+".join(["1"] * 5000),
    "compound": " UNION ALL ".join(["SELECT 1"] * 400),
    "like": "SELECT '" + "a" * 9000 + "' LIKE '" + "%a" * 4000 + "b'",
}


def test_rows_are_bounded_by_result() -> None:
    """A result over the limit stops with a reason; the next one starts from nothing."""
    conn = sqlite3.connect(":memory:")
    conn.row_factory = bounded_rows(most=1000)

    assert len(conn.execute("SELECT zeroblob(900)").fetchall()) == 1
    assert len(conn.execute("SELECT zeroblob(900)").fetchall()) == 1
    with pytest.raises(sqlite3.OperationalError, match="larger than"):
        conn.execute("SELECT zeroblob(600) UNION ALL SELECT zeroblob(600)").fetchall()


@pytest.fixture(scope="module")
def own_server(database: Path) -> Iterator[Server]:
    """A server whose memory no other test has used."""
    with serving(database) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sql_ends_soon_and_small(own_server: Server, name: str) -> None:
    """A hostile statement ends with a clear error, within 2 s of processor time and 512 MB."""
    before = own_server.cpu_seconds()
    answer = httpx.get(f"{own_server.address}{SQL}.json", params={"sql": HOSTILE[name]}, timeout=30)
    taken = own_server.cpu_seconds() - before

    assert answer.status_code == 400, answer.text[:300]
    assert answer.json()["error"]
    assert own_server.peak_megabytes() < MEGABYTES
    assert taken < SECONDS


@pytest.mark.slow
def test_hostile_sql_is_told_on_a_page(own_server: Server) -> None:
    """Who types such SQL into the page reads why it was refused."""
    for sql in (HOSTILE["zeroblob"], HOSTILE["wide row"], HOSTILE["many rows"]):
        answer = httpx.get(f"{own_server.address}{SQL}", params={"sql": sql}, timeout=30)
        assert "too big" in answer.text or "memory" in answer.text or "larger than" in answer.text


@pytest.mark.slow
def test_a_megabyte_of_sql_is_refused(own_server: Server) -> None:
    """A statement of one megabyte is refused before anything reads it."""
    host = own_server.address.removeprefix("http://")
    request = f"GET /spack-cache.json?sql=SELECT+{'1' * 1_000_000} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=10) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request.encode())
        answer = connection.recv(1000)

    assert b" 400 " in answer or b" 414 " in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM specs",
        "INSERT INTO specs(hash) VALUES ('x')",
        "DROP TABLE specs",
        "ATTACH DATABASE '/tmp/x.db' AS x",
        "PRAGMA hard_heap_limit = 0",
        "VACUUM INTO '/tmp/x.db'",
        "WITH x AS (SELECT 1) DELETE FROM specs",
        "SELECT load_extension('x')",
    ],
)
def test_writes_in_sql_are_refused(own_server: Server, sql: str) -> None:
    """No statement can write, attach, load code or lift a limit."""
    answer = httpx.get(f"{own_server.address}{SQL}.json", params={"sql": sql}, timeout=30)

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]


@pytest.mark.slow
def test_the_server_still_answers(own_server: Server) -> None:
    """After all of that the pages come as before."""
    for path in ("/", "/package/hdf5", f"{SQL}.json?sql=select+1"):
        assert httpx.get(own_server.address + path, timeout=30).status_code == 200
