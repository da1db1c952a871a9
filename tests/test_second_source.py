"""A second kind of source goes all the way: what lies behind the columns knows no kind.

Files of a made-up kind hold several packages each, overlap, know of specs that no release lists,
and meet pages in one build. What the database then counts is held against plain Python.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build, check
from spack_cache_db.records import Configuration
from spack_cache_db.sources import readers, units
from spack_cache_db.sources.tarballs import tarball_suffix
from tests.madeup import MADE_UP, configuration_of, document, known, of_target
from tests.pagetexts import page, spec, spec_hash

RELEASES = ["develop", "v0.20", "develop-2025-01-01", "develop-2025-02-02"]
PACKAGES = ["zlib", "zstd"]
TARGETS = ["zen3", "x86_64_v3", "aarch64"]
NUMBERS = st.sets(st.integers(1, 8), max_size=5)


class Input(NamedTuple):
    """Specs by number: what a stack of a release lists and knows of, and what pages list."""

    documents: dict[tuple[str, str], tuple[set[int], set[int]]]
    pages: dict[tuple[str, str], set[int]]


INPUTS = st.builds(
    Input,
    st.dictionaries(
        st.tuples(st.sampled_from(RELEASES), st.sampled_from(["a", "b", "root"])),
        st.tuples(NUMBERS, NUMBERS),
        min_size=1,
        max_size=6,
    ),
    st.dictionaries(
        st.tuples(st.sampled_from(RELEASES), st.sampled_from(PACKAGES)), NUMBERS, max_size=3
    ),
)


@pytest.fixture(scope="module", autouse=True)
def second_kind() -> Iterator[None]:
    """Let builds of this module read files of the made-up kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "KINDS", (MADE_UP, *readers.KINDS))
        yield


def package_of(number: int) -> str:
    """Return the package of a spec."""
    return PACKAGES[number % 2]


def target_of(number: int) -> str:
    """Return the target of a spec: what tells the configurations of a package apart."""
    return TARGETS[number % 3]


def write(folder: Path, whole: Input) -> Path:
    """Write the files of an input."""
    folder.mkdir()
    for (release, stack), (listed, others) in whole.documents.items():
        specs = [
            of_target(number, package_of(number), target_of(number), listed=number in listed)
            for number in listed | others
        ]
        (folder / f"{release}-{stack}.txt").write_bytes(document(release, stack, specs))
    for (release, package), numbers in whole.pages.items():
        specs = [
            spec(number, target=target_of(number), stacks=["p"])
            for number in numbers
            if package_of(number) == package
        ]
        (folder / f"{release}-{package}.md").write_bytes(page(package, release, specs))
    return folder


def listings_of(whole: Input) -> dict[tuple[str, int], set[str]]:
    """Return the stacks of each (release, number)."""
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for (release, stack), (listed, _) in whole.documents.items():
        for number in listed:
            found[release, number].add(stack)
    for (release, package), numbers in whole.pages.items():
        for number in numbers:
            if package_of(number) == package:
                found[release, number].add("p")
    return found


def seen(releases: set[str]) -> tuple[int, str | None, str | None]:
    """Return how many releases there are, and the dates of the first and the last snapshot."""
    dates = sorted(each[8:] for each in releases if each.startswith("develop-"))
    return (len(releases), dates[0], dates[-1]) if dates else (len(releases), None, None)


def counted(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return what a database counts, by name."""

    def rows(sql: str) -> set[tuple[Any, ...]]:
        found = connection.execute(sql).fetchall()
        assert len(found) == len(set(found))
        return set(found)

    of_configurations = (
        "JOIN configurations ON configurations.id = {0} "
        "JOIN packages ON packages.id = configurations.package "
        "JOIN targets ON targets.id = configurations.target"
    )
    specs = of_configurations.format("specs.configuration")
    return {
        "releases": rows("SELECT name, package_count, spec_count FROM releases"),
        "packages": rows(
            "SELECT name, spec_count, configuration_count, newest_version, release_count, "
            "first_seen, last_seen FROM packages"
        ),
        "configurations": rows(
            "SELECT packages.name, targets.name, c.spec_count, c.release_count, c.first_seen, "
            "c.last_seen FROM configurations AS c JOIN packages ON packages.id = c.package "
            "JOIN targets ON targets.id = c.target"
        ),
        "specs": rows(
            "SELECT hash, packages.name, targets.name, stack_sets.stacks, specs.release_count, "
            "specs.first_seen, specs.last_seen FROM specs "
            f"JOIN stack_sets ON stack_sets.id = specs.stacks {specs}"
        ),
        "stacks": rows("SELECT name, release_count, spec_count FROM stacks"),
        "listings": rows("SELECT release, hash, package, target, stacks FROM build_listings"),
        "in releases": rows(
            "SELECT packages.name, targets.name, releases.name, counts.spec_count "
            "FROM configuration_releases AS counts "
            "JOIN releases ON releases.id = counts.release "
            f"{of_configurations.format('counts.configuration')}"
        ),
        "in stacks": rows(
            "SELECT packages.name, targets.name, stacks.name, counts.spec_count "
            "FROM configuration_stacks AS counts JOIN stacks ON stacks.id = counts.stack "
            f"{of_configurations.format('counts.configuration')}"
        ),
        "facets": rows(
            "SELECT releases.name, facet, value, facet_counts.spec_count, "
            "facet_counts.package_count FROM facet_counts "
            "LEFT JOIN releases ON releases.id = release"
        ),
        "pages": rows(
            "SELECT releases.name, packages.name, pages.spec_count FROM pages "
            "JOIN releases ON releases.id = release JOIN packages ON packages.id = package"
        ),
        "problems": rows("SELECT page, code, message FROM problems"),
    }


def expected(whole: Input) -> dict[str, Any]:
    """Return the same, counted by plain Python."""
    listings = listings_of(whole)
    numbers = {number for _, number in listings}
    every = numbers.union(*(others for _, others in whole.documents.values()))
    releases_of: dict[int, set[str]] = defaultdict(set)
    stacks_of: dict[int, set[str]] = defaultdict(set)
    for (release, number), stacks in listings.items():
        releases_of[number].add(release)
        stacks_of[number] |= stacks
    packages_of: dict[str, set[str]] = defaultdict(set)
    for release, number in listings:
        packages_of[release].add(package_of(number))
    for release, package in whole.pages:
        packages_of[release].add(package)
    keys = {(package_of(number), target_of(number)) for number in every}

    def having(*key: str) -> set[int]:
        return {n for n in numbers if (package_of(n), target_of(n))[: len(key)] == key}

    return {
        "releases": {
            (release, len(packages_of[release]), sum(each == release for each, _ in listings))
            for release in {release for release, _ in (*whole.documents, *whole.pages)}
        },
        "packages": {
            (
                package,
                len(having(package)),
                len({target_of(number) for number in having(package)}),
                "1.0" if having(package) else None,
                *seen({each for each in packages_of if package in packages_of[each]}),
            )
            for package in {package_of(n) for n in every} | {name for _, name in whole.pages}
        },
        "configurations": {
            (*key, len(having(*key)), *seen(set().union(*(releases_of[n] for n in having(*key)))))
            for key in keys
        },
        "specs": {
            (
                spec_hash(n),
                package_of(n),
                target_of(n),
                as_json(stacks_of[n]),
                *seen(releases_of[n]),
            )
            for n in every
        },
        "stacks": {
            (
                stack,
                len({release for (release, _), stacks in listings.items() if stack in stacks}),
                sum(stack in stacks_of[number] for number in numbers),
            )
            for stack in set().union(*listings.values())
        },
        "listings": {
            (release, spec_hash(n), package_of(n), target_of(n), as_json(stacks))
            for (release, n), stacks in listings.items()
        },
        "in releases": {
            (*key, release, count)
            for (key, release), count in Counter(
                ((package_of(n), target_of(n)), release) for release, n in listings
            ).items()
        },
        "in stacks": {
            (*key, stack, count)
            for (key, stack), count in Counter(
                ((package_of(n), target_of(n)), stack) for n in numbers for stack in stacks_of[n]
            ).items()
        },
        "facets": facets(listings, stacks_of),
        "pages": {
            (release, package, sum(package_of(number) == package for number in listed))
            for (release, package), listed in whole.pages.items()
        },
        "problems": set(),
    }


def facets(
    listings: dict[tuple[str, int], set[str]], stacks_of: dict[int, set[str]]
) -> set[tuple[str | None, str, str, int, int]]:
    """Return the rows of `facet_counts`."""
    found: dict[tuple[str | None, str, str], set[int]] = defaultdict(set)
    same = {
        "versions": "1.0",
        "compilers": "gcc@13.2.0",
        "oss": "ubuntu24.04",
        "platforms": "linux",
    }
    for (release, number), stacks in listings.items():
        for where, names in ((release, stacks), (None, stacks_of[number])):
            for facet, value in same.items():
                found[where, facet, value].add(number)
            found[where, "targets", target_of(number)].add(number)
            for stack in names:
                found[where, "stacks", stack].add(number)
    return {
        (*key, len(numbers), len({*map(package_of, numbers)})) for key, numbers in found.items()
    }


def as_json(stacks: set[str]) -> str:
    """Return stacks as the database prints them."""
    return json.dumps(sorted(stacks), separators=(",", ":"))


@settings(max_examples=60, deadline=None)
@given(whole=INPUTS)
def test_every_count_is_that_of_plain_python(
    whole: Input, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Listings that several documents share count once; specs that none lists count nowhere."""
    folder = tmp_path_factory.mktemp("second")
    build([str(write(folder / "in", whole))], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    found = counted(connection)
    connection.close()
    for name, rows in expected(whole).items():
        assert found[name] == rows, name


@settings(max_examples=20, deadline=None)
@given(whole=INPUTS)
def test_the_division_into_units_does_not_matter(
    whole: Input, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same bytes, and the same under other names of the folder."""
    folder = tmp_path_factory.mktemp("units")
    one, two = write(folder / "in", whole), write(folder / "other", whole)
    build([str(one)], folder / "x.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "ENTRIES_PER_UNIT", 1)
        build([str(two)], folder / "y.db")
    assert (folder / "x.db").read_bytes() == (folder / "y.db").read_bytes()


def connected(folder: Path, *files: bytes) -> sqlite3.Connection:
    """Build files, called 0, 1, …, and connect to the database."""
    (folder / "in").mkdir()
    for number, data in enumerate(files):
        (folder / "in" / str(number)).write_bytes(data)
    build([str(folder / "in")], folder / "x.db")
    return sqlite3.connect(folder / "x.db")


def test_a_spec_that_no_release_lists_is_known(tmp_path: Path) -> None:
    """It has a row in `specs`, with its configuration and an empty set of stacks."""
    connection = connected(tmp_path, document("develop", "a", [known(1, "gcc", listed=False)]))
    assert connection.execute(
        "SELECT hash, packages.name, stack_sets.stacks, specs.release_count, specs.first_seen "
        "FROM specs JOIN configurations ON configurations.id = specs.configuration "
        "JOIN packages ON packages.id = configurations.package "
        "JOIN stack_sets ON stack_sets.id = specs.stacks"
    ).fetchall() == [(spec_hash(1), "gcc", "[]", 0, None)]
    assert connection.execute("SELECT count(*) FROM listings").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM pages").fetchone() == (0,)
    connection.close()


def test_size_and_tarball_are_those_of_whoever_knows_them(tmp_path: Path) -> None:
    """The first document by its path of those that know."""
    zlib = configuration_of(known(1, "zlib"))
    connection = connected(
        tmp_path,
        document("develop", "a", [known(1, "zlib")]),
        document("develop", "b", [known(1, "zlib", tarball=("https://m", False))]),
        document("develop", "c", [known(1, "zlib", size="7 kB")]),
    )
    url = f"https://m{tarball_suffix(zlib)}{spec_hash(1)}.spack"
    assert connection.execute("SELECT stacks, size, tarball FROM build_listings").fetchall() == [
        ('["a","b","c"]', "7 kB", url)
    ]
    assert connection.execute("SELECT count(*) FROM problems").fetchone() == (0,)
    connection.close()


def as_values(configuration: Configuration) -> Any:
    """Return a configuration as JSON gives it back."""
    return json.loads(json.dumps(configuration._asdict()))


def test_what_contradicts_is_kept_as_a_problem(tmp_path: Path) -> None:
    """The first document is right; what the other says instead is in `declared`."""
    one = of_target(1, "zlib", "zen3", size="1 kB", tarball=("https://m", False))
    two = of_target(1, "zlib", "zen2", size="2 kB", tarball=("https://m", False))
    three = of_target(1, "zlib", "zen4", listed=False)
    connection = connected(
        tmp_path, *(document("develop", "a", [each]) for each in (one, two, three))
    )
    assert connection.execute("SELECT target, size FROM build_listings").fetchall() == [
        ("zen3", "1 kB")
    ]
    said = f"the spec {spec_hash(1)} has another"
    url = tarball_suffix(configuration_of(two))
    rows = connection.execute("SELECT page, code, message, declared FROM problems").fetchall()
    assert [(*row[:3], json.loads(row[3])) for row in rows] == [
        (None, "two_configurations",
         f"1: {said} configuration here than in 0: target zen2, not zen3",
         as_values(configuration_of(two))),
        (None, "two_sizes", f"1: {said} size here than in 0: 2 kB, not 1 kB", "2 kB"),
        (None, "two_tarballs",
         f"1: {said} tarball here than in 0: https://m{url}{spec_hash(1)}.spack, not "
         f"https://m{tarball_suffix(configuration_of(one))}{spec_hash(1)}.spack",
         f"https://m{url}{spec_hash(1)}.spack"),
        (None, "two_configurations",
         f"2: {said} configuration here than in 0: target zen4, not zen3",
         as_values(configuration_of(three))),
    ]  # fmt: skip
    connection.close()


def test_a_tarball_is_never_put_together_from_two_documents(tmp_path: Path) -> None:
    """Where they disagree about the configuration, its layout would make another URL of it."""
    connection = connected(
        tmp_path,
        document("develop", "a", [of_target(1, "zlib", "zen3")]),
        document("develop", "b", [of_target(1, "zlib", "zen2", tarball=("https://m", False))]),
    )
    assert connection.execute("SELECT tarball FROM build_listings").fetchall() == [(None,)]
    codes = {code for (code,) in connection.execute("SELECT code FROM problems")}
    assert codes == {"two_configurations", "two_tarballs"}
    connection.close()


def test_releases_that_disagree_are_told_without_a_page(tmp_path: Path) -> None:
    """As between pages, the foremost release is right, and the other keeps its word."""
    connection = connected(
        tmp_path,
        document("v0.20", "a", [of_target(1, "zlib", "zen2")]),
        document("develop", "a", [of_target(1, "zlib", "zen3")]),
    )
    assert connection.execute("SELECT target FROM builds").fetchall() == [("zen3",)]
    assert connection.execute(
        "SELECT release, target FROM build_listings ORDER BY release"
    ).fetchall() == [("develop", "zen3"), ("v0.20", "zen2")]
    said = f"0: the spec {spec_hash(1)} has another configuration here than in a foremost release"
    assert connection.execute("SELECT page, message FROM problems").fetchall() == [(None, said)]
    connection.close()


def test_what_a_page_says_comes_before_what_others_say(tmp_path: Path) -> None:
    """So that the page can be read back, and keeps its row; the other's word is a problem."""
    connection = connected(
        tmp_path,
        document("develop", "a", [of_target(1, "zlib", "zen3")]),
        page("zlib", "develop", [spec(1, target="zen2", stacks=["p"])]),
    )
    assert connection.execute("SELECT target, stacks FROM build_listings").fetchall() == [
        ("zen2", '["a","p"]')
    ]
    assert connection.execute("SELECT path, spec_count FROM pages").fetchall() == [("1", 1)]
    assert connection.execute("SELECT page, code FROM problems").fetchall() == [
        (None, "two_configurations")
    ]
    connection.close()


def test_check_names_the_file_of_a_problem(tmp_path: Path) -> None:
    """As the user would type it."""
    (tmp_path / "a").write_bytes(document("develop", "a", [of_target(1, "zlib", "zen3")]))
    (tmp_path / "b").write_bytes(document("v0.20", "a", [of_target(1, "zlib", "zen2")]))
    faults, problems = check([str(tmp_path)])
    assert faults == ()
    assert [each.path for each in problems] == [f"{tmp_path}/b"]


def test_a_file_that_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    """Its fault is told like that of a page."""
    (tmp_path / "a").write_bytes(b'{"made up"')
    (tmp_path / "b").write_bytes(document("develop", "a", [known(1, "zlib")]))
    faults, _ = check([str(tmp_path)])
    assert [str(each) for each in faults] == [f"{tmp_path}/a: is broken"]
