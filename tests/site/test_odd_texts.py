"""Any text in any field of any page gets an answer, or a refusal in a sentence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spack_cache_db.site.routes import ROUTES
from tests.site.addresses import OWN, get
from tests.site.conftest import SQL
from tests.site.test_permissions import DATA

pytestmark = pytest.mark.slow

TEXTS = (
    *("%00", "hdf5%00", "%ED%A0%80", "%FF%FE", "%C3%28", "%22", "%27", "%22%22", "%5C", "%5C%22"),
    *(
        "%01%1B%7F",
        "%E2%80%AE",
        "%F0%9F%92%A9",
        "*",
        "%25",
        "_",
        "%",
        "%zz",
        "+",
        "-",
        "/",
        "..",
        ".",
    ),
    *("AND", "OR+NOT", "NEAR(a+b)", "a*", "%5Ea", "a:b", "{a}+:", "tokens:", "(", "%22a", "a%22+b"),
    *("%7B", "%5B", "%7B%22a%22:1%7D", "[1,", "null", "-1", "9" * 400, "1e999", "a" * 9_000),
    *("%40%40", "%5E", "hdf5%40", "%5E%5B", "%25%25", "~~", "target=:", "%0D%0A", "%3Cb%3E", "%09"),
)
COLUMN_FIELDS = (
    *("name={}", "name__in={}", "name__contains={}", "name__glob={}", "name__gt={}", "id={}"),
    *("name__date={}", "name__arraycontains={}", "{}=1", "{}__in=1", "name__{}=1", "_through={}"),
    *(
        "_search={}",
        "_search_tokens={}",
        "_search={}&_searchmode=raw",
        "_searchmode={}",
        "_sort={}",
    ),
    *("_sort_desc={}", "_col={}", "_nocol={}", "_facet={}", "_facet_array={}", "_facet_date={}"),
    *("_facet_size={}", "_next={}", "_size={}", "_shape={}", "_label={}", "_labels={}", "_json={}"),
    *("_nl={}", "_ttl={}", "_timelimit={}", "_filter_column={}&_filter_op=in&_filter_value={}"),
    *("_fts_table={}&_search=a", "_fts_pk={}&_search=a", "_nocount={}", "_trace={}", "_dl={}"),
)
RAW = re.compile(
    r"fts5|unterminated|syntax error|no such column|no such table|malformed|Traceback"
    r"|sqlite3?\.|OperationalError|datatype mismatch|near &#34;"
)
"""What SQLite and Python say, not we."""


async def refused_or_answered(served: Any, address: str) -> None:
    """Check one address."""
    answer = await get(served, address)
    assert answer.status_code in (200, 301, 302, 303, 400, 403, 404, 414), (
        address,
        answer.status_code,
    )
    if answer.status_code >= 400:
        text = answer.text.partition("<main")[2] or answer.text
        assert not RAW.search(text), (address, text[:400])
        assert " " in text.strip(), address


FIELDS: dict[str, list[str]] = {}
"""The fields of our pages, each with one path of every route that has it."""
for _route in ROUTES:
    for _path in [each.partition("?")[0] for each in (*OWN, *DATA)]:
        if re.match(_route.pattern, _path):
            for _field in _route.fields:
                FIELDS.setdefault(_field, []).append(_path)
            break


@pytest.mark.asyncio
@pytest.mark.parametrize("field", FIELDS)
async def test_odd_texts_in_the_fields_of_our_pages(datasette: Any, field: str) -> None:
    """A quarter of the texts, by turns, in every field, on the routes that have it in turn."""
    for number in range([*FIELDS].index(field) % 4, len(TEXTS), 4):
        text = TEXTS[number]
        path = FIELDS[field][number % len(FIELDS[field])]
        more = "&q=hdf5" if path.startswith("/find") and field != "q" else ""
        await refused_or_answered(datasette, f"{path}?{field}={text}{more}")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        *("/package/{}", "/package/{}.json", "/badge/{}.svg", "/coverage/{}", "/diff/{}...{}.json"),
        *("/spec/{}", "/release/{}", "/stack/{}", "/{}.db", "/{}", "/spack-cache/{}"),
        *("/spack-cache/packages/{}", "/spack-cache/packages/{}.json", "/spack-cache/{}.csv"),
        *("/spack-cache/packages/1.{}", "/static/{}"),
    ],
)
async def test_odd_texts_in_paths(datasette: Any, path: str) -> None:
    """A quarter of the texts, by turns, in every name that a path has."""
    for text in TEXTS[len(path) % 4 :: 4]:
        await refused_or_answered(datasette, path.format(text, text))


@pytest.mark.asyncio
@pytest.mark.parametrize("place", range(len(COLUMN_FIELDS)))
async def test_odd_texts_in_the_fields_of_tables(datasette: Any, place: int) -> None:
    """A quarter of the texts, by turns, in every field that Datasette knows on tables."""
    for number in range(place % 4, len(TEXTS), 4):
        text, end = TEXTS[number], ("", ".json", ".csv")[number % 3]
        field = COLUMN_FIELDS[place].format(text, text)
        await refused_or_answered(datasette, f"/spack-cache/packages{end}?{field}")


@pytest.mark.asyncio
async def test_odd_texts_in_queries_and_rows(datasette: Any) -> None:
    """Parameters of a canned query, of SQL, and fields of a row."""
    for text in TEXTS:
        await refused_or_answered(datasette, f"/spack-cache/new_versions?old={text}&new={text}")
        await refused_or_answered(datasette, f"/spack-cache/most_hashes?package={text}")
        await refused_or_answered(datasette, f"{SQL}.json?sql=select+:a&a={text}")
        await refused_or_answered(datasette, f"/spack-cache/packages/1.json?_shape={text}")


@pytest.mark.asyncio
async def test_a_search_without_a_word_is_answered(datasette: Any) -> None:
    """A blank search has all rows, a quotation mark none."""
    everything = (await get(datasette, "/spack-cache/packages.json?_shape=array")).json()
    blank = await get(datasette, "/spack-cache/packages.json?_shape=array&_search=+")
    mark = await get(datasette, "/spack-cache/packages.json?_shape=array&_search=%22")

    assert blank.json() == everything != []
    assert (mark.status_code, mark.json()) == (200, [])
