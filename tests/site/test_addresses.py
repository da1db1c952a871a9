"""Names in other spellings lead to the name; unknown fields and columns are refused."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from datasette.filters import Filters

from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.routes import ROUTES
from spack_cache_db.site.table_addresses import OPERATORS
from tests.site.addresses import OWN, get
from tests.site.cache import MPI, spec_hash
from tests.site.conftest import metadata, site, site_described
from tests.site.http.test_permissions import DATA, closed

pytestmark = pytest.mark.slow

HASH = spec_hash(MPI)
SPELLED = (
    ("/package/Py_Torch", "/package/py-torch"),
    (
        "/package/HDF5?release=Develop&host=ZEN3",
        "/package/hdf5?release=develop&host=zen3",
    ),
    ("/package/HDF5.json", "/package/hdf5.json"),
    ("/badge/PY-TORCH.svg", "/badge/py-torch.svg"),
    ("/feed.atom?package=HDF5", "/feed.atom?package=hdf5"),
    ("/find.atom?q=hdf5&stack=E4S_ARM", "/find.atom?q=hdf5&stack=e4s-arm"),
    ("/release/V0.23.1", "/release/v0.23.1"),
    ("/release/develop_2025_04_20", "/release/develop-2025-04-20"),
    ("/stack/E4S_arm", "/stack/e4s-arm"),
    ("/coverage/Develop?by=stack", "/coverage/develop?by=stack"),
    (
        "/diff/Develop-2025-04-20...DEVELOP:E4S",
        "/diff/develop-2025-04-20...develop:e4s",
    ),
    (
        "/diff/V0.23.1...develop.csv?package=HDF5",
        "/diff/v0.23.1...develop.csv?package=hdf5",
    ),
    ("/diff?old=DEVELOP&new=v0.23.1", "/diff?old=develop&new=v0.23.1"),
    ("/packages?host=Zen3&has=X86-64-v3", "/packages?host=zen3&has=x86_64_v3"),
    ("/packages.json?stack=E4S", "/packages.json?stack=e4s"),
    ("/find.json?q=hdf5&release=DEVELOP", "/find.json?q=hdf5&release=develop"),
    (f"/spec/{HASH.upper()}?release=DEVELOP", f"/spec/{HASH}?release=develop"),
    ("/spack-cache/builds?package=HDF5", "/spack-cache/builds?package=hdf5"),
    (
        "/spack-cache/builds.json?package__exact=HDF5",
        "/spack-cache/builds.json?package__exact=hdf5",
    ),
    (f"/spack-cache/specs?hash={HASH.upper()}", f"/spack-cache/specs?hash={HASH}"),
    (
        "/spack-cache/most_hashes?package=+HDF5+",
        "/spack-cache/most_hashes?package=hdf5",
    ),
    ("/spack-cache/packages?name=Py_Torch", "/spack-cache/packages?name=py-torch"),
    ("/spack-cache/host_builds?host=ZEN3", "/spack-cache/host_builds?host=zen3"),
)


@pytest.mark.asyncio
@pytest.mark.parametrize("base_url", ["/", "/cache/"])
async def test_other_spellings_lead_to_the_name(database: Path, base_url: str) -> None:
    """Every kind of address with a name redirects for good, and the name's own does
    not.
    """
    served = site(database, base_url=base_url)

    for spelled, address in SPELLED:
        answer = await get(served, spelled)
        assert answer.status_code == 301, spelled
        assert answer.headers["location"] == base_url + address[1:].replace("^", "%5E")
        found = await get(served, address)
        assert found.status_code in (200, 302), address


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("address", "clean"),
    [
        ("/packages?q=&host=zen3", "/packages?host=zen3"),
        ("/package/hdf5?variant=&variant=%2Bmpi&page=", "/package/hdf5?variant=%2Bmpi"),
        ("/releases?q=&kind=", "/releases"),
        ("/diff?old=&new=&stack=e4s", "/diff?stack=e4s"),
    ],
)
async def test_addresses_have_no_empty_fields(
    datasette: Any, address: str, clean: str
) -> None:
    """A form sends the fields that nobody filled in; the page leads to the address
    without.
    """
    answer = await get(datasette, address)

    assert (answer.status_code, answer.headers["location"]) == (302, clean)
    assert (await get(datasette, clean)).status_code == 200
    assert (await get(datasette, "/packages.json?q=")).status_code == 200


@pytest.mark.asyncio
async def test_who_may_not_view_learns_no_name(database: Path) -> None:
    """Where a visitor may not view the database, names are answered as other texts
    are.
    """
    served = closed(database, "databases", "spack-cache", to=False)
    data = ("builds", "most_hashes")
    paths = [f"/spack-cache/{name}.json?package={{}}" for name in data]

    for path in ("/package/{}", "/feed.atom?package={}", *paths):
        answers = [await get(served, path.format(text)) for text in ("HDF5", "NO-SUCH")]
        assert [answer.status_code for answer in answers] == [403, 403]


@pytest.mark.asyncio
async def test_a_misspelt_field_is_refused(datasette: Any) -> None:
    """Each field of each of our pages: the answer to a misspelt one names the field."""
    asked = 0

    for path in (each.partition("?")[0] for each in (*OWN, *DATA)):
        route = next(each for each in ROUTES if re.match(each.pattern, path))
        for field in route.fields:
            answer = await get(datasette, f"{path}?{field}{field[-1]}=x")
            assert answer.status_code == 400, (path, field)
            assert re.search(rf"(?:close|known): [\w, ]*\b{field}\b", answer.text)
            asked += 1
    assert asked > 100


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/packages?utm_source=x&fbclid=1&_hl=de", 200),
        ("/package/hdf5?utm_source=x", 200),
        ("/packages.json?utm_source=x", 400),
        ("/package/hdf5?nosuch=1&_size=2", 200),
        ("/packages.json?_size=2", 400),
        ("/packages.csv?_x=1", 400),
        ("/find.json?q=hdf5&realese=develop", 400),
        ("/feed.atom?pkg=hdf5", 400),
        ("/packages?sort=spces", 200),
        ("/packages.json?sort=spces", 400),
        ("/packages.json?order=up", 400),
    ],
)
async def test_fields_of_other_sites_are_ignored_by_pages(
    datasette: Any, path: str, status: int
) -> None:
    """Pages ignore what links of other sites add; programs that ask for data are
    told.
    """
    assert (await get(datasette, path)).status_code == status


FIELDS = (
    "{0}=x", "{0}__contains=x", "_sort={0}", "_sort_desc={0}", "_col={0}", "_nocol={0}",
    "_facet={0}", "_facet_array={0}", "_facet_date={0}", '_facet={{"simple":"{0}"}}',
)  # fmt: skip


@pytest.mark.asyncio
@pytest.mark.parametrize("field", FIELDS)
async def test_a_misspelt_column_is_refused(
    datasette: Any, conn: sqlite3.Connection, field: str
) -> None:
    """On tables and views by turns, in each form, wherever a column stands in the
    address.
    """
    tables = (*VIEWS, *(each.name for each in TABLES))

    for number, table in enumerate(tables[FIELDS.index(field) % 5 :: 5]):
        end = ("", ".json", ".csv")[number % 3]
        columns = [
            row[1]
            for row in conn.execute(f"SELECT * FROM pragma_table_info('{table}')")
        ]
        column = max(columns, key=len)
        wrong = f"{column[:-1]}zz"
        answer = await get(
            datasette, f"/spack-cache/{table}{end}?{field.format(wrong)}"
        )
        assert answer.status_code == 400, table
        said = answer.text.replace("&#39;", "'")
        assert f"{table} has no column '{wrong}'; close: " in said, said[-500:]
        assert column in said.partition("close: ")[2]


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "builds{}?package__contians=x",
            "no filter is called 'contians'; close: contains",
        ),
        (
            "packages{}?_search_token=x",
            "has no field '_search_token'; close: _search_tokens",
        ),
        ("builds{}?_search=x", "builds has no full-text search"),
        (
            "most_hashes{}?pakage=hdf5",
            "this query has no field 'pakage'; close: package",
        ),
        (
            "changes_by_release{}?package=hdf5",
            "this query has no field 'package'; known: none",
        ),
    ],
)
async def test_what_a_table_or_query_cannot_do_is_refused(
    datasette: Any, path: str, sentence: str, end: str
) -> None:
    """An unknown operator, a search that is not there, a field of a query."""
    answer = await get(datasette, f"/spack-cache/{path.format(end)}")

    assert answer.status_code == 400
    assert sentence in answer.text.replace("&#39;", "'")
    assert end != ".json" or answer.json()["status"] == 400


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        "packages?_hl=de&_shape=objects&_x=1",
        "listings?rowid=1",
        "packages?_search=hdf&_searchmode=raw&name__notblank=1",
        "builds.json?_facet=package&_facet_size=3&_sort=package&_col=hash&_nofacet=1",
        "variant_values_of_package?package=hdf5&_hide_sql=1",
        "packages/1?x=1",
    ],
)
async def test_what_is_known_is_answered(datasette: Any, path: str) -> None:
    """Parameters that begin with an underscore may be those of plugins."""
    assert (await get(datasette, f"/spack-cache/{path}")).status_code == 200


def test_every_filter_of_datasette_is_known() -> None:
    """None of the filters of this Datasette is taken for a misspelt one."""
    assert {key for key, *_ in Filters([]).lookups()} <= set(OPERATORS)


@pytest.mark.asyncio
async def test_queries_of_others_are_left_alone(database: Path) -> None:
    """A canned query of the metadata that lists no parameters takes any."""
    described = metadata()
    described["databases"]["spack-cache"]["queries"]["mine"] = {"sql": "select :a as a"}
    served = site_described(database, described)

    assert (await get(served, "/spack-cache/mine.json?a=1&b=2")).status_code == 200
