"""The page of a package: its commands, its rows, its filters with counts."""

import sqlite3
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
import yaml

from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.site.data_links import package_links
from spack_cache_db.site.filters import Filters, Narrowing
from spack_cache_db.site.pages.package import PackagePage, load_package
from spack_cache_db.site.pages.package_choice import Pick
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import SearchPage
from spack_cache_db.spack import targets
from tests import pagetexts
from tests.conftest import Build
from tests.pagetexts import spec


def hdf5(lookups: Lookups, filters: Filters) -> PackagePage:
    """The page of hdf5."""
    page = load_package(lookups, "hdf5", filters)
    assert page is not None
    return page


@pytest.mark.parametrize("host", [None, "zen3", "neoverse_v2"])
def test_the_commands_are_for_the_proposed_build(
    lookups: Lookups, host: str | None
) -> None:
    """The page opens with the commands for the proposed build, whatever rows it
    shows.
    """
    page = hdf5(lookups, Filters(host=host))
    assert page.install is not None and page.proposed is not None

    proposal = page.proposed.proposal
    assert page.install.commands[-1].endswith(f"hdf5/{proposal.hash[:7]}")
    assert proposal.host == host
    if host is not None:
        configuration = proposal.configuration
        build = targets.Build(configuration.platform, configuration.target)
        assert targets.build_runs_on(build, host)
    assert hdf5(lookups, Filters(host=host, page="2")).proposed == page.proposed
    nowhere = hdf5(lookups, Filters(host="power9le"))
    assert (nowhere.install, nowhere.proposed, nowhere.rows) == (None, None, ())


@pytest.mark.parametrize(
    ("filters", "unknown"),
    [
        (Filters(host="zenn"), "archspec knows no target 'zenn'"),
        (Filters(release="devlop"), "no release is called 'devlop'; close: develop"),
        (Filters(stack="e4"), "no stack is called 'e4'"),
        (Filters(host="power9le"), ""),
        (Filters(version="9"), ""),
    ],
)
def test_a_name_that_is_not_known_is_not_only_no_match(
    lookups: Lookups, filters: Filters, unknown: str
) -> None:
    """A misspelled machine, release or stack is told apart from one without a
    binary.
    """
    page = hdf5(lookups, filters)

    assert page.rows == ()
    assert page.unknown.startswith(unknown) and bool(page.unknown) == bool(unknown)


def test_a_branch_is_not_the_newest_version_of_an_export(
    real_index: sqlite3.Connection,
) -> None:
    """The script of an exported page marks the version that the site marks."""
    page = load_package(read_lookups(real_index), "hdf5", Filters(), is_whole=True)
    assert page is not None and page.builds is not None

    assert "develop-1.14" in [version[0] for version in page.builds.data["versions"]]
    assert page.builds.data["newest"] == "1.14.6"


def test_externals_are_no_configurations_of_a_package(
    real_index: sqlite3.Connection,
) -> None:
    """Rows, versions and filters of a package that also has an external have its
    binaries only.
    """
    lookups = read_lookups(real_index)
    page = load_package(lookups, "llvm", Filters.parse([]))

    assert page is not None
    assert page.spec_count == page.package.spec_count > 0
    assert "17.0.6" not in str((page.rows, page.versions, page.choices, page.chooser))


def test_an_opened_row_shows_every_hash(lookups: Lookups) -> None:
    """A row has its first hash, and once it is opened all of them; the others stay
    closed.
    """
    closed = hdf5(lookups, Filters(release="v0.23.1")).rows[0]
    opened = hdf5(lookups, Filters(release="v0.23.1", open=closed.hash)).rows[0]

    assert not closed.specs
    assert len(opened.specs) == opened.spec_count == closed.spec_count == 7
    assert opened.specs[0].spec.hash == opened.hash == closed.hash
    assert not any(row.specs for row in hdf5(lookups, Filters(open="zzz")).rows)


def choice(page: PackagePage, name: str) -> dict[str, int]:
    """The values of one filter with their counts."""
    return next((dict(each.values) for each in page.choices if each.name == name), {})


@pytest.mark.parametrize(
    "chosen",
    [
        Filters(),
        Filters(release="develop"),
        Filters(stack="e4s"),
        Filters(variant=("+mpi",)),
        Filters(host="zen3"),
        Filters(release="develop", host="icelake", version="1.14.5"),
        Filters(target="zen3", compiler="gcc@13.2.0"),
        Filters(variant=("+mpi", "~cxx"), stack="hep", release="v0.23.1"),
        Filters(os="rhel8", version="1.14.5"),
        Filters(os="rhel8", version="1.14.5", target="zen3"),
        Filters(release="no such release", host="zen3"),
    ],
)
def test_counts_say_what_a_choice_leads_to(lookups: Lookups, chosen: Filters) -> None:
    """The count beside each value is the number of rows behind it, in place of the one
    chosen.
    """
    page = hdf5(lookups, chosen)
    promised = {
        (each.name, each.chosen, value): count
        for each in page.choices
        for value, count in each.values
    }

    def kept(name: str, before: str | None, value: str) -> int:
        others = [pair for pair in chosen.pairs if pair != (name, before)]
        return hdf5(
            lookups, Filters.parse([*others, (name, value)])
        ).configuration_count

    assert promised == {each: kept(*each) for each in promised}


@pytest.mark.parametrize(
    "chosen",
    [
        Filters(),
        Filters(host="zen3"),
        Filters(version="1.9"),
        Filters(release="develop", host="icelake", version="1.14.5"),
        Filters(variant=("+mpi",), target="aarch64"),
        Filters(stack="hep"),
        Filters(os="rhel8", version="1.14.5"),
    ],
)
def test_every_link_of_the_chooser_leads_to_a_build(
    lookups: Lookups, chosen: Filters
) -> None:
    """A value without a link has a reason, and no binary together with the filters."""
    page = hdf5(lookups, chosen)
    paths = []

    for group in page.chooser.groups:
        for pick in group.picks:
            assert pick.path is not None or pick.note
            paths.append(pick.path)
        if group.label == "Version":
            for pick in group.picks:
                behind = hdf5(lookups, replace(chosen, version=pick.name))
                assert (pick.path is None) == (behind.configuration_count == 0)
    for switch in page.chooser.switches:
        assert (switch.path is None) == bool(switch.reason)
        paths.append(switch.path)
    assert any(paths)
    for path in paths:
        if path is not None:
            query = path.partition("?")[2].partition("#")[0]
            # Without a choice, the other filters may have no binary together.
            filters = Filters.parse(parse_qsl(query))
            added = set(filters.pairs) - set(chosen.pairs)
            assert not added or hdf5(lookups, filters).install is not None, path


def test_a_row_can_be_used(lookups: Lookups) -> None:
    """The commands are those of the hash in the address, if the filters leave it."""
    row = hdf5(lookups, Filters()).rows[-1]
    used = hdf5(lookups, Filters(use=row.hash))

    assert used.proposed is not None and used.install is not None
    assert used.proposed.proposal.hash == row.hash == used.table.used
    assert used.proposed.reason == "your choice"
    for filters in (Filters(use="nothing"), Filters(use=row.hash, version="1.14.10")):
        other = hdf5(lookups, filters)
        assert other.proposed is not None and not other.proposed.is_named


def test_commands_are_files_too(lookups: Lookups) -> None:
    """An environment with the build and its mirror, and a Dockerfile that runs all
    commands in an image of its system.
    """
    page = hdf5(lookups, Filters(version="1.14.5"))
    assert page.install is not None and page.proposed is not None
    shell, environment, dockerfile = page.tabs
    assert shell.lines == page.install.steps
    assert (*page.install.setup, *shell.lines) == page.install.commands

    written = yaml.safe_load(environment.text)["spack"]
    assert written["specs"] == [page.proposed.proposal.configuration.spec]
    url = "https://binaries.spack.io/develop"
    assert written["mirrors"] == {"develop": {"url": url}}
    assert dockerfile.lines[0] == "FROM spack/ubuntu-noble:latest"
    assert all(command in dockerfile.text for command in page.install.commands)


def test_choices_stay_where_nothing_is_left(lookups: Lookups) -> None:
    """With no result each filter still shows its value, and what it could be
    instead.
    """
    chosen = Filters(os="rhel8", version="1.14.5", variant=("+mpi",))
    page = hdf5(lookups, chosen)

    assert page.configuration_count == 0
    assert {each.name: each.chosen for each in page.choices if each.chosen} == {
        "os": "rhel8",
        "version": "1.14.5",
        "variant": "+mpi",
    }
    assert choice(page, "version") == {"1.14.5": 0, "1.9": 1}
    assert choice(page, "os") == {"rhel8": 0, "ubuntu24.04": 2}


def test_rows_that_differ_by_hash_alone_say_in_what(
    real_index: sqlite3.Connection,
) -> None:
    """Beside a row stands what its binaries differ in; an opened row says it of
    each.
    """
    lookups = read_lookups(real_index)
    closed = load_package(lookups, "openmpi", Filters())
    gmake = load_package(lookups, "gmake", Filters())
    assert closed is not None and gmake is not None
    row = next(each for each in gmake.rows if each.apart)
    opened = load_package(lookups, "gmake", Filters(open=row.hash))
    assert opened is not None
    (same,) = [each for each in opened.rows if each.specs]

    assert not any(each.apart for each in closed.rows if each.spec_count == 1)
    assert {text for each in same.specs for text in each.spec.differences} >= set(
        row.apart
    )
    assert len(same.specs) == same.spec_count


def test_the_machine_of_a_visitor_is_the_chosen_one(built: Build) -> None:
    """Also if a package has binaries for several platforms: only a machine that may be
    a Mac needs a platform to choose one of them.
    """
    platforms = {"linux": "gcc@13.2.0", "darwin": "apple-clang@16"}
    specs = [
        spec(number, platform=platform, compiler=compiler, target="aarch64")
        for number, (platform, compiler) in enumerate(platforms.items())
    ]
    conn = built(a=pagetexts.page("foo", "develop", specs))
    lookups = read_lookups(conn)

    def picks(**filters: str) -> dict[str, Pick]:
        page = load_package(lookups, "foo", Filters.parse(list(filters.items())))
        assert page is not None
        (group,) = [each for each in page.chooser.groups if each.label == "Machine"]
        return {pick.name: pick for pick in group.picks}

    of_all = picks()
    assert of_all["neoverse v2"].path == "?host=neoverse_v2#builds"
    assert of_all["aarch64"].path == "?host=aarch64&platform=linux#builds"
    assert of_all["macOS"].path == "?platform=darwin#builds"
    for fields, chosen in (
        ({"host": "neoverse_v2"}, "neoverse v2"),
        ({"host": "neoverse_v2", "platform": "linux"}, "neoverse v2"),
        ({"host": "aarch64"}, "aarch64"),
        ({"host": "m2"}, "m2"),
        ({"platform": "darwin"}, "macOS"),
    ):
        marked = [name for name, pick in picks(**fields).items() if pick.is_chosen]
        assert marked == [chosen], fields


@pytest.fixture
def machines(built: Build) -> sqlite3.Connection:
    """A package for several machines, in two releases."""
    mac = {
        "platform": "darwin",
        "os": "sequoia",
        "target": "m1",
        "compiler": "apple-clang@16",
    }
    specs = [
        spec(1, versions=["develop-1.14"], target="zen3"),
        spec(2, versions=["1.15.0"], **mac),
        spec(3, versions=["1.14.6"], target="aarch64"),
        spec(4, versions=["1.14.6"], target="x86_64"),
        spec(5, versions=["1.14.6"], target="zen2"),
        spec(6, versions=["1.14.6"], target="haswell"),
        spec(7, versions=["1.14.6"], target="zen3"),
        spec(9, versions=["1.9"], target="zen4"),
    ]
    old = [spec(10, versions=["1.14.7"], target="x86_64")]
    return built(
        a=pagetexts.page("foo", "develop", specs), b=pagetexts.page("foo", "v1.0", old)
    )


ORDER: dict[str | None, list[str]] = {
    None: [
        "1.14.7 x86_64",
        "1.14.6 haswell",
        "1.14.6 x86_64",
        "1.14.6 zen2",
        "1.14.6 zen3",
        "1.9 zen4",
        "develop-1.14 zen3",
        "1.14.6 aarch64",
        "1.15.0 m1",
    ],
    "zen4": [
        "1.14.7 x86_64",
        "1.14.6 zen3",
        "1.14.6 zen2",
        "1.14.6 x86_64",
        "1.9 zen4",
        "develop-1.14 zen3",
    ],
    "zen2": ["1.14.7 x86_64", "1.14.6 zen2", "1.14.6 x86_64"],
    "neoverse_v2": ["1.14.6 aarch64"],
    "m2": ["1.15.0 m1"],
}
"""The versions and targets of these binaries in the order of an answer, by machine."""


@pytest.mark.parametrize("host", ORDER)
def test_one_order_holds_for_every_answer(
    machines: sqlite3.Connection, host: str | None
) -> None:
    """By machine, version and nearest target, on both pages, in `find` and for
    `cover`.
    """
    lookups = read_lookups(machines)
    package = load_package(lookups, "foo", Filters(host=host))
    pages = [Search(lookups, Narrowing(host=host)).result("foo@0:")]
    pages += [Search(lookups).result(f"foo@0: target=:{host}")] if host else []
    answers = [page.answer for page in pages if isinstance(page, SearchPage)]
    assert package is not None
    rows = [each.configuration for each in package.rows]
    covered = [
        *cover(machines, ["foo"], host=host).specs,
        *cover(machines, [f"foo target=:{host}" if host else "foo"]).specs,
    ]

    for answer in answers:
        assert answer is not None
        found = [each.configuration for each in answer.rows]
        assert found[: len(rows)] == rows
        # `target=:m2` is about the target alone: binaries of Linux come last.
        others = {each.platform for each in found[len(rows) :]}
        assert others <= ({"linux"} if host == "m2" else set())
    assert [each.configuration for each in find(machines, "foo", host=host)] == rows
    assert {each.configuration for each in covered} == {rows[0]}
    assert [f"{row.version} {row.target}" for row in rows] == ORDER[host]


@pytest.mark.parametrize(
    ("filters", "address"),
    [
        (
            Filters(release="develop", target="zen3"),
            "/build_listings?package=hdf5&release=develop&target=zen3",
        ),
        (Filters(host="zen"), "/host_builds?package=hdf5&host=zen"),
        (
            Filters(host="power9le", release="develop"),
            "/build_listings?package=hdf5&release=develop"
            "&target__in=power8le%2Cpower9le%2Cppc64le&platform__not=darwin",
        ),
        (
            Filters(host="x86_64", release="develop"),
            "/build_listings?package=hdf5&release=develop&target__in=x86_64",
        ),
        (Filters(stable="1"), "/builds?package=hdf5&version__in=1.10%2C1.9"),
    ],
)
def test_data_links_carry_the_filters(filters: Filters, address: str) -> None:
    """The data of a filtered page has the same conditions, the machine included."""
    versions = ("1.9", "develop", "1.10", "git.main=2.0")
    links = package_links("spack-cache", "hdf5", filters, versions)
    assert links.browse == f"/spack-cache{address}"
