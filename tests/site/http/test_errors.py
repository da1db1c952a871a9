"""What a visitor reads where a request failed."""

import errno
import json
import re
import sqlite3
from typing import Any

import pytest

from spack_cache_db.site.http import own_pages
from spack_cache_db.site.http.error_pages import (
    NO_MEMORY,
    RETRY_AFTER_SECONDS,
    UNKNOWN,
    UNREADABLE,
    failure_of,
)
from spack_cache_db.site.refusals import NO_PAGE
from spack_cache_db.site.sql import limits
from tests.site.addresses import get
from tests.site.conftest import SQL

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
    assert "stopped after 1,000 ms" in rows.text
    assert answer.headers["cache-control"] == "no-store"
    assert "stopped after 1,000 ms" in answer.text
    assert "/* &lt;b&gt; */" in answer.text
    assert "download the file" in answer.text
    assert re.search(r'<textarea[^>]*name="sql"[^>]*>WITH RECURSIVE', answer.text)


@pytest.mark.asyncio
async def test_a_phrase_in_an_index_of_words_is_told_clearly(datasette: Any) -> None:
    """Where an index has no positions of words, nobody is told to add quotes to their
    quotes.
    """
    answer = await get(datasette, '/spack-cache/known_packages?_search="a+b"')

    assert answer.status_code == 400
    assert "leave out quotation marks" in answer.text
