"""The site over an invented build cache: as a connection, in process, and as a real
server.
"""

import json
import sqlite3
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.serve.metadata import site_settings
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.routes import respond, route_of
from spack_cache_db.site.settings import SiteSettings
from spack_cache_db.site.site import Site
from spack_cache_db.site.sql import functions as sql_functions
from spack_cache_db.site.sql import limits
from spack_cache_db.site.sql.authorizer import authorize
from tests.many import build_many
from tests.metadata import METADATA
from tests.paths import ROOT
from tests.serving import Server, serving
from tests.shared import built_once
from tests.site.cache import write_pages

IS_065 = hasattr(Datasette, "metadata")
SQL = "/spack-cache" if IS_065 else "/spack-cache/-/query"
"""Where SQL is asked; from the first, 1.0 leads to the second."""


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented cache, built by the real builder."""

    def make(folder: Path) -> None:
        build([str(write_pages(folder / "pages"))], folder / "spack-cache.db")

    return built_once(tmp_path_factory, "site", make) / "spack-cache.db"


@pytest.fixture(scope="session")
def conn(database: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to the built file."""
    connection = sqlite3.connect(f"file:{database}?immutable=1", uri=True)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def lookups(conn: sqlite3.Connection) -> Lookups:
    """The small tables of the built file."""
    return read_lookups(conn)


def open_site(file: Path) -> Site:
    """Return the site over a file, on a connection as Datasette's plugin prepares
    it.
    """
    conn = sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True)
    conn.text_factory = lambda text: str(text, "utf-8", "replace")
    limits.restrict(conn)
    sql_functions.register(conn)
    authorize(conn)
    return Site(SiteSettings(templates=(str(ROOT / "templates"),)), conn)


@pytest.fixture(scope="session")
def own_site(database: Path) -> Iterator[Site]:
    """The site over the built file."""
    found = open_site(database)
    yield found
    found.conn.close()


def asked_of(found: Site, address: str) -> PageResponse:
    """Return the whole answer to an address, all of its parts together."""
    path, _, query = address.partition("?")
    number = route_of(path)
    assert number is not None
    request = PageRequest(path, query)
    answer = respond(found, number, request)
    while answer.following is not None:
        part = respond(found, number, replace(request, first=answer.following))
        answer = part._replace(body=answer.body + part.body)
    return answer


def metadata() -> dict[str, Any]:
    """A copy of the site's metadata, to be changed."""
    return deepcopy(METADATA)


def site(
    database: Path,
    described: dict[str, Any] | None = None,
    templates: Path = ROOT / "templates",
    *,
    immutable: bool = True,
    cors: bool = False,
    config: dict[str, Any] | None = None,
    **changes: Any,
) -> Any:
    """Return the site in process, with the real metadata, templates and settings unless
    given.
    """
    inspected = json.loads(
        database.with_suffix(".inspect.json").read_text(encoding="utf-8")
    )
    options: dict[str, Any] = {"files": [str(database)]}
    if immutable:
        options = {"immutables": [str(database)], "inspect_data": inspected}
    if not IS_065:
        options["config"] = config
    return Datasette(
        **options,
        metadata=described or metadata(),
        template_dir=str(templates),
        plugins_dir=str(ROOT / "plugins"),
        static_mounts=[("static", str(ROOT / "static"))],
        settings={**site_settings(), **changes},
        cors=cors,
    )


def site_described(database: Path, described: dict[str, Any]) -> Any:
    """Return the site with metadata that Datasette 1.0 takes as its configuration."""
    if IS_065:
        return site(database, described)
    return site(database, config=described)


@pytest.fixture(scope="session")
def datasette(database: Path) -> Any:
    """The site in process, as it is served by default."""
    return site(database)


@pytest.fixture(scope="session")
def index_site(real_index_file: Path) -> Any:
    """The site over a real index, which has dependencies."""
    return site(real_index_file)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site over a file in which every query has more rows than one answer may
    hold.
    """
    file = built_once(tmp_path_factory, "many", build_many) / "spack-cache.db"
    # Time enough on the slowest of machines: these tests are about rows.
    return site(file, sql_time_limit_ms=20_000)


@pytest.fixture(scope="session")
def server(database: Path) -> Iterator[Server]:
    """A real server process over the invented cache."""
    with serving(database) as started:
        yield started
