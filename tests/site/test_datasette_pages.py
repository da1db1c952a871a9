"""Datasette's own pages: what they show first, canned queries, links, and errors."""

import re
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from datasette.app import Datasette

from benchmarks.server import free_port
from spack_cache_db.schema.views import VIEW_COUNTS, VIEWS
from spack_cache_db.serve.metadata import site_settings
from tests.metadata import QUERIES
from tests.paths import ROOT
from tests.processes import PATIENCE
from tests.serving import running
from tests.site.addresses import get
from tests.site.cache import MPI, spec_hash
from tests.site.conftest import SQL, site

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
async def test_the_database_begins_with_queries(datasette: Any) -> None:
    """Queries stand first, then views, then the tables, releases before all others."""
    page = (await get(datasette, "/spack-cache")).text
    names = re.findall(r'href="/spack-cache/(\w+)"', page)

    queries = [names.index(query) for query in QUERIES if query in names]
    assert queries == sorted(queries)
    assert max(queries) < names.index("builds") < names.index("build_listings")
    assert (
        names.index("build_listings")
        < names.index("releases")
        < names.index("packages")
    )
    assert names.index("packages") < names.index("compilers")
    assert len(names) == len(set(names))
    assert re.search(r"most_hashes\">[^<]+</a></dt>\s*<dd>[A-Z][^<]{10,}</dd>", page)
    groups = dict.fromkeys(
        each["group"] for name, each in QUERIES.items() if name in names
    )
    assert re.findall("<h3>([^<]*)</h3>\n<dl", page) == list(groups)
    assert re.search(r">builds</a></dt>\s*<dd>One row per binary", page)
    assert 'aria-label="SQL"' in page


def rows_of(text: str) -> int:
    """Return how many rows the table on a page has."""
    return text.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr>")


@pytest.mark.asyncio
async def test_a_canned_query_opens_with_form_and_rows(datasette: Any) -> None:
    """Its SQL is folded behind a link, its parameters are a form, its rows follow."""
    text = (
        await get(datasette, "/spack-cache/variant_values_of_package?package=zlib")
    ).text

    assert "FROM variant_set_members" not in text and "JOIN counted" not in text
    assert "_show_sql=1" in text
    assert re.search(r'name="package"[^>]*value="zlib"', text)
    assert rows_of(text)
    assert "<th" in text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("sql", "close"),
    [
        ("select * from build", "builds"),
        ("select * from Builds_listing", "build_listings"),
        ("select packge from builds", "package"),
        ("select b.hsah from builds b", "hash"),
        ("select * from qqqqqqqq", None),
    ],
)
async def test_a_name_that_is_not_there_is_told_with_close_ones(
    datasette: Any, sql: str, close: str | None
) -> None:
    """A slip of the keyboard in a table or column is answered with what there is."""
    said = (await get(datasette, f"{SQL}.json?sql={sql.replace(' ', '+')}")).json()[
        "error"
    ]

    assert said.startswith("no such ")
    assert (re.search(rf"; close: .*\b{close}\b", said) is not None) == (
        close is not None
    )


@pytest.mark.asyncio
async def test_a_name_in_place_of_an_id_is_told_where_it_is(datasette: Any) -> None:
    """A table has ids where a view has names: the error leads from one to the other."""
    sql = "select * from configurations where package = 'hdf5'"
    answer = await get(datasette, f"{SQL}.json?sql={quote(sql)}")

    assert answer.json()["error"] == (
        "no such column: package; close: package_id, package_hash, package_count; "
        "it is a column of builds, build_listings, configuration_counts and 15 more"
    )


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "name", [name for name, query in QUERIES.items() if "needs" not in query]
)
async def test_every_query_has_a_page(datasette: Any, name: str) -> None:
    """Each has its title, a field for each parameter, and rows as JSON."""
    page = await get(datasette, f"/spack-cache/{name}")
    rows = await get(datasette, f"/spack-cache/{name}.json?_shape=array")

    assert page.status_code == rows.status_code == 200
    assert QUERIES[name]["title"] in page.text
    fields = re.findall(r'<input[^>]*name="(\w+)"', page.text)
    assert set(QUERIES[name].get("params", [])) <= set(fields)
    assert isinstance(rows.json(), list)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path", ["/package/hdf5", "/package/hdf5?release=develop&host=zen3"]
)
async def test_pages_lead_to_queries_and_views(datasette: Any, path: str) -> None:
    """With what the page is about filled in; each leads to rows."""
    page = await get(datasette, path)
    links = [unescape(each) for each in re.findall(r'href="([^"]*)"', page.text)]
    asked = [
        link
        for link in links
        if link.split("?")[0].rpartition("/")[2] in {*QUERIES, *VIEWS}
    ]

    assert asked
    for each in asked:
        name, _, query = each.partition("?")
        rows = await get(datasette, f"{name}.json?{query}&_shape=array")
        assert rows.json(), each


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("most_hashes{}?package=hdf6", "no package has this name (near: hdf5"),
        (
            "compilers_of_release{}?release=devlop",
            "no release is called 'devlop'; close: develop",
        ),
        ("new_versions{}?old=v9&new=develop", "no release is called 'v9'"),
    ],
)
async def test_unknown_names_are_refused(
    datasette: Any, query: str, sentence: str
) -> None:
    """A table without rows would say that a package has none of them."""
    page = await datasette.client.get("/spack-cache/" + query.format(""))
    json = await datasette.client.get("/spack-cache/" + query.format(".json"))
    csv = await datasette.client.get("/spack-cache/" + query.format(".csv"))

    assert {page.status_code, json.status_code, csv.status_code} == {400}
    assert sentence in unescape(page.text)
    assert sentence in json.json()["error"]
    assert sentence in csv.text


@pytest.mark.asyncio
async def test_queries_without_data_are_left_out(
    datasette: Any, index_site: Any
) -> None:
    """Dependencies come from indexes alone; the beginning of a hash leads to the
    whole.
    """
    path = "/spack-cache/dependencies_of_hash"
    of_pages = (await get(datasette, "/spack-cache")).text

    assert (await datasette.client.get(path)).status_code == 404
    assert f'href="{path}"' not in of_pages
    assert "Dependencies</h3>" not in of_pages
    assert (await get(index_site, f"{path}.json?_shape=array")).json()


@pytest.mark.asyncio
async def test_the_beginning_of_a_hash_is_enough(
    index_site: Any, real_index: Any
) -> None:
    """The address leads to that of the whole hash."""
    ((dag_hash,),) = real_index.execute("SELECT max(hash) FROM builds")
    path = "/spack-cache/dependents_of_hash?hash="
    answer = await index_site.client.get(f"{path}%2F{dag_hash[:9].upper()}")

    assert answer.headers["location"] == f"{path}{dag_hash}"
    assert (await index_site.client.get(f"{path}{dag_hash}")).status_code == 200


@pytest.mark.asyncio
async def test_hashes_in_tables_lead_to_specs(datasette: Any) -> None:
    """Datasette's own tables link hashes and packages to our pages."""
    answer = await datasette.client.get("/spack-cache/builds?package=hdf5")
    changes = await datasette.client.get("/spack-cache/release_changes?package=hdf5")

    assert f'<a href="/spec/{spec_hash(MPI)}">' in answer.text
    assert '<a href="/package/hdf5">' in answer.text
    assert '<a href="/release/develop">' in changes.text


@pytest.mark.slow
def test_datasette_serves_a_checkout_by_itself(database: Path) -> None:
    """`datasette . -i spack-cache.db` has our pages, queries, styles and settings."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "datasette",
        ".",
        "-i",
        str(database),
        "--port",
        str(port),
    ]
    with (
        running(command, port, cwd=ROOT) as server,
        httpx.Client(base_url=server.address, verify=False, timeout=PATIENCE) as ask,
    ):
        found = ask.get(
            "/spack-cache/variant_values_of_package.json?package=hdf5&_shape=array"
        )
        settings = ask.get("/-/settings.json").json()

        assert (
            sum(row["spec_count"] for row in found.json() if row["name"] == "mpi") == 14
        )
        assert settings.items() >= site_settings().items()
        assert "hdf5" in ask.get("/package/hdf5").text
        assert ask.get("/static/parts.css").status_code == 200
        assert ask.get("/-/threads.json").status_code == 404


@pytest.mark.asyncio
async def test_rows_of_large_views_are_not_counted_again(database: Path) -> None:
    """A view without a filter has the count of the inspect file, and is not a table."""
    served = site(database)
    await served.invoke_startup()
    entry = served.inspect_data["spack-cache"]
    counts = {name: entry["tables"][name]["count"] for name in VIEW_COUNTS}
    for name in VIEW_COUNTS:
        answer = (await get(served, f"/spack-cache/{name}.json?_extra=count")).json()
        counted = answer.get("filtered_table_rows_count", answer.get("count"))
        assert counted == counts[name]
        # The pages of this site have no records.
        assert counted > 0 or name == "records"

    entry["tables"]["builds"] = {"count": 77}
    assert "77 rows" in (await get(served, "/spack-cache/builds?_sort=hash")).text
    assert "77 rows" not in (await get(served, "/spack-cache/builds?package=zlib")).text
    database_page = (await get(served, "/spack-cache.json")).json()
    assert VIEW_COUNTS.keys().isdisjoint(
        table["name"] for table in database_page["tables"]
    )


@pytest.mark.asyncio
async def test_a_site_without_an_inspect_file_counts(database: Path) -> None:
    """Datasette alone counts tables when it starts, and views when they are shown."""
    served = Datasette(
        [], immutables=[str(database)], plugins_dir=str(ROOT / "plugins")
    )

    # Datasette counts the tables before the first request, and starts its plugins after
    # that.
    for path in ("/", "/spack-cache", "/spack-cache/builds"):
        assert (await served.client.get(path)).status_code == 200
