"""Checks of requests, and headers, caching and CORS of responses."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.http.checks import LONGEST_SQL, MOST_FIELDS, bounded
from spack_cache_db.site.http.middleware import guard
from spack_cache_db.site.refusals import BadAddress
from spack_cache_db.site.sql.running import PAGE_ROWS
from tests.site.addresses import DATASETTES, OWN, get
from tests.site.conftest import IS_065, SQL, metadata, site, site_described

pytestmark = pytest.mark.slow

CLOSED = (
    "/-/threads", "/-/messages", "/-/allow-debug", "/-/patterns", "/-/permissions",
    "/-/databases.json", "/-/config.json", "/-/actor.json", "/-/versions/x",
    "//-/threads", "/%2D/threads", "/spack-cache/-/create",
    "/spack-cache/-/queries/store", "/spack-cache/-/queries/analyze?sql=select+1",
    "/spack-cache/-/execute-write", "/spack-cache/specs/-/insert",
    "/spack-cache/specs/1/-/delete",
)  # fmt: skip
"""Datasette's debugging tools, forms that write, and information about the machine."""
ONLY_READ = (
    "/",
    "/find",
    "/coverx",
    "/cover.html",
    "/spack-cache",
    "/spack-cache/specs",
    "/spack-cache/x/-/y",
    "/spack-cache/cover",
)
MISSING = ("/package/nope", "/nothing-here", "/spack-cache/nope")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*OWN, *DATASETTES, *MISSING])
async def test_every_page_is_safe_and_cacheable(datasette: Any, path: str) -> None:
    """Every page has its language and a policy for scripts and caches; ours has no
    inline code.
    """
    answer = await get(datasette, path)
    policy = answer.headers["content-security-policy"]

    assert "unsafe-eval" not in policy and "http" not in policy
    if path not in DATASETTES:
        assert "unsafe-inline" not in policy
        assert not re.search(
            r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", answer.text
        )
    if path in MISSING:
        return
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "max-age=3600" in answer.headers["cache-control"]
    assert '<html lang="en">' in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize("header", ["Cookie", "Authorization"])
async def test_no_cache_keeps_the_page_of_somebody_who_is_known(
    datasette: Any, header: str
) -> None:
    """It is private, also to caches that have a copy for everybody."""
    known = await datasette.client.get("/", headers={header: "a=b"})

    assert known.headers["cache-control"] == "private, no-store"
    assert {"Cookie", "Authorization"} <= set(re.split(", *", known.headers["vary"]))


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_writes_are_refused(datasette: Any, method: str) -> None:
    """No page takes any method but reading ones; `/cover` alone takes a form."""
    for path in ONLY_READ:
        answer = await datasette.client.request(method, path)
        assert answer.status_code == 405, path
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
        assert "read-only" in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((path, 404) for path in CLOSED),
        ("/find?q=" + "x" * 40_000, 414),
        (
            "/spack-cache/builds?"
            + "&".join(f"_facet={number}" for number in range(50)),
            400,
        ),
    ],
)
async def test_costly_and_closed_addresses_are_refused(
    datasette: Any, path: str, status: int
) -> None:
    """Tools, long addresses and many fields have a status and a reason."""
    answer = await get(datasette, path)

    assert answer.status_code == status
    assert (
        status == 404
        or "more than 10 fields" in answer.text
        or "longer than" in answer.text
    )


@pytest.mark.asyncio
async def test_a_body_says_its_length(datasette: Any) -> None:
    """A body in chunks, whose every byte may be one, is refused before it is read."""
    read: list[bytes] = []

    async def chunks() -> AsyncIterator[bytes]:
        read.append(b"q=hdf5")
        yield read[-1]

    refused = await datasette.client.post("/cover.json", content=chunks())
    answered = await datasette.client.post("/cover.json", content=b"q=hdf5")

    assert (refused.status_code, answered.status_code) == (411, 200)
    assert read == []


@pytest.mark.asyncio
async def test_without_sql_the_field_is_refused_everywhere(database: Path) -> None:
    """Where visitors may send no SQL, nothing looks at what they send as such."""
    closed = site(database, default_allow_sql=False)
    statuses = {
        f"{path}?{field}": (
            await closed.client.get(f"{path}?{field}=select+1")
        ).status_code
        for path in ("/spack-cache", "/spack-cache/specs", "/", "/spack-cache.json")
        for field in ("sql", "s%71l")
    }

    assert statuses == dict.fromkeys(statuses, 403)
    assert (
        await closed.client.get("/spack-cache/most_hashes?package=hdf5")
    ).status_code == 200


@pytest.mark.asyncio
async def test_cookies_of_backslashes_are_not_read(datasette: Any) -> None:
    """A cookie that takes Python seconds to read costs nothing; others reach
    Datasette.
    """
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]).get(b"cookie"))

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    for cookie in (b"a=1", b'a="' + b"\\" * 9_000 + b'"', b'a="\\1"'):
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b""}
        await guard(
            datasette, app, {**scope, "headers": [(b"cookie", cookie)]}, receive, send
        )
    assert seen == [b"a=1", None, None]


FIELDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.text("x &=%+é", max_size=2)), max_size=60
)


@given(FIELDS)
def test_ordinary_fields_stay(fields: list[tuple[str, str]]) -> None:
    """Nothing is lost, and the order is the same."""
    query = urlencode(fields).encode()

    assert bounded("/x.json", query) == query


@pytest.mark.parametrize(
    "fields",
    [
        [(f"c{number}", "1") for number in range(MOST_FIELDS[""] + 1)],
        [("_facet", str(number)) for number in range(11)],
        [(name, str(n)) for name in ("_facet_date", "_facet_array") for n in range(6)],
        [("_sort", "a"), ("_sort", "b"), ("_sort_desc", "c")],
    ],
)
def test_too_many_are_refused(fields: list[tuple[str, str]]) -> None:
    """Fields, facets of all kinds together, and sorts have a number that they may not
    pass.
    """
    with pytest.raises(BadAddress, match="more than"):
        bounded("/x.json", urlencode(fields).encode())


COMMENTS = ("--x\n", " ", "\n", "/*x*/", "/* -- */", "-- /*\n")
STATEMENTS = ("select 1", "-1", "/", "*")
ENDLESS = [
    "/**/" + " " * 31_000 + "x",
    "/*" * 15_000,
    "/**/" * 7_000 + "x",
    "[" * 31_000,
    "'" * 30_999,
    "/**/--x\n" * 3_000,
    "\n" * 15_000 + "-" * 15_000,
]


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ENDLESS, ids=lambda each: each[:9])
async def test_looking_at_sql_takes_little(datasette: Any, text: str) -> None:
    """No statement makes Datasette's look at it take a second of the event loop."""
    await datasette.client.get("/")
    began = time.thread_time()
    answers = [
        await datasette.client.get(
            SQL, params={"sql": text[:length]}, follow_redirects=True
        )
        for length in (LONGEST_SQL + 1, LONGEST_SQL)
    ]

    assert answers[0].status_code == 400
    assert time.thread_time() - began < 1


@given(st.lists(st.sampled_from(COMMENTS), max_size=9), st.sampled_from(STATEMENTS))
def test_a_statement_begins_behind_its_comments(
    comments: list[str], statement: str
) -> None:
    """Comments and blanks before a statement are cut off, and nothing of it."""
    query = urlencode({"sql": f"{''.join(comments)}{statement}"}).encode()
    assert bounded(SQL, query) == urlencode({"sql": statement}).encode()


@pytest.mark.asyncio
async def test_a_page_of_a_table_has_few_rows(many: Any) -> None:
    """A page of a table has at most 300 rows; its JSON has as many as are asked for."""
    page = await many.client.get("/spack-cache/builds?_size=max")
    data = await many.client.get("/spack-cache/builds.json?_size=max")

    assert page.text.count("<tr") - 1 == PAGE_ROWS
    assert len(data.json()["rows"]) == 1000


NUMBERS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {}) "
    "SELECT {} FROM n"
)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("count", "columns", "rows"), [(999, 2, 300), (999, 20, 100), (20, 3, 20)]
)
async def test_a_page_of_a_query_has_few_cells(
    datasette: Any, count: int, columns: int, rows: int
) -> None:
    """As HTML a result has at most 300 rows and 2,000 cells, and says if it is cut; not
    as JSON.
    """
    sql = NUMBERS.format(count, ", ".join(["x"] * columns))
    # Some links of Datasette have the other field, which it does not read.
    page = await datasette.client.get(SQL, params={"sql": sql, "_format": "json"})
    data = await datasette.client.get(
        f"{SQL}.json", params={"sql": sql, "_shape": "arrays"}
    )

    assert page.status_code == data.status_code == 200
    assert page.text.count("<td") == columns * rows
    if IS_065:
        shown = f"more than {rows} rows" if rows < count else f"{rows} rows"
        assert shown in page.text
    assert len(data.json()["rows"]) == count


@pytest.mark.asyncio
async def test_pages_of_queries_are_rendered_in_turn(datasette: Any) -> None:
    """Pages at once are all shown, also beside a client that leaves or does not read
    its page.
    """
    sql = urlencode({"sql": NUMBERS.format(999, "x, x")})
    path = SQL.encode()
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "headers": [],
        "path": SQL,
    }
    scope |= {"http_version": "1.1", "raw_path": path, "query_string": sql.encode()}
    requests = iter([{"type": "http.request"}])

    async def receive() -> dict[str, Any]:
        if (request := next(requests, None)) is None:
            await asyncio.Event().wait()
        return request or {}

    async def send(_: Any) -> None:
        await asyncio.Event().wait()

    await datasette.client.get("/")
    unread = asyncio.create_task(datasette.app()(scope, receive, send))
    leaving = asyncio.create_task(datasette.client.get(f"{SQL}?{sql}"))
    await asyncio.sleep(0.01)
    leaving.cancel()
    async with asyncio.timeout(60):
        answers = await asyncio.gather(
            *(datasette.client.get(f"{SQL}?{sql}") for _ in range(9))
        )
    unread.cancel()

    assert [answer.status_code for answer in answers] == [200] * 9


@pytest.mark.asyncio
async def test_a_query_without_fields_shows_few_rows(database: Path) -> None:
    """A canned query whose address has no query string is cut as well."""
    described = metadata()
    described["databases"]["spack-cache"]["queries"]["many"] = {
        "sql": NUMBERS.format(900, "x")
    }
    served = site_described(database, described)
    page = await served.client.get("/spack-cache/many")
    data = await served.client.get("/spack-cache/many.json?_shape=array")

    assert page.text.count("<td") == PAGE_ROWS
    assert len(data.json()) == 900


@pytest.mark.asyncio
@pytest.mark.parametrize("query", ["", "?_nocount=1"])
async def test_a_wide_table_has_its_next_page(many: Any, query: str) -> None:
    """The cells of a page are not limited for a table, which would lose its link to
    more rows.
    """
    served = site(Path(many.get_database("spack-cache").path), default_page_size=150)
    page = await served.client.get(f"/spack-cache/builds{query}")

    assert page.text.count("<tr") - 1 == 150
    assert "_next=150" in page.text


DATA = (
    "/spack-cache/specs.json?_size=1",
    "/spack-cache/specs.csv?_size=1",
    "/spack-cache.db",
)


@pytest.fixture(scope="module")
def opened(database: Path) -> Any:
    """The site in process, open to others."""
    return site(database, cors=True)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*DATA, "/", "/spack-cache/nothing.json", "/nothing"])
async def test_every_answer_says_it_once(opened: Any, path: str) -> None:
    """Data, pages and errors say so, once: two such headers are none to a browser."""
    answer = await opened.client.get(
        path, headers={"origin": "https://lite.datasette.io"}
    )
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]

    (exposed,) = answer.headers.get_list("access-control-expose-headers")
    for name in ("Content-Range", "Accept-Ranges", "Content-Length", "ETag", "Link"):
        assert name in exposed.split(", ")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", DATA)
async def test_a_browser_may_ask_first(opened: Any, path: str) -> None:
    """The question before a request with a range is answered with what is allowed, and
    no body.
    """
    asked = {
        "origin": "https://shell.duckdb.org",
        "access-control-request-method": "GET",
        "access-control-request-headers": "range,if-range",
    }
    answer = await opened.client.options(path, headers=asked)

    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "GET" in answer.headers["access-control-allow-methods"]

    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert {"range", "if-range"} <= set(allowed)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*DATA, "/"])
async def test_without_cors_nothing_is_said(datasette: Any, path: str) -> None:
    """Unless it was asked for: no header for others, and OPTIONS tells only the
    methods.
    """
    for answer in (
        await datasette.client.get(path),
        await datasette.client.options(path),
    ):
        assert not [
            each for each in answer.headers if each.startswith("access-control-")
        ]
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
