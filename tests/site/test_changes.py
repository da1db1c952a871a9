"""The pages that compare two releases: the same as the command line and Python, within
bounds.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.diff import compare, diff
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.open.sql import connected
from spack_cache_db.schema.changes import CHANGE_WORDS
from spack_cache_db.site.pages import change_parts, changes, excerpts
from spack_cache_db.site.pages.changed_packages import Upgrade
from spack_cache_db.site.pages.excerpts import Excerpts
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.site import Site
from spack_cache_db.site.static.addresses import StaticSettings
from spack_cache_db.site.static.pages import files_of
from tests.commands import run
from tests.pagetexts import page, spec, spec_hash, write
from tests.site.addresses import get
from tests.site.conftest import asked_of, open_site, site

pytestmark = pytest.mark.slow

OLD = "develop-2025-04-13"
NEW = "develop-2025-04-20"


def listed(*specs: tuple[str, str, str, int, str]) -> dict[str, Any]:
    """Return the specs of a page by package: (package, version, target, number,
    stack).
    """
    found: dict[str, Any] = {}
    for package, version, target, number, stack in specs:
        words: dict[str, Any] = {
            "versions": [version],
            "target": target,
            "stacks": sorted({stack, "root"}),
        }
        found.setdefault(package, []).append(spec(hash=spec_hash(number), **words))
    return found


PLANTED = {
    OLD: listed(
        ("kept", "1.0", "zen3", 1, "e4s"),
        ("gone", "1.0", "zen3", 2, "e4s"),
        ("grows", "1.0", "zen3", 3, "e4s"),
        ("rebuilt", "1.0", "zen3", 4, "e4s"),
        ("rebuilt", "1.0", "zen3", 5, "e4s"),
        ("gains", "1.0", "zen3", 13, "hep"),
        ("narrows", "1.0", "zen3", 6, "hep"),
        ("narrows", "1.0", "aarch64", 7, "hep"),
        ("shrinks", "1.0", "zen3", 11, "hep"),
        ("shrinks", "1.0", "zen3", 12, "hep"),
    ),
    NEW: listed(
        ("kept", "1.0", "zen3", 1, "e4s"),
        ("grows", "1.1", "zen3", 8, "e4s"),
        ("rebuilt", "1.0", "zen3", 4, "e4s"),
        ("rebuilt", "1.0", "zen3", 9, "e4s"),
        ("narrows", "1.0", "zen3", 6, "hep"),
        ("fresh", "2.0", "zen3", 10, "ml"),
        ("shrinks", "1.0", "zen3", 11, "hep"),
        ("gains", "1.0", "zen3", 13, "hep"),
        ("gains", "1.0", "zen3", 14, "hep"),
    ),
}
"""Two snapshots whose changes are those that `test_planted_changes_are_shown` names."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the two snapshots."""
    folder = tmp_path_factory.mktemp("planted")
    pages = {
        f"{package}-{release}": page(package, release, specs)
        for release, packages in PLANTED.items()
        for package, specs in packages.items()
    }
    file = folder / "spack-cache.db"
    build([str(write(folder / "pages", **pages))], file)
    return file


@pytest.fixture(scope="module")
def served(planted: Path) -> Any:
    """The site of that file."""
    return site(planted)


def section(text: str, name: str) -> str:
    """Return one section of a page as words."""
    found = re.search(
        rf'<section aria-labelledby="{name}">.*?</section>', text, re.DOTALL
    )
    words = re.sub(r"<[^>]*>", " ", found[0]) if found else ""
    return unescape(" ".join(words.split()))


@pytest.mark.asyncio
async def test_planted_changes_are_shown(served: Any) -> None:
    """The page names what was planted, each in its section and nowhere else."""
    answer = await get(served, f"/diff/{OLD}...{NEW}")
    sections = {
        name: section(answer.text, name) for name in ("upgraded", *CHANGE_WORDS)
    }

    assert answer.status_code == 200
    assert "4 binaries new, 5 removed, 5 kept." in answer.text
    assert sections["upgraded"] == "Upgraded 1 package grows 1.0 → 1.1"

    packages = {
        "kept",
        "gone",
        "grows",
        "rebuilt",
        "narrows",
        "fresh",
        "gains",
        "shrinks",
    }
    named = {name: packages & set(text.split()) for name, text in sections.items()}
    assert named == {
        "removed": {"gone", "grows", "narrows"},
        "added": {"fresh", "grows"},
        "upgraded": {"grows"},
        "grown": {"gains"},
        "shrunk": {"shrinks"},
        "rebuilt": {"rebuilt"},
    }
    assert "1 stack: ml" in sections["added"]
    assert "fresh new package (1)" in sections["added"]
    assert sections["grown"].endswith("1 1 0")
    assert sections["shrunk"].endswith("1 0 1")
    assert sections["rebuilt"].endswith("1 1 1")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "narrowing", ["", "?package=narrows", "?stack=e4s", "?host=zen4"]
)
async def test_page_command_and_python_say_the_same(
    served: Any, planted: Path, narrowing: str
) -> None:
    """JSON and CSV of the page are what the command prints and Python returns."""
    address = f"/diff/{OLD}...{NEW}"
    name, _, value = narrowing[1:].partition("=")
    options = [f"--{name}", value] if name else []
    named = {name: value} if name else {}
    expected = diff(planted, OLD, NEW, **named)
    found = json.loads((await get(served, f"{address}.json{narrowing}")).text)

    assert found == json.loads(json.dumps(expected.as_dict()))
    assert found == json.loads(
        run("diff", OLD, NEW, planted, *options, "--json").stdout
    )

    rows = (await get(served, f"{address}.csv{narrowing}")).text
    assert rows == run("diff", OLD, NEW, planted, *options, "--csv").stdout

    links = re.findall(
        r'href="(/diff/[^"]*\.(?:json|csv)[^"]*)"',
        (await get(served, address + narrowing)).text,
    )
    assert [unescape(link) for link in links] == [
        f"{address}.{form}{narrowing}" for form in ("json", "csv")
    ]


def test_what_is_too_much_for_a_page_has_pages_of_its_own(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many changes only counts are shown by package; the page of one package has its
    rows.
    """
    monkeypatch.setattr(change_parts, "MOST_ROWS", 1)
    with connected(planted) as conn:
        lookups = read_lookups(conn)
        sides = Sides(OLD, NEW)
        found = compare(lookups, OLD, NEW)
        whole = changes.load_changes(lookups, found, Excerpts(sides, ""))
        found = compare(lookups, OLD, NEW, package="rebuilt")
        narrowed = Sides(OLD, NEW, package="rebuilt")
        one = changes.load_changes(lookups, found, Excerpts(narrowed, ""))
    rebuilt = {part.change: part for part in whole.parts}["rebuilt"]

    assert [package.name for package in rebuilt.packages.shown] == ["rebuilt"]
    assert not any(part.has_rows for part in whole.parts)
    (part,) = one.parts
    assert [len(package.rows) for package in part.packages.shown] == [1]


def test_all_rows_of_a_part_are_one_link_away(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part shows its first rows and a link to the page with all of them, to which the
    number at the top leads, too. A static export has all rows.
    """
    monkeypatch.setattr(excerpts, "MOST_IN_PART", 0)
    found = open_site(planted)
    address = f"/diff/{OLD}...{NEW}?stack=e4s"
    first = bytes(asked_of(found, address).body).decode()
    link = f"{address}&all=rebuilt"
    whole = bytes(asked_of(found, link).body).decode()
    settings = StaticSettings(templates=found.settings.templates)
    static = Site(settings, found.conn)
    exported = bytes(asked_of(static, f"/diff/{OLD}...{NEW}").body).decode()

    summary = (
        "Rebuilt at the same version 1 configuration of 1 package with other hashes"
    )
    assert section(first, "rebuilt") == f"{summary} All 1 packages"
    assert unescape(first).count(f'<a href="{link}#rebuilt">') == 2
    assert "rebuilt 1.0" not in section(first, "rebuilt")
    assert section(whole, "rebuilt").startswith(f"{summary} rebuilt (1)")
    assert '<a href="#rebuilt">' in whole
    assert section(whole, "removed").endswith("All 2 packages")
    assert section(exported, "rebuilt").startswith(f"{summary} rebuilt (1)")
    assert "All " not in section(exported, "removed")


def test_comparisons_are_loaded_once(planted: Path) -> None:
    """The second visitor of a comparison gets the page of the first one."""
    found = open_site(planted)
    address = f"/diff/{OLD}...{NEW}"
    first = asked_of(found, address)
    statements: list[str] = []
    found.conn.set_trace_callback(statements.append)

    assert asked_of(found, address).body == first.body
    assert not [text for text in statements if "FROM listings" in text]
    assert asked_of(found, f"{address}?stack=hep").body != first.body
    assert [text for text in statements if "FROM listings" in text]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_is_too_much_for_data_is_told(
    planted: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Of too many changes no part is given, but how many there are; one package has its
    own.
    """
    monkeypatch.setattr(changes, "MOST_LISTED", 1)
    found = open_site(planted)
    whole, one = (
        asked_of(found, f"/diff/{OLD}...{NEW}.{form}{query}")
        for query in ("", "?package=rebuilt")
    )

    assert (whole.status, one.status) == (400, 200)
    assert b"8 configurations differ, but this site lists at most 1" in whole.body
    assert b"rebuilt" in one.body


@pytest.mark.asyncio
async def test_unknown_names_are_told(datasette: Any) -> None:
    """A release that does not exist is 404 with the form; data are an error in their
    own form.
    """
    page = await get(datasette, "/diff/develop...v9")
    assert page.status_code == 404
    assert "no release is called" in page.text and "<select" in page.text

    rows = await get(datasette, "/diff/develop...v9.json")
    assert rows.status_code == 400
    assert rows.json()["ok"] is False


@pytest.mark.asyncio
async def test_form_leads_to_the_comparison(datasette: Any) -> None:
    """Without two releases there is a form with the newest snapshots, which keeps the
    narrowing.
    """
    form = (await get(datasette, "/diff?stack=e4s")).text
    chosen = re.findall(r"<option selected>(.*?)<", form)
    answer = await get(datasette, "/diff?old=develop&new=v0.23.1&stack=e4s")
    assert chosen == [OLD, NEW, "e4s"]
    assert answer.headers["location"] == "/diff/develop...v0.23.1?stack=e4s"


@pytest.mark.asyncio
async def test_without_releases_the_newest_snapshots_are_compared(
    served: Any,
) -> None:
    """`/diff` says what the comparison of the two newest snapshots says."""
    newest = (await get(served, "/diff")).text
    named = (await get(served, f"/diff/{OLD}...{NEW}")).text
    start = "<main"
    assert newest[newest.index(start) :] == named[named.index(start) :]


@pytest.mark.parametrize(
    ("releases", "expected"),
    [
        # Snapshots of two branches are not compared with each other.
        (
            ["develop-2025-04-13", "develop-2025-04-20", "next-2025-04-27"],
            ("develop-2025-04-13", "develop-2025-04-20"),
        ),
        (["develop", "develop-2025-04-13"], ("develop-2025-04-13", "develop")),
        (["v1.0", "v1.1"], ("v1.0", "v1.1")),
        # No release follows another one.
        (["derecho", "perlmutter"], ("perlmutter", "derecho")),
        (["develop"], ("", "develop")),
    ],
)
def test_one_rule_chooses_the_newest_comparison(
    tmp_path: Path, releases: list[str], expected: tuple[str, str]
) -> None:
    """`/diff`, the links to changes and an export have the same one."""
    pages = {release: page("zlib", release, [spec()]) for release in releases}
    build([str(write(tmp_path / "pages", **pages))], tmp_path / "x.db")
    with connected(tmp_path / "x.db") as conn:
        lookups = read_lookups(conn)
        default = changes.with_defaults(lookups, Sides())
        latest = changes.latest_changes(lookups)
        files = files_of(lookups)

    assert (default.old, default.new) == expected
    if latest:
        assert default in latest
        assert files["/diff"] == files[f"/diff/{default.old}...{default.new}"]
    else:
        assert "/diff" not in files


@pytest.mark.asyncio
async def test_what_is_lost_comes_first(served: Any) -> None:
    """A package without a binary in the new release comes before all others, with its
    version, its processors and a release that still has it.
    """
    text = (await get(served, f"/diff/{OLD}...{NEW}")).text
    lost = section(text, "lost")

    assert lost.startswith("Lost 1 package")
    assert lost.endswith(f"gone 1.0 zen3 still in {OLD}")
    assert f"/package/gone?release={OLD}" in text

    ids = re.findall(r'<section aria-labelledby="(\w+)">', text)
    assert ids[:4] == ["lost", "upgraded", "new", "stacks"]


@pytest.mark.asyncio
async def test_numbers_count_packages(served: Any) -> None:
    """The numbers at the top are those of the parts below them."""
    text = (await get(served, f"/diff/{OLD}...{NEW}")).text
    found = re.search(r'<ul class="numbers".*?</ul>', text, re.DOTALL)

    assert found is not None

    words = " ".join(re.sub(r"<[^>]*>", " ", found[0]).split())
    assert words == (
        "1 package lost its last binary 1 package upgraded 1 package new: fresh"
        " 1 package rebuilt at the same version"
    )


def test_stacks_gain_and_lose(planted: Path) -> None:
    """Each stack has the binaries that it kept, got and lost."""
    with connected(planted) as conn:
        found = compare(read_lookups(conn), OLD, NEW).by_stack
    assert found == {"e4s": (2, 2, 3), "hep": (3, 1, 2), "ml": (0, 1, 0)}


@pytest.mark.parametrize(
    ("old", "new", "is_major", "is_older"),
    [
        ("1.9.1", "2.0", True, False),
        ("1.9.1", "1.10", False, False),
        ("2.0", "1.9", False, True),
    ],
)
def test_major_upgrades_are_marked(
    old: str, new: str, *, is_major: bool, is_older: bool
) -> None:
    """A major upgrade has a larger first number; an older version is none."""
    upgrade = Upgrade("hdf5", "/diff", old, new)
    assert (upgrade.is_major, upgrade.is_older) == (is_major, is_older)


@pytest.mark.asyncio
async def test_each_snapshot_leads_to_its_changes(served: Any) -> None:
    """The chart has a link for each snapshot after another; that of the page stands
    out.
    """
    text = (await get(served, f"/diff/{OLD}...{NEW}?stack=e4s")).text
    links = re.findall(r'href="([^"]*)" aria-label="([^"]*)"', text)

    assert links == [
        (f"/diff/{OLD}...{NEW}?stack=e4s", "20 Apr 2025: 4 new binaries, 5 gone")
    ]
    assert "data chosen" in text
