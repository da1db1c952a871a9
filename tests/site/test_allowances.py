"""site.allowances: what other plugins may do here; without a configuration it is
nothing.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from datasette.plugins import pm
from datasette.utils import StartupError
from datasette.utils.asgi import Response
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.serve.datasette_app import SiteOptions, datasette_of
from spack_cache_db.site.allowances import Allowances, read_allowances
from spack_cache_db.site.plugin import hook
from tests.paths import ROOT
from tests.programs import install_plugins
from tests.serving import serving
from tests.site.addresses import get
from tests.site.conftest import IS_065, SQL, metadata, site

pytestmark = pytest.mark.slow

OPEN = {"open_paths": ["/-/wrapped"], "csp": {"script-src": ["'unsafe-eval'"]}}
DOUBLED = f"{SQL}.json?sql=select+twice(21)+as+answer&_shape=array"
_PLUGINS = """
auth-passwords block-robots copyable dashboards graphql jellyfish mcp schema-versions search-all
vega
"""
PLUGINS = {f"datasette-{name}" for name in _PLUGINS.split()}
"""The plugins that the documentation names."""
SECRET_HASH = (
    "pbkdf2_sha256$480000$8754f7dbddf2a3b256957b42855910ba"
    "$FvQEHWMolaahZgSaNQB5/268tIsOTC0ZY225xngCZ2s="
)
"""Of the password `secret`, as the plugin for passwords makes it."""
PASSWORDS = (
    "  datasette-auth-passwords: {staff_password_hash: {$env: STAFF_PASSWORD_HASH}}"
)

DASHBOARDS = """
  datasette-dashboards:
    cache:
      title: Binaries of the cache
      charts:
        count:
          title: All
          db: spack-cache
          query: SELECT count(*) AS binaries FROM builds
          library: metric
          display: {field: binaries}
"""
APART = "apart"
"""The folder of a plugin that is not loaded with the others, because it changes
addresses.
"""
MCP_VERSION = "2026-07-28"
"""The first version of the Model Context Protocol without sessions."""

KNOWN = "an exception that the plugin answers itself"
OWN_HEAD = (
    '{% extends "base.html" %}{% block extra_head %}<meta name="mine">{% endblock %}'
    "{% block content %}The plugin's page{% endblock %}"
)


class OwnPlugin:
    """A plugin with pages, a form and a function in SQL."""

    __name__ = "mine"

    @hook
    def register_routes(self) -> list[Any]:
        """Add two pages."""

        async def page(request: Any) -> Any:
            # A page with a form may read it whatever the method is.
            await request.post_vars()
            return Response.text(request.method)

        async def broken() -> None:
            raise TypeError("a bug of the plugin")

        async def known() -> None:
            raise KeyError(KNOWN)

        async def own_head(datasette: Any, request: Any) -> Any:
            template = datasette.jinja_env.from_string(OWN_HEAD)
            return Response.html(
                await datasette.render_template(template, request=request)
            )

        return [
            (r"^/-/mine(/more)?$", page),
            (r"^/mine$", page),
            (r"^/mine/broken$", broken),
            (r"^/mine/known$", known),
            (r"^/mine/own-head$", own_head),
        ]

    @hook
    def render_cell(self, value: object) -> None:
        """Fail at one value."""
        if value == "zlib":
            raise TypeError("a bug of the plugin")

    @hook
    def handle_exception(self, exception: Exception) -> Any:
        """Answer one exception, and leave the others."""
        if exception.args == (KNOWN,):
            return Response.text("the plugin's answer", status=418)
        return None

    @hook
    def prepare_connection(self, conn: Any) -> None:
        """Add a function."""
        conn.create_function("twice", 1, lambda value: 2 * value)

    @hook
    def asgi_wrapper(self) -> Any:
        """Have responses with data cached, and answer or fail at an address that is not
        registered.
        """

        def wrap(app: Any) -> Any:
            async def wrapped(scope: Any, receive: Any, send: Any) -> None:
                async def cached(message: Any) -> None:
                    is_data = scope.get("path", "").startswith("/spack-cache")
                    if is_data and message["type"] == "http.response.start":
                        header = (b"cache-control", b"max-age=31536000")
                        message = {**message, "headers": [*message["headers"], header]}
                    await send(message)

                if scope.get("path") == "/-/wrapped":
                    await Response.text("wrapped").asgi_send(cached)
                elif scope.get("path") == "/-/wrapped/fails":
                    raise LookupError("no such service")
                else:
                    await app(scope, receive, cached)

            return wrapped

        return wrap

    @hook
    def skip_csrf(self) -> bool:
        """Take a form from anywhere."""
        return True


@pytest.fixture
def own_plugin() -> Iterator[None]:
    """The plugin, while a test lasts."""
    plugin = OwnPlugin()
    pm.register(plugin)
    yield
    pm.unregister(plugin)


def site_allowing(database: Path, config: object) -> Any:
    """Return the site with a configuration of what is allowed."""
    plugins = {"plugins": {"spack-cache-db": config}}
    own_metadata = metadata()
    # Datasette 1.0 reads it from the configuration, 0.65 from the metadata.
    if IS_065:
        own_metadata = own_metadata | plugins
    return site(database, own_metadata, config=plugins)


@pytest.mark.asyncio
@pytest.mark.usefixtures("own_plugin")
async def test_what_a_plugin_registers_is_open_and_datasettes_tools_are_not(
    database: Path,
) -> None:
    """A plugin's pages take every method and are not cached, and SQL may use its
    functions.
    """
    served = site_allowing(database, {})

    for path in ("/-/mine", "/-/mine/more", "/mine"):
        for method in ("GET", "POST"):
            answer = await served.client.request(method, path)
            assert (answer.status_code, answer.text) == (200, method), path
            assert answer.headers["cache-control"] == "no-store"
    assert (await get(served, DOUBLED)).json() == [{"answer": 42}]
    for path in ("/-/miner", "/-/threads", "/-/actor", "/-/wrapped"):
        assert (await get(served, path)).status_code == 404
    assert (await served.client.post("/spack-cache")).status_code == 405


@pytest.mark.asyncio
@pytest.mark.usefixtures("own_plugin")
async def test_a_fault_of_a_plugin_is_not_one_of_the_address(database: Path) -> None:
    """Its exception is an error of the server, on its own pages and on those of
    Datasette.
    """
    for path in ("/mine/broken", "/spack-cache/packages?name=zlib"):
        answer = await get(site_allowing(database, {}), path)

        assert answer.status_code == 500, path
        assert "unexpected error" in answer.text


@pytest.mark.asyncio
@pytest.mark.usefixtures("own_plugin")
async def test_wrappers_of_plugins_are_inside_the_sites(database: Path) -> None:
    """Limits and headers hold for their responses, and they cannot have errors
    cached.
    """
    closed = await get(site_allowing(database, {}), "/-/wrapped")
    opened = await get(site_allowing(database, OPEN), "/-/wrapped")
    failed = await get(site_allowing(database, {}), "/spack-cache/packages?no_such=1")
    table = await get(site_allowing(database, {}), "/spack-cache/releases")

    assert closed.status_code == 404
    assert (opened.status_code, opened.text) == (200, "wrapped")
    assert "frame-ancestors 'none'" in opened.headers["content-security-policy"]
    assert failed.headers["cache-control"] == "no-store"
    assert table.headers["cache-control"] == "max-age=31536000"


@pytest.mark.asyncio
@pytest.mark.usefixtures("own_plugin")
async def test_an_error_of_a_wrapper_is_a_page_of_the_site(database: Path) -> None:
    """Although the wrapper is outside that of Datasette, which makes a form's token."""
    served = site_allowing(database, OPEN)
    await served.invoke_startup()
    answer = await get(served, "/-/wrapped/fails")

    assert answer.status_code == 500
    assert "/static/parts.css" in answer.text
    assert "unexpected error" in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.asyncio
@pytest.mark.usefixtures("own_plugin")
async def test_handlers_of_exceptions_stand_in_an_order(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plugin answers before the site does; Datasette's handler stays, and does
    nothing here.
    """
    served = site_allowing(database, {})
    known = await get(served, "/mine/known")
    broken = await get(served, "/mine/broken")

    assert (known.status_code, known.text) == (418, "the plugin's answer")
    assert "/static/parts.css" in broken.text
    assert "Traceback" not in capsys.readouterr().err
    assert pm.has_plugin("datasette.handle_exception")


@pytest.mark.asyncio
@pytest.mark.usefixtures("own_plugin")
async def test_a_page_with_a_head_of_its_own_keeps_the_styles(database: Path) -> None:
    """Styles and script come once."""
    served = site_allowing(database, {})
    text = (await get(served, "/mine/own-head")).text

    assert '<meta name="mine">' in text
    for name in ("tokens.css", "parts.css", "datasette.css", "site.js"):
        assert text.count(f"/static/{name}?v=") == 1, name
    for path in set(re.findall(r'(?:href|src)="(/static/[^"]*)', text)):
        assert (await get(served, path)).status_code == 200, path


@pytest.mark.asyncio
async def test_sources_are_allowed_and_no_others(database: Path) -> None:
    """The policy of Datasette's pages is wider, and that of our own pages is not."""
    served = site_allowing(database, OPEN)
    table = await get(served, "/spack-cache/packages")
    home = await get(served, "/")

    policy_of_table = table.headers["content-security-policy"]
    assert "script-src 'self' 'unsafe-inline' 'unsafe-eval';" in policy_of_table
    assert "object-src 'none'" in policy_of_table
    assert "unsafe" not in home.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "object"),
        ({"paths": []}, "'paths'.*open_paths"),
        ({"open_paths": "/-/x"}, "array.*open_paths"),
        ({"open_paths": ["-/x"]}, "open_paths.*/-/search"),
        ({"open_paths": ["/"]}, "open_paths"),
        ({"csp": ["x"]}, "object.*csp"),
        ({"csp": {"img-src": ["a; script-src *"]}}, "img-src.*semicolons"),
        ({"stale_days": "x"}, "stale_days"),
        ({"sql_functions": ["twice"]}, "no key is called 'sql_functions'"),
    ],
)
def test_a_wrong_configuration_is_refused(config: object, message: str) -> None:
    """The server does not start; the message names the key and what is expected."""
    with pytest.raises(StartupError, match=message):
        read_allowances(config)


@given(
    st.from_regex(r"/[-/.ab]{,6}[-.ab]", fullmatch=True), st.text("/-.ab", max_size=12)
)
def test_a_path_opens_itself_and_paths_below_it(path: str, requested: str) -> None:
    """A path opens itself, its forms such as `.json`, and paths below it."""
    is_path = requested == path
    is_below = requested.startswith((path + "/", path + "."))
    assert Allowances((path,)).opens(requested) == (is_path or is_below)


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with real plugins of Datasette, as plugins.lock names them."""
    folder = tmp_path_factory.mktemp("plugins")
    install_plugins(folder)
    (folder / APART).mkdir()
    for path in folder.glob("datasette_hashed_urls*"):
        path.rename(folder / APART / path.name)
    return folder


@pytest.mark.skipif(
    not IS_065, reason="auth-passwords and search-all are for Datasette 0.65"
)
def test_real_plugins_work_as_documented(
    database: Path, plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the documented configuration, pages, forms, SQL functions and charts work in
    `serve`.
    """
    text = (ROOT / "docs" / "site-reference.md").read_text(encoding="utf-8")
    config = tmp_path / "metadata.yml"
    documented = text.split("```yaml\n")[1].split("```")[0]
    config.write_text(documented + PASSWORDS + DASHBOARDS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{plugins}:{ROOT / 'builder'}")
    monkeypatch.setenv("STAFF_PASSWORD_HASH", SECRET_HASH)
    with serving(database, "--metadata", str(config), temporary=tmp_path) as server:
        client = httpx.Client(base_url=server.address, timeout=60, verify=False)
        loaded = {plugin["name"] for plugin in client.get("/-/plugins.json").json()}
        assert loaded >= PLUGINS
        assert client.get("/-/threads").status_code == 404

        assert_pages_of_plugins(client)
        assert_a_dashboard(client)

        # A function in SQL, and a query of GraphQL.
        distance = "select levenshtein_distance('hdf5', 'hdf')"
        params = {"sql": distance, "_shape": "arrays"}
        rows = client.get("/spack-cache.json", params=params).json()["rows"]
        assert rows == [[1]]
        graph = '{packages(filter: {name: {eq: "hdf5"}}) {nodes {name spec_count}}}'
        answer = client.post("/graphql", json={"query": graph}).json()
        (package,) = answer["data"]["packages"]["nodes"]
        assert package["name"] == "hdf5"

        # Any process answers an assistant.
        sql = "SELECT name FROM packages WHERE name = 'hdf5'"
        for _ in range(8):
            assert rows_for_assistant(client, sql) == [{"name": "hdf5"}]

        # Any process knows the login of another one, and its end.
        password = {"username": "staff", "password": "secret"}
        send_form(client, "/-/login", password)
        assert_menus_of_all_processes(client, has_logout=True)
        send_form(client, "/-/logout", {})
        assert_menus_of_all_processes(client, has_logout=False)


def assert_pages_of_plugins(client: httpx.Client) -> None:
    """Check the pages of plugins, and what plugins add to the page of a table."""
    table = client.get("/spack-cache/packages")
    assert "/-/static-plugins/datasette_vega/" in table.text
    assert "'unsafe-eval'" in table.headers["content-security-policy"]
    assert '<a href="/-/search">' in table.text
    for path in ("/-/search?q=hdf5", "/-/schema-versions", "/package/hdf5"):
        assert client.get(path).status_code == 200
    copied = client.get("/spack-cache/packages.copyable?_table_format=github&_raw=1")
    assert "| hdf5 " in copied.text


def assert_a_dashboard(client: httpx.Client) -> None:
    """Check a page of datasette-dashboards, in the design of the site."""
    dashboard = client.get("/-/dashboards/cache")
    assert "Binaries of the cache" in dashboard.text
    assert "/static/parts.css" in dashboard.text


def send_form(client: httpx.Client, path: str, fields: dict[str, str]) -> None:
    """Send the form of a page, with the token that is in it."""
    page = client.get(path).text
    token = page.split('name="csrftoken" value="')[1].split('"')[0]
    answer = client.post(path, data={**fields, "csrftoken": token})
    assert answer.status_code == 302


def assert_menus_of_all_processes(client: httpx.Client, *, has_logout: bool) -> None:
    """Check the menu of as many requests as reach all processes."""
    for _ in range(8):
        assert ("Log out" in client.get("/about").text) == has_logout


def rows_for_assistant(client: httpx.Client, sql: str) -> Any:
    """Call the tool of datasette-mcp that runs SQL, as a client without a session
    does.
    """
    names = "io.modelcontextprotocol"
    about = {
        f"{names}/protocolVersion": MCP_VERSION,
        f"{names}/clientInfo": {"name": "tests", "version": "1"},
        f"{names}/clientCapabilities": {},
    }
    tool = {"name": "execute_sql", "arguments": {"database": "spack-cache", "sql": sql}}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MCP_VERSION,
        "mcp-method": "tools/call",
        "mcp-name": "execute_sql",
    }
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"_meta": about, **tool},
    }
    answer = client.post("/-/mcp", headers=headers, json=request)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]["structuredContent"]["rows"]


@pytest.mark.skipif(not IS_065, reason="tried with Datasette 0.65")
def test_addresses_with_a_hash_change_with_the_database(
    database: Path,
    samples_file: Path,
    plugins: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """datasette-hashed-urls redirects to the hash of the open database; addresses are
    checked.
    """
    monkeypatch.setenv("PYTHONPATH", f"{plugins / APART}:{ROOT / 'builder'}")
    served = tmp_path / "served.db"
    shutil.copy(database, served)
    with serving(served, temporary=tmp_path) as server:
        first = server.get("/spack-cache/packages").headers["location"]
        table = server.get(first)
        wrong = server.get(f"{first}?no_such=1")
        page = server.get("/package/hdf5")
        shutil.copy(samples_file, tmp_path / "next.db")
        (tmp_path / "next.db").rename(served)
        second = server.get("/spack-cache/packages").headers["location"]

        assert re.fullmatch(r"/spack-cache-[0-9a-f]{7}/packages", first)
        assert table.headers["cache-control"] == "max-age=31536000, public"
        assert wrong.status_code == 400
        assert wrong.headers["cache-control"] == "no-store"
        assert first.rpartition("/")[0] in page.text
        assert second != first
        assert server.get(second).status_code == 200
        assert server.get(first).headers["location"] == second


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path", ["/", "/nowhere", "/find.csv?q=zlib", "/spack-cache/packages"]
)
async def test_only_named_origins_show_the_site_in_a_frame(
    path: str, database: Path, datasette: Any
) -> None:
    """Nobody may, unless an origin is allowed: then it may, with every page, and nobody
    else.
    """
    options = SiteOptions(embedding=["https://a.example", "http://[::1]:8000"])
    embeddable = datasette_of(database, {}, options)
    closed = (await datasette.client.get(path)).headers
    embedded = (await embeddable.client.get(path)).headers

    assert "frame-ancestors 'none'" in closed["content-security-policy"]
    assert closed["x-frame-options"] == "DENY"
    ancestors = "frame-ancestors https://a.example http://[::1]:8000;"
    assert ancestors in embedded["content-security-policy"]
    assert "x-frame-options" not in embedded


NOT_ORIGINS = [
    "*",
    "",
    "https:",
    "example.org",
    "https://*",
    "https://a/b",
    "https://a b",
    "'self'",
    "https://a;script-src *",
    "https://a, https://b",
    "javascript://a",
    "https://a\n",
]


@pytest.mark.parametrize("origin", NOT_ORIGINS)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    """An origin adds nothing else to the policy."""
    with pytest.raises(StartupError):
        read_allowances({"embedding": [origin]})
