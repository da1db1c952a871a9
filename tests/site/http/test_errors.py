"""What a visitor reads where a request failed."""

import errno
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette.database import Database

from spack_cache_db.site.http import own_pages
from spack_cache_db.site.http.error_pages import (
    NO_MEMORY,
    RETRY_AFTER_SECONDS,
    UNKNOWN,
    UNREADABLE,
    failure_of,
)
from spack_cache_db.site.http.slow_queries import GENERAL_ADVICE
from spack_cache_db.site.refusals import NO_PAGE
from spack_cache_db.site.sql import limits, whole_tables
from tests.many import build_many
from tests.metadata import QUERIES
from tests.shared import built_once
from tests.site.addresses import get
from tests.site.conftest import SQL, metadata, site

pytestmark = pytest.mark.slow

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


LONG = "a" * 5_000
TABLE = "/spack-cache/listings"
UNREADABLE_ADDRESSES = (
    *(
        f"{TABLE}?_through={json.dumps(each)}"
        for each in ([1], {}, None, 1, {"table": 1}, {"table": "builds"})
    ),
    f"{TABLE}?_through=" + "[" * 3_000,
    f'{TABLE}?_through={{"table":null,"column":"id","value":1}}',
    f'{TABLE}?_through={{"table":"specs","column":["id"],"value":1}}',
    f'{TABLE}?_through={{"table":"specs","column":"id","value":{{}}}}',
    f'{TABLE}.json?_through={{"table":"specs","column":"id"}}',
    f"{TABLE}?id__in=" + "[" * 3_000,
    "/spack-cache/specs?_where=%00",
    "/spack-cache/specs?_sort=nope",
    "/spack-cache/specs?_size=-1",
    "/spack-cache/specs?_next=abc&_sort=nope",
    "/spack-cache/builds?_next=99999999999999999999",
    "/spack-cache/builds.json?_next=99999999999999999999",
    f"{TABLE}?_facet=[[1]]",
    f'{TABLE}?_facet={{"column":[[1]]}}',
    f'{TABLE}?_facet_array={{"column":{{"a":1}}}}',
    "/spack-cache/configurations?_search=a&_fts_table=nope",
    "/spack-cache/configurations?_search=a&_fts_table=%22&_fts_pk=%22",
    "/spack-cache/specs.csv?_where=nope",
    "/spack-cache/listings/1",
    "/spack-cache/listings/1.json",
    "/spack-cache/specs/~00",
    f"{SQL}.csv?sql=select+nope",
    f"{SQL}.csv?sql=select+1;+select+2",
    f"{SQL}.csv?sql=",
    f"{SQL}.json?sql=select+:_now_epoch",
    f"{SQL}.json?sql=select+%3F",
    "/spack-cache/specs/1.blob?_blob_column=nope",
    "/spack-cache.csv",
    f"/static/{LONG}",
    f"/-/static/{LONG}",
    "/static/parts.css/x",
    "/static/" + "a/" * 2_500,
    "/package/%00",
    "/%00.db",
    "//example.org/",
    "/\\example.org/",
)
"""Fields, keys and paths of a form that nobody expects."""


class WithStatus(Exception):
    """Stands for Datasette's own exceptions."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@pytest.mark.parametrize(
    ("exception", "status", "sentence"),
    [
        (WithStatus("404", 404), 404, NO_PAGE),
        (WithStatus("Database not found: packages.html", 404), 404, NO_PAGE),
        (WithStatus("Table not found: x", 404), 404, "Table not found: x"),
        (WithStatus("Cannot sort table by x", 500), 400, "Cannot sort table by x"),
        (MemoryError(), 400, NO_MEMORY),
        (OSError("/secret/path is not there"), 500, UNKNOWN),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "/secret/aaa"),
            404,
            NO_PAGE,
        ),
        (
            NotADirectoryError(errno.ENOTDIR, "Not a directory", "/secret/parts.css/x"),
            404,
            NO_PAGE,
        ),
        (TypeError("list indices must be integers"), 400, UNREADABLE),
        (
            sqlite3.ProgrammingError("You did not supply a value"),
            400,
            "You did not supply a value",
        ),
        (sqlite3.DatabaseError("database disk image is malformed"), 500, UNKNOWN),
    ],
)
def test_every_exception_has_a_sentence(
    exception: Exception, status: int, sentence: str
) -> None:
    """Datasette's refusals speak for themselves; a bug keeps to itself what it
    knows.
    """
    assert failure_of(exception, 1000, ["sql"])[::2] == (status, sentence)


def test_in_a_page_of_ours_an_odd_value_is_a_bug() -> None:
    """What our own pages raise is never the visitor's fault."""
    assert failure_of(TypeError("None"), 1000, is_own=True)[0] == 500


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
async def test_a_page_that_takes_too_long_says_so(
    datasette: Any,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No page of ours is a bug because its time is over: it may be asked again."""
    await datasette.invoke_startup()
    monkeypatch.setattr(own_pages, "PAGE_SECONDS", 0)
    monkeypatch.setattr(limits, "STEPS", 1)
    answer = await get(datasette, f"/find{end}?q=%2Bmpi")

    assert answer.status_code == 503
    assert "the time limit of" in answer.text
    assert answer.headers["Retry-After"] == str(RETRY_AFTER_SECONDS)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "address", UNREADABLE_ADDRESSES, ids=lambda each: str(each)[:40]
)
async def test_what_nobody_can_read_is_refused(datasette: Any, address: str) -> None:
    """An address of no sense is a refusal with a sentence, which no cache keeps; not an
    error.
    """
    answer = await get(datasette, address)

    assert answer.status_code in (400, 404)
    assert answer.headers["cache-control"] == "no-store"
    assert len(answer.text) > 20
    assert "/tests/" not in answer.text
    assert "site-packages" not in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize("sql", ["select nope", "select ?"])
async def test_no_cache_keeps_an_error_beside_its_query(
    datasette: Any, sql: str
) -> None:
    """The page that shows a query and what is wrong with it is not kept, whatever its
    status.
    """
    answer = await datasette.client.get(SQL, params={"sql": sql})
    right = await datasette.client.get(SQL, params={"sql": "select 1"})

    assert answer.headers["cache-control"] == "no-store"
    assert "max-age=3600" in right.headers["cache-control"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "page", ["/package/hdf5?", "/find?q=%2Bmpi&", "/spec/aaaaaaa?"]
)
async def test_every_page_number_leads_to_a_page(datasette: Any, page: str) -> None:
    """A number beyond all pages is the last page, what is none the first."""
    for number in ("9" * 5_000, "0" * 5_000, "-1", "1e3", "%D9%A3", "1&page=x"):
        assert (await get(datasette, f"{page}page={number}")).status_code == 200


@pytest.mark.asyncio
async def test_a_query_that_takes_too_long_is_shown_again(datasette: Any) -> None:
    """Whose query took too long reads how much time there is, and has the query
    still.
    """
    answer = await datasette.client.get(SQL, params={"sql": f"{ENDLESS} /* <b> */"})
    rows = await datasette.client.get(f"{SQL}.csv", params={"sql": ENDLESS})

    assert answer.status_code == rows.status_code == 400
    assert "stopped after 2,000 ms" in rows.text
    assert answer.headers["cache-control"] == "no-store"
    assert "stopped after 2,000 ms" in answer.text
    assert "/* &lt;b&gt; */" in answer.text
    assert "download the file" in answer.text
    assert re.search(r'<textarea[^>]*name="sql"[^>]*>WITH RECURSIVE', answer.text)


@pytest.fixture
def hurried(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A site with a tenth of a second for each statement, and a file of many rows."""
    monkeypatch.setattr(whole_tables, "LARGE", 500)
    file = built_once(tmp_path_factory, "many", build_many) / "spack-cache.db"
    described = metadata()
    queries = described["databases"]["spack-cache"]["queries"]
    queries["slow_text"] = SLOW
    queries["slow_query"] = {"sql": SLOW, "params": ["unused"]}
    queries["slow_with_advice"] = {"sql": SLOW, "advice": "Ask <us>."}
    return site(file, described, sql_time_limit_ms=100)


SLOW = "SELECT count(*) FROM build_listings AS a JOIN build_listings AS b ON a.size < b.size"
LARGER = (
    "(SELECT count(*) FROM build_listings AS b WHERE b.size > build_listings.size) > 9"
)
READS = r"reads? all \d,\d{3} rows of listings \(for the view build_listings\): name a release, "


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
async def test_a_slow_query_says_what_would_help(hurried: Any, end: str) -> None:
    """SQL and a table name a condition, a canned query its advice, in every form."""
    sql = await hurried.client.get(f"{SQL}{end}", params={"sql": SLOW})
    table = await hurried.client.get(
        f"/spack-cache/build_listings{end}", params={"_where": LARGER, "_size": "9"}
    )
    owners = await get(hurried, f"/spack-cache/slow_query{end}?unused=<x>")
    text = await get(hurried, f"/spack-cache/slow_text{end}")
    advised = await get(hurried, f"/spack-cache/slow_with_advice{end}")
    ours = await get(hurried, f"/spack-cache/most_hashes{end}?_timelimit=1")

    for answer in (sql, table, owners, text, advised, ours):
        assert answer.status_code == 400, answer.text
        assert "stopped after 100 ms" in answer.text
        assert "download the file" in answer.text
        assert end != ".json" or answer.json()["title"] == "Query refused"
    for answer in (sql, owners, text):
        assert re.search(f"{READS}for instance WHERE release = ", answer.text)
    assert re.search(f"{READS}for instance /spack-cache/build_listings", table.text)
    assert "Ask &lt;us&gt;." in advised.text if not end else "Ask <us>." in advised.text
    assert "Name a package: then only its" in ours.text
    # The fields of a canned query are there, to be filled in.
    if not end:
        assert (
            '<input type="text" id="field-package" name="package" value="">'
            in ours.text
        )
        assert (
            '<input type="text" id="field-unused" name="unused" value="&lt;x&gt;">'
            in owners.text
        )


@pytest.mark.asyncio
async def test_a_slow_query_of_another_database_has_general_advice(
    hurried: Any, tmp_path: Path
) -> None:
    """Its tables are not ours, whatever their names."""
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE listings (release)")
    hurried.add_database(Database(hurried, path=str(file)), name="other")
    await hurried.invoke_startup()
    answer = await hurried.client.get(
        SQL.replace("spack-cache", "other") + ".json", params={"sql": ENDLESS}
    )

    assert GENERAL_ADVICE in answer.json()["error"]


def test_every_canned_query_has_advice() -> None:
    """A visitor cannot change its SQL."""
    assert [name for name, query in QUERIES.items() if "advice" not in query] == []


@pytest.mark.asyncio
async def test_a_phrase_in_an_index_of_words_is_told_clearly(datasette: Any) -> None:
    """Where an index has no positions of words, nobody is told to add quotes to their
    quotes.
    """
    answer = await get(datasette, '/spack-cache/known_packages?_search="a+b"')

    assert answer.status_code == 400
    assert "leave out quotation marks" in answer.text
