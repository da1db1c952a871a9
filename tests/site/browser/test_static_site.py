"""A static host and a browser: searches, install commands and SQL, from parts of the
file.
"""

import random
import sqlite3
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from spack_cache_db import build
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.site.static.addresses import safe_name
from spack_cache_db.site.static.export import export_static
from tests.corpus import pages as corpus
from tests.histories import lost_history
from tests.serving import serving
from tests.site.browser.static_hosts import hosted

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and keeps no log."""

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Host(NamedTuple):
    """A static host of exported files."""

    address: str
    folder: Path

    def sent(self, database: str) -> tuple[int, int]:
        """Return in how many requests how many bytes of a database were sent."""
        log = (self.folder / "access.log").read_text().splitlines()
        lines = [
            each.split() for each in log if each.startswith(f"/{database}/spack-cache-")
        ]
        # The browser asks whether what it has kept is still the same.
        assert {status for _, status, _ in lines} <= {"206", "304"}
        return len(lines), sum(int(size) for _, _, size in lines)


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of some megabytes, from thousands of pages."""
    folder = tmp_path_factory.mktemp("large")
    corpus.write(folder / "pages", 0.03)
    build(folder / "pages", folder / "large.db")
    return folder / "large.db"


@pytest.fixture(scope="module")
def host(
    tmp_path_factory: pytest.TempPathFactory,
    samples_file: Path,
    real_index_file: Path,
    real_tree_file: Path,
    large_file: Path,
) -> Iterator[Host]:
    """An nginx with an export of each file, by name."""
    folder = tmp_path_factory.mktemp("host")
    files = {"pages": samples_file, "index": real_index_file, "tree": real_tree_file}
    files["history"] = lost_history(tmp_path_factory.mktemp("history"))
    for name, file in {**files, "large": large_file}.items():
        export_static(file, folder / "public" / name)
    with hosted(folder) as address:
        yield Host(address, folder)


def test_little_of_the_file_is_read(host: Host, page: Page, large_file: Path) -> None:
    """A search, a package, a binary's commands and a statement need less than a
    megabyte.
    """
    with sqlite3.connect(large_file) as conn:
        sql = "SELECT name, newest_version FROM packages ORDER BY name"
        name, version = conn.execute(sql).fetchone()
    page.goto(f"{host.address}/large/")
    page.get_by_role("searchbox").fill(name[:-1].upper())
    page.keyboard.press("Enter")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"{name} {version}")
    page.locator(".match a.hash").click()
    expect(page.locator("pre").last).to_contain_text(
        f"spack install --cache-only {name}/"
    )
    sql = f"SELECT DISTINCT version FROM builds WHERE package = '{name}'"
    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_role("textbox", name="SQL statement").fill(sql)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("cell", name=version, exact=True)).to_be_visible()
    requests, read = host.sent("large")

    assert read < 1_000_000 < large_file.stat().st_size / 3
    assert requests < 60


READ = """() => {
  const words = (element) => element?.textContent.replace(/\\s+/g, " ").trim() ?? "";
  const pairs = (link) => [...new URL(link.href).searchParams].map(String).sort();
  const fields = (link) => (link.href ? pairs(link) : []);
  const values = [...document.querySelectorAll(".pick .values > :not(.more)")];
  const shown = values.filter((each) => !each.hidden);
  return {
    build: words(document.querySelector(".match")).replaceAll(" ", ""),
    copied: [...document.querySelectorAll("#install [data-copy]")].map((each) => each.dataset.copy),
    notes: words(document.querySelector("#install")).replaceAll(" ", ""),
    choices: shown.map((each) => [words(each), each.className, fields(each)]),
  };
}"""
"""What a page shows: the build, what its buttons copy, its notes and its choices."""


def choices_of(conn: sqlite3.Connection, number: int) -> Iterator[tuple[str, str]]:
    """Yield packages with choices on their pages, some of which no binary has."""
    chance = random.Random(7)
    columns = "package, version, compiler, os, target, variants"
    sql = f"SELECT DISTINCT {columns} FROM builds ORDER BY {columns}"
    builds = conn.execute(sql).fetchall()
    for _ in range(number):
        name, version, compiler, system, target, variants = chance.choice(builds)
        switches = [text for text in variants.split() if text[0] in "+~"]
        fields = {
            "version": version,
            "host": chance.choice([target, "zen3", "zen4", "neoverse_v2", "m1"]),
            "os": system,
            "compiler": compiler if "@" in compiler else f"{compiler}@",
        }
        pairs = [pair for pair in fields.items() if chance.random() < 0.4]
        if switches and chance.random() < 0.6:
            pairs.append(("variant", chance.choice("+~") + chance.choice(switches)[1:]))
        yield name, urlencode(pairs)


@pytest.mark.parametrize("kind", ["pages", "index", "large"])
def test_choices_have_the_answers_of_the_site(
    kind: str, host: Host, page: Page
) -> None:
    """For a sample of choices, the page of an export has the build, the commands, the
    reason, and the possible and impossible values that a server has.
    """
    file = next((host.folder / "public" / kind).glob("*.db"))

    with sqlite3.connect(file) as conn, serving(file) as site:
        for name, query in choices_of(conn, 12):
            page.goto(f"{site.address}/package/{quote(name)}?{query}")
            wanted = page.evaluate(READ)
            page.goto(f"{host.address}/{kind}/package/{safe_name(name)}.html?{query}")
            assert page.evaluate(READ) == wanted, f"{name}?{query}"


@pytest.mark.parametrize("kind", ["pages", "index", "tree"])
def test_the_commands_are_those_of_find(
    kind: str, host: Host, page: Page, request: pytest.FixtureRequest
) -> None:
    """For some binaries of each kind of source, the page prints what `find --install`
    prints.
    """
    fixture = {"pages": "samples", "index": "real_index", "tree": "real_tree"}[kind]
    conn: sqlite3.Connection = request.getfixturevalue(fixture)
    lookups = read_lookups(conn)
    sql = "SELECT builds.package, hash, specs.id FROM builds JOIN specs USING (hash) ORDER BY hash"
    rows = conn.execute(sql).fetchall()

    for package, dag_hash, spec in rows[:: len(rows) // 4]:
        wanted = commands_of(lookups, [spec])[spec].commands
        page.goto(
            f"{host.address}/{kind}/#/binary/{quote(f'{package}/{dag_hash}', safe='')}"
        )
        expect(page.locator("h1")).to_contain_text(dag_hash)
        shown = page.locator("pre").all_inner_texts()
        # The page names the whole hash, so that it need not look for others that begin
        # alike.
        assert shown[:-1] == list(wanted[:-1])
        assert shown[-1].startswith(wanted[-1])


def test_a_binary_has_its_facts(
    host: Host, page: Page, real_index: sqlite3.Connection
) -> None:
    """Its configuration, and links to what it needs, as the site has them."""
    page.set_viewport_size({"width": 390, "height": 800})
    dag_hash, version, variants = real_index.execute(
        "SELECT hash, version, variants FROM builds WHERE package = 'hdf5' ORDER BY hash"
    ).fetchone()
    needs = real_index.execute(
        "SELECT dependency_package || '@' || dependency_version FROM dependency_edges"
        " WHERE hash = ? ORDER BY dependency_package, dependency_hash",
        (dag_hash,),
    ).fetchall()
    page.goto(f"{host.address}/index/#/binary/hdf5%2F{dag_hash}")

    expect(page.locator("dt", has_text="Version")).to_be_visible()
    texts = page.locator("dd").all_inner_texts()
    assert version in texts and variants in texts
    page.get_by_text(f"What it needs: {len(needs)}").click()
    links = page.locator("main details li a")
    assert links.all_inner_texts() == [text for (text,) in needs]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first = needs[0][0].partition("@")[0]
    links.first.click()
    expect(page.locator("h1")).to_contain_text(first)


def test_a_choice_stays(host: Host, page: Page) -> None:
    """On any host below any address, a choice is in the address of the page: Back leads
    to the one before, a reload keeps it, and the button copies its command.
    """
    handler = partial(Quiet, directory=str(host.folder / "public"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{address}/pages/packages.html")
        page.get_by_role("link", name="py-mpi4py", exact=True).click()
        first = page.locator(".match strong").inner_text()
        version = (
            page.get_by_role("group", name="Version").locator("a:not(.chosen)").first
        )
        name = version.evaluate("link => link.firstChild.data")
        version.click()
        expect(page.locator(".match strong")).to_contain_text(f"py-mpi4py@{name}")
        chosen = page.locator(".match strong").inner_text()
        assert "/pages/package/py-mpi4py.html?version=" in page.url

        page.reload()
        expect(page.locator(".match strong")).to_have_text(chosen)
        dag_hash = page.locator(".match a.hash").inner_text()
        page.get_by_role("button", name="Copy: the command", exact=True).click()
        expect(page.locator("#install button.primary").first).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == f"spack install --cache-only py-mpi4py{dag_hash}"
        page.go_back()
        expect(page.locator(".match strong")).to_have_text(first)
        server.shutdown()


def test_a_machine_is_stored_only_if_it_is_chosen(host: Host, page: Page) -> None:
    """A link with a machine shows it; only a choice of the reader stores it."""
    page.goto(f"{host.address}/pages/package/py-mpi4py.html?host=zen4")
    expect(page.locator(".match")).to_contain_text("zen4")

    assert page.evaluate("localStorage.getItem('spack-machine')") is None

    page.locator("select[name=host]").select_option("zen3")
    expect(page.locator(".match")).to_contain_text("zen3")
    assert page.evaluate("localStorage.getItem('spack-machine')") == "zen3"


def test_a_package_is_whole_without_scripts(host: Host, browser: Browser) -> None:
    """The default build, its commands, the map and all rows are in the page itself."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{host.address}/pages/package/py-mpi4py.html")
    expect(page.locator("#install pre").first).to_contain_text("py-mpi4py/")
    count = page.locator("#configurations-heading").inner_text().split()[0]

    assert page.locator("#configurations tbody tr").count() == int(count)

    expect(page.locator("#runs-heading")).to_be_visible()
    expect(page.locator(".picker")).to_contain_text("Machine")
    context.close()


def test_a_long_table_begins_with_some_rows(
    host: Host, page: Page, large_file: Path
) -> None:
    """A button shows the others; the chosen row is there, wherever it is."""
    with sqlite3.connect(large_file) as conn:
        sql = "SELECT name, configuration_count FROM packages ORDER BY 2 DESC, 1"
        name, count = conn.execute(sql).fetchone()
    page.goto(f"{host.address}/large/package/{safe_name(name)}.html")
    rows = page.locator("#configurations tbody tr:visible")

    assert count > 26
    assert rows.count() in (25, 26)

    page.get_by_role("button", name=f"Show all {count}").click()
    expect(rows).to_have_count(count)
    page.get_by_role("link", name="Use /").first.click()
    expect(page.locator(".match")).to_contain_text("your choice")


@pytest.mark.parametrize(
    "place",
    [
        "",
        "index.html?q=py",
        "index.html#/sql/SELECT%20*%20FROM%20stacks",
        "package/py-mpi4py.html",
        "package/py-mpi4py.html?host=zen4&variant=%2Bnothing",
        "packages.html",
        "about.html",
    ],
)
def test_axe_finds_nothing(place: str, host: Host, page: Page) -> None:
    """Each kind of page is accessible."""
    page.goto(f"{host.address}/pages/{place}")
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    expect(page.locator("h1")).to_be_visible()
    violations = Axe().run(page).response["violations"]

    for violation in violations:
        elements = [node["html"] for node in violation["nodes"]]
        assert elements == [], violation["id"]
    assert violations == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nonsense", "no such column: nonsense"),
        ("DELETE FROM packages", "readonly"),
    ],
)
def test_an_error_is_told(sql: str, said: str, host: Host, page: Page) -> None:
    """What SQLite says stands on the page, and nothing is written anywhere."""
    page.goto(f"{host.address}/pages/#/sql/{quote(sql)}")
    expect(page.get_by_role("alert")).to_contain_text(said)


def test_a_statement_can_be_stopped(host: Host, page: Page) -> None:
    """What would never end is ended by a button, and the next statement is answered."""
    endless = "WITH RECURSIVE a(b) AS (SELECT 1 UNION ALL SELECT b + 1 FROM a) SELECT max(b) FROM a"
    page.goto(f"{host.address}/pages/#/sql/{quote(endless)}")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("alert")).to_have_text("stopped")
    page.get_by_role("searchbox").fill("mpi4py")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="py-mpi4py", exact=True)).to_be_visible()


def test_a_server_without_ranges_is_told(host: Host, page: Page) -> None:
    """The page says what the server lacks, and does not load the whole file."""
    handler = partial(Quiet, directory=str(host.folder / "public" / "pages"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sql = f"#/sql/{quote('SELECT * FROM stacks')}"
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html{sql}")
        expect(page.get_by_role("alert")).to_contain_text(
            "does not support byte ranges"
        )
        server.shutdown()
