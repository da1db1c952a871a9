"""Any text in addresses and pages is answered or refused in words, and shown as
text.
"""

import re
from typing import Any
from urllib.parse import quote

import pytest
from markupsafe import escape

from spack_cache_db.assembly.builds import build
from spack_cache_db.site.routes import ROUTES
from tests.pagetexts import page, spec, spec_hash, write
from tests.site.addresses import OWN, get
from tests.site.conftest import SQL, site
from tests.site.http.test_permissions import DATA

pytestmark = pytest.mark.slow

NO_LINKS = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "blob:x",
    "file:///etc/passwd",
    "//example.org/x",
    "/-/x",
    "https:/x",
)
LINKS = ("https://example.org/a.spack", "HTTP://example.org/a.spack")
SCRIPT = "<script>alert(1)</script>"
QUOTED = quote(SCRIPT, safe="")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site whose names are scripts, but for packages, and whose one hash is two
    packages.
    """
    folder = tmp_path_factory.mktemp("odd")
    names = {"variants": [SCRIPT, "+cuda"], "stacks": [SCRIPT, "root"], "os": SCRIPT}
    pages = write(
        folder / "pages",
        hostile=page("hostile", "develop", specs=[spec(1, target=SCRIPT, **names)]),
        other=page("zlib", SCRIPT, specs=[spec(1)]),
    )
    build([str(pages)], folder / "spack-cache.db")
    return site(folder / "spack-cache.db")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site whose tarballs have odd addresses, and whose names look like paths."""
    folder = tmp_path_factory.mktemp("addresses")
    odd = [
        spec(number, tarball=url, size="1")
        for number, url in enumerate((*NO_LINKS, *LINKS))
    ]
    pages = write(
        folder / "pages",
        odd=page("odd", specs=odd),
        path=page("odd.path", "rel/x", specs=[spec(90, stacks=["sta/ck", "root"])]),
    )
    build([str(pages)], folder / "spack-cache.db")
    return site(folder / "spack-cache.db")


@pytest.mark.asyncio(loop_scope="session")
async def test_only_addresses_of_the_web_are_links(addresses: Any) -> None:
    """A tarball's address is a link if it is one of the web; a script, a file, a path
    is text.
    """
    links: set[str] = set()
    for path in ("build_listings", "tarball_prefixes", "tarball_prefixes?_facet=url"):
        page_of = await addresses.client.get(f"/spack-cache/{path}")
        links |= set(re.findall(r'href="([^"]*)"', page_of.text))

    for number, url in enumerate(map(str, map(escape, (*NO_LINKS, *LINKS)))):
        text = (await addresses.client.get(f"/spec/{spec_hash(number)}")).text
        assert url in text
        assert (f'href="{url}"' in text) == (number >= len(NO_LINKS))
        assert url not in links or number >= len(NO_LINKS)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    [
        "/package/odd.path?release=rel/x",
        "/package/odd.path?release=rel%2Fx",
        "/release/rel/x",
        "/release/rel%2Fx",
        "/stack/sta/ck",
        "/stack/sta%2Fck",
    ],
)
async def test_names_may_have_slashes(addresses: Any, path: str) -> None:
    """What has a name that looks like a path has its page, whichever way it is
    written.
    """
    answer = await addresses.client.get(path)

    assert answer.status_code == 200
    assert spec_hash(90)[:7] in answer.text or "odd.path" in answer.text


@pytest.mark.asyncio(loop_scope="session")
async def test_a_slash_too_many_is_taken_off(addresses: Any) -> None:
    """A name does not end with a slash: such an address leads to the one without."""
    answer = await addresses.client.get("/release/rel/x/")

    assert answer.headers["location"] == "/release/rel/x"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    [
        "/releases",
        f"/spec/{spec_hash(90)}",
        "/find?q=odd",
        "/release/rel/x",
        "/spack-cache/builds",
    ],
)
async def test_links_to_names_with_slashes_lead_there(
    addresses: Any, path: str
) -> None:
    """Every link to a package, release or stack leads to its page."""
    page_of = await addresses.client.get(path, follow_redirects=True)
    found = re.findall(r'href="(/(?:package|release|stack|spec)/[^"#]*)', page_of.text)

    assert found
    for link in found:
        assert (
            await addresses.client.get(link.replace("&amp;", "&"))
        ).status_code == 200


@pytest.mark.asyncio(loop_scope="session")
async def test_a_contradiction_stands_on_the_page_of_the_spec(odd: Any) -> None:
    """A hash that is two packages in two releases is told in words, on every page
    without a 500.
    """
    told = await odd.client.get(f"/spec/{spec_hash(1)}")

    assert told.status_code == 200
    assert "contradicts this" in told.text
    assert "package zlib, not hostile" in told.text


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/package/hostile",
        "/package/zlib",
        f"/package/zlib?release={QUOTED}",
        f"/release/{QUOTED}",
        f"/stack/{QUOTED}",
        f"/find?q={QUOTED}",
        "/find?q=zlib",
        "/find?q=%2Bcuda",
        f"/spec/{spec_hash(1)}",
        f"/packages?q={QUOTED}&release={QUOTED}",
        f"/releases?q={QUOTED}",
        "/stacks",
        "/spack-cache/configurations",
        "/spack-cache/builds",
        "/spack-cache/problems",
    ],
)
async def test_names_are_shown_not_run(odd: Any, path: str) -> None:
    """Every page answers, and a name that is a script stands there as text."""
    response = await odd.client.get(path, follow_redirects=True)

    assert response.status_code == 200
    assert SCRIPT not in response.text


TEXTS = (
    "%00", "hdf5%00", "%ED%A0%80", "%FF%FE", "%C3%28", "%22", "%27", "%22%22", "%5C",
    "%5C%22", "%01%1B%7F", "%E2%80%AE", "%F0%9F%92%A9", "*", "%25", "_", "%", "%zz",
    "+", "-", "/", "..", ".", "AND", "OR+NOT", "NEAR(a+b)", "a*", "%5Ea", "a:b",
    "{a}+:", "tokens:", "(", "%22a", "a%22+b", "%7B", "%5B", "%7B%22a%22:1%7D", "[1,",
    "null", "-1", "9" * 400, "1e999", "a" * 9_000, "%40%40", "%5E", "hdf5%40", "%5E%5B",
    "%25%25", "~~", "target=:", "%0D%0A", "%3Cb%3E", "%09",
)  # fmt: skip
COLUMN_FIELDS = (
    "name={}", "name__in={}", "name__contains={}", "name__glob={}", "name__gt={}",
    "id={}", "name__date={}", "name__arraycontains={}", "{}=1", "{}__in=1",
    "name__{}=1", "_through={}", "_search={}", "_search_tokens={}",
    "_search={}&_searchmode=raw", "_searchmode={}", "_sort={}", "_sort_desc={}",
    "_col={}", "_nocol={}", "_facet={}", "_facet_array={}", "_facet_date={}",
    "_facet_size={}", "_next={}", "_size={}", "_shape={}", "_label={}", "_labels={}",
    "_json={}", "_nl={}", "_ttl={}", "_timelimit={}",
    "_filter_column={}&_filter_op=in&_filter_value={}", "_fts_table={}&_search=a",
    "_fts_pk={}&_search=a", "_nocount={}", "_trace={}", "_dl={}",
)  # fmt: skip
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
    """A quarter of the texts, by turns, in every field, on the routes that have it in
    turn.
    """
    for number in range(list(FIELDS).index(field) % 4, len(TEXTS), 4):
        text = TEXTS[number]
        path = FIELDS[field][number % len(FIELDS[field])]
        more = "&q=hdf5" if path.startswith("/find") and field != "q" else ""
        await refused_or_answered(datasette, f"{path}?{field}={text}{more}")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        "/package/{}",
        "/package/{}.json",
        "/badge/{}.svg",
        "/coverage/{}",
        "/diff/{}...{}.json",
        "/spec/{}",
        "/release/{}",
        "/stack/{}",
        "/{}.db",
        "/{}",
        "/spack-cache/{}",
        "/spack-cache/packages/{}",
        "/spack-cache/packages/{}.json",
        "/spack-cache/{}.csv",
        "/spack-cache/packages/1.{}",
        "/static/{}",
    ],
)
async def test_odd_texts_in_paths(datasette: Any, path: str) -> None:
    """A quarter of the texts, by turns, in every name that a path has."""
    for text in TEXTS[len(path) % 4 :: 4]:
        await refused_or_answered(datasette, path.format(text, text))


@pytest.mark.asyncio
@pytest.mark.parametrize("place", range(len(COLUMN_FIELDS)))
async def test_odd_texts_in_the_fields_of_tables(datasette: Any, place: int) -> None:
    """A quarter of the texts, by turns, in every field that Datasette knows on
    tables.
    """
    for number in range(place % 4, len(TEXTS), 4):
        text = TEXTS[number]
        end = ("", ".json", ".csv")[number % 3]
        field = COLUMN_FIELDS[place].format(text, text)
        await refused_or_answered(datasette, f"/spack-cache/packages{end}?{field}")


@pytest.mark.asyncio
async def test_odd_texts_in_queries_and_rows(datasette: Any) -> None:
    """Parameters of a canned query, of SQL, and fields of a row."""
    for text in TEXTS:
        await refused_or_answered(
            datasette, f"/spack-cache/new_versions?old={text}&new={text}"
        )
        await refused_or_answered(datasette, f"/spack-cache/most_hashes?package={text}")
        await refused_or_answered(datasette, f"{SQL}.json?sql=select+:a&a={text}")
        await refused_or_answered(
            datasette, f"/spack-cache/packages/1.json?_shape={text}"
        )


@pytest.mark.asyncio
async def test_a_search_without_a_word_is_answered(datasette: Any) -> None:
    """A blank search has all rows, a quotation mark none."""
    everything = (
        await get(datasette, "/spack-cache/packages.json?_shape=array")
    ).json()
    blank = await get(datasette, "/spack-cache/packages.json?_shape=array&_search=+")
    mark = await get(datasette, "/spack-cache/packages.json?_shape=array&_search=%22")

    assert blank.json() == everything != []
    assert (mark.status_code, mark.json()) == (200, [])
