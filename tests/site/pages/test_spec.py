"""The page of one spec, and the others of its configuration."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.query.stored.binary import configurations_beginning
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.spec import load_spec
from spack_cache_db.spack.parser import parse_query
from tests import pagetexts
from tests.conftest import Build
from tests.graphs import installs
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, write
from tests.site.addresses import get
from tests.site.cache import HOSTILE, MPI, spec_hash
from tests.site.conftest import site


def test_a_spec_knows_its_listings_and_what_shares_its_configuration(
    lookups: Lookups,
) -> None:
    """A spec's page has every release that lists it and every other hash of its
    configuration.
    """
    page = load_spec(lookups, spec_hash(MPI))

    assert page is not None
    assert [listing.release for listing in page.listings] == [
        "develop",
        "v0.23.1",
        "develop-2025-04-20",
        "develop-2025-04-13",
    ]
    assert (page.other_count, len(page.others)) == (6, 6)
    assert page.spec.stacks == ("e4s", "hep")
    assert page.install is not None
    assert (
        page.install.commands[0]
        == "spack mirror add develop https://binaries.spack.io/develop"
    )


def test_command_hash_is_unambiguous(lookups: Lookups) -> None:
    """Where two hashes share 7 characters the install command uses 8."""
    page = load_spec(lookups, "aaaaaaa" + "b" * 25)

    assert page is not None and page.install is not None
    assert page.install.commands[-1] == "spack install --cache-only zlib/aaaaaaab"


def test_candidates_are_all_that_a_hash_may_mean(
    real_index: sqlite3.Connection,
) -> None:
    """A short hash may also mean an external, which is no row of the view of
    binaries.
    """
    found = configurations_beginning(read_lookups(real_index), "", 51)

    assert [dag_hash for dag_hash, _ in found] == sorted(installs())[:51]
    for dag_hash, configuration in found:
        assert configuration.package == installs()[dag_hash]["spec"]["name"]
    assert not all(installs()[dag_hash]["in_buildcache"] for dag_hash in installs())


def test_the_release_of_the_reader_is_kept(lookups: Lookups) -> None:
    """It is installed from the mirror of the release that was chosen, if that lists
    it.
    """
    for wanted, chosen, mirror in (
        ("v0.23.1", "v0.23.1", "v0.23.1"),
        ("v99", None, "develop"),
    ):
        page = load_spec(lookups, spec_hash(MPI), release=wanted)
        assert page is not None and page.install is not None
        assert (page.release, page.install.release) == (chosen, mirror)
        added = f"spack mirror add {mirror} https://binaries.spack.io/{mirror}"
        assert page.install.commands[0] == added


def test_one_page_of_them_the_current_first(built: Build) -> None:
    """Not the spec itself; what a branch lists comes before what only a snapshot
    lists.
    """
    conn = built(
        a=page("foo", "develop", [spec(1), spec(9)]),
        b=page("foo", "develop-2025-01-05", [spec(2), spec(1)]),
    )

    found = load_spec(read_lookups(conn), pagetexts.spec_hash(1))

    assert found is not None
    assert [
        (compared_spec.spec.hash, compared_spec.spec.last_seen)
        for compared_spec in found.others
    ] == [
        (pagetexts.spec_hash(9), None),
        (pagetexts.spec_hash(2), "2025-01-05"),
    ]


def test_what_pages_tell_of_look_alikes_tells_them_apart(built: Build) -> None:
    """Releases, stacks, days and sizes stand beside each hash, as far as they
    differ.
    """
    current = [spec(1), spec(9, size="2 MB")]
    earlier = [spec(2, stacks=["ml"]), spec(1)]
    conn = built(
        a=page("foo", "develop", current),
        b=page("foo", "develop-2025-01-05", earlier),
        c=page("foo", "develop-2025-01-12", earlier),
    )
    lookups = read_lookups(conn)
    page_of = load_spec(lookups, pagetexts.spec_hash(1))
    assert page_of is not None
    opened = load_package(lookups, "foo", Filters(open=pagetexts.spec_hash(1)))
    assert opened is not None

    places = {
        compared_spec.spec.hash: compared_spec.places
        for compared_spec in opened.rows[0].specs
    }
    assert places == {
        pagetexts.spec_hash(1): (
            "develop and 2 other releases",
            "e4s",
            "2025-01-05 to 2025-01-12",
        ),
        pagetexts.spec_hash(9): ("develop", "e4s", "2 MB"),
        pagetexts.spec_hash(2): (
            "develop-2025-01-12 and 1 other release",
            "ml",
            "2025-01-05 to 2025-01-12",
        ),
    }
    assert {each.spec.hash for each in page_of.others} < places.keys()


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A file with three look-alikes: two of an index, one of a page."""
    like = node("foo", edge("lib", "link"))
    records = (
        record(like),
        record({**node("foo"), "hash": hash_of("second")}),
        record(node("lib")),
    )
    shown = spec(1, compiler="none", os="debian12", variants=["build_system=generic"])
    write(tmp_path / "input", page=page("foo", specs=[shown]))
    (tmp_path / "input" / "index.json").write_bytes(index(*records))
    build(tmp_path / "input", tmp_path / "spack-cache.db")
    return tmp_path / "spack-cache.db"


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_page_says_what_is_not_compared(mixed: Path) -> None:
    """It tells in what the one differs, and why the other is not compared."""
    text = (await get(site(mixed), f"/spec/{hash_of('foo')}")).text

    assert '<span class="differs">lib 1.0 only here</span>' in text
    assert '<span class="differs">not compared</span>' in text
    assert "Binaries without dependency data are not compared" in text
    alone = (await get(site(mixed), f"/spec/{pagetexts.spec_hash(1)}")).text
    assert "in their dependencies, which this database does not record" in alone
    assert 'class="differs"' not in alone


def test_a_spec_as_one_line_finds_its_configuration(
    real_index: sqlite3.Connection, conn: sqlite3.Connection
) -> None:
    """What can be copied as a spec satisfies itself, in files of an index and of
    pages.
    """
    for file in (real_index, conn):
        lookups = read_lookups(file)
        # Pages may print a variant that is no spec.
        found = [each for each in find(file, "*") if each.package != "hostile"]
        assert len(found) > 8
        for answer in found[::5]:
            query = parse_query(answer.configuration.spec)
            question = Question(lookups, query)
            same = [row.configuration for row in question.configurations()]
            assert answer.configuration in same, query.text


def test_what_needs_a_spec_is_named(real_index: sqlite3.Connection) -> None:
    """The specs that have an edge to it, each once; of a package, the packages of
    these.
    """
    lookups = read_lookups(real_index)
    ((dag_hash, package, count),) = real_index.execute(
        """SELECT dependency_hash, dependency_package, count(DISTINCT hash) FROM dependency_edges
        GROUP BY 1 HAVING count(DISTINCT hash) BETWEEN 5 AND 50 ORDER BY 3 DESC, 1 LIMIT 1"""
    ).fetchall()
    expected = real_index.execute(
        "SELECT DISTINCT hash FROM dependency_edges WHERE dependency_hash = ?",
        [dag_hash],
    ).fetchall()
    page_of = load_spec(lookups, dag_hash)
    package_page = load_package(lookups, package, Filters())

    assert page_of is not None and package_page is not None
    assert sorted(each.hash for each in page_of.needed_by) == sorted(
        row[0] for row in expected
    )
    assert len(page_of.needed_by) == count
    assert list(package_page.needed_by) == [
        row[0]
        for row in real_index.execute(
            """SELECT DISTINCT package FROM dependency_edges
            WHERE dependency_package = ? AND package != dependency_package ORDER BY 1""",
            [package],
        )
    ]


@pytest.mark.asyncio
async def test_a_package_without_a_binary_leads_on(index_site: Any) -> None:
    """What is known of it and what needs it are links, and nothing is called a
    binary.
    """
    text = (await get(index_site, "/package/glibc")).text

    assert "External, no binary of it is in this database." in text
    assert re.search(r'<a href="/spec/\w{32}">glibc@', text)
    assert 'id="needed-by"' in text


@pytest.mark.asyncio
async def test_words_are_text(tmp_path: Path) -> None:
    """A version, a type or a virtual package that is a script is shown, not run."""
    use = edge("lib", "link", HOSTILE, virtuals=(HOSTILE,))
    needed = node("lib", edge("leaf", "link"), version=HOSTILE)
    records = (record(node("foo", use)), record(needed), record(node("leaf")))
    write(tmp_path / "input")
    (tmp_path / "input" / "index.json").write_bytes(index(*records))
    build(tmp_path / "input", tmp_path / "spack-cache.db")
    text = (
        await get(site(tmp_path / "spack-cache.db"), f"/spec/{hash_of('foo')}")
    ).text

    (dependencies,) = re.findall(
        '<ul class="tree" aria-label="To run">.*', text, re.DOTALL
    )
    assert "<script" not in dependencies
    assert dependencies.count("&lt;script&gt;") == 3
