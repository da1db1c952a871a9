"""One package: its record, what Spack has of it beside binaries, and where its recipe
is.
"""

import gzip
import json
import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import spack_cache_db
from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.answers.behind import behind
from spack_cache_db.query.answers.why_not import why_not
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.package_data import recipe_links, summary_of
from spack_cache_db.query.stored.recipe_notes import recipe_notes
from spack_cache_db.query.words.described import described_packages
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.versions import equality_key, preference_key
from tests.indexes import index, node, record
from tests.package_data import (
    REAL,
    described,
    listed,
    preferred,
    published,
    write_packages,
)
from tests.pagetexts import SAMPLES, page, spec, write
from tests.paths import DATA


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the sample pages and real package data."""
    output = tmp_path_factory.mktemp("data") / "x.db"
    build([SAMPLES, REAL], output)
    return output


def test_a_package_is_a_record(file: Path) -> None:
    """With or without a binary, from a path or an open file; what nothing is known of
    is None.
    """
    with spack_cache_db.Cache(file) as cache:
        found = cache.package_data("fftw")
        assert found == spack_cache_db.package_data(str(file), "fftw")
        assert {package.name for package in cache.behind()} == {"py-mpi4py"}
    assert found is not None
    assert found.status.spec_count == 0
    assert found.versions[0].version == found.status.latest_version
    told = {meaning.name: meaning.default_text for meaning in found.variants}
    assert told["openmp"] == "~openmp"

    built = spack_cache_db.package_data(file, "py-mpi4py")
    assert built is not None
    assert (built.status.newest_version, built.status.versions_behind) == ("4.0.1", 4)
    assert spack_cache_db.package_data(file, "nothing") is None


def test_a_package_needs_no_package_data(samples_file: Path) -> None:
    """A package with a binary is a record in a database without package data as
    well.
    """
    found = spack_cache_db.package_data(samples_file, "py-mpi4py")
    assert found is not None
    assert (found.status.spec_count, found.status.newest_version) == (91, "4.0.1")
    assert (found.dependent_count, found.versions) == (None, ())
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict() | {"versions": []}


def test_no_address_of_a_recipe_is_a_dead_one(tmp_path: Path) -> None:
    """Spack prints a folder that it no longer has, of packages of other people too."""
    old = "https://github.com/spack/spack/blob/develop/var/spack/spack_repo/{}/packages/a/package.py"
    site = "https://packages.spack.io/package.html?name="
    recipes = {
        "of-spack": (old.format("builtin"), f"{site}of-spack"),
        "of-others": (old.format("ours"), None),
        "elsewhere": (
            "https://git.example.org/a/package.py",
            "https://git.example.org/a/package.py",
        ),
        "script": ("javascript:alert(1)", None),
    }
    some = [listed(name, "1", file=address) for name, (address, _) in recipes.items()]
    build(
        write_packages(tmp_path / "in", published("site", "1"), list=some),
        tmp_path / "x.db",
    )
    expected = {name: url for name, (_, url) in recipes.items()} | {
        "site": f"{site}site"
    }

    for name, url in expected.items():
        found = spack_cache_db.package_data(tmp_path / "x.db", name)
        assert found is not None
        assert found.recipe_url == url, name


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of one binary, and of what Spack has beside it."""
    folder = tmp_path_factory.mktemp("notes")
    variants = [
        {"name": name, "default": False, "description": ""}
        for name in ("mpi", "shared", "cuda")
    ]
    virtual = [{"name": "blas", "description": "The package b."}]
    a = published(
        "a", "3.0", "2.1", "1.0", "main", variants=variants, dependencies=virtual
    )
    data = write_packages(folder / "data", a, published("b", "1.0"), published("bare"))
    one = spec(1, versions=["1.0"], variants=["~mpi", "+shared"])
    build(
        [write(folder / "pages", a=page("a", "develop", [one])), data], folder / "x.db"
    )
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a@5.0", ["Spack has no version 5.0 of a, its newest is 3.0"]),
        ("a@2:3", ["Spack has version 3.0 of a, no binary has it"]),
        ("a@1.0 +mpi", []),
        ("a+mpl", ["Spack has no variant 'mpl' of a (near: mpi)"]),
        ("a+cuda", ["Spack has the variant 'cuda' of a, no binary has it"]),
        ("a patches=0123", []),
        ("b", []),
        ("b@2", ["Spack has no version 2 of b, its newest is 1.0"]),
        ("bare@2 +x", []),
        ("blas", []),
        ("unknown", []),
        ("+mpi", []),
    ],
)
def test_what_spack_lacks_is_told(
    text: str, expected: list[str], conn: sqlite3.Connection
) -> None:
    """Nothing is said of what the data does not tell."""
    assert list(recipe_notes(read_lookups(conn), parse_query(text))) == expected


def test_the_reasons_of_an_empty_answer_have_it(conn: sqlite3.Connection) -> None:
    """Behind what the binaries tell."""
    lookups = read_lookups(conn)
    for text in ("a@5.0", "b@2"):
        query = parse_query(text)
        why = why_not(Question(lookups, query))
        assert why.sentences()[-1] == recipe_notes(lookups, query)[-1]


PUBLIC = "https://packages.spack.io/package.html?name="


@pytest.mark.parametrize(
    ("recipes", "links"),
    [
        ({}, [{"builtin": f"{PUBLIC}a"}, {}, {"builtin": f"{PUBLIC}both"}]),
        (
            {"ours": "https://x.org/{package}/package.py"},
            [
                {"builtin": f"{PUBLIC}a"},
                {"ours": "https://x.org/own/package.py"},
                {"builtin": f"{PUBLIC}both", "ours": "https://x.org/both/package.py"},
            ],
        ),
        (
            {"builtin": "https://mine.org/"},
            [{"builtin": "https://mine.org/"}, {}, {"builtin": "https://mine.org/"}],
        ),
    ],
)
def test_a_recipe_is_of_the_packages_own_namespace(
    tmp_path: Path, recipes: dict[str, str], links: list[dict[str, str]]
) -> None:
    """None for a namespace that nothing is known of; the address that was given, or
    Spack's own.
    """
    specs = [node("a"), node("own", namespace="ours"), node("both")]
    specs.append(node("both", namespace="ours", version="2.0", hash="2" * 32))
    (tmp_path / "index.json").write_bytes(index(*map(record, specs)))
    build(tmp_path / "index.json", tmp_path / "x.db", recipes=recipes)

    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        assert [recipe_links(conn, each) for each in ("a", "own", "both")] == links


def test_what_only_pages_know_is_of_spacks_own_recipes(
    samples: sqlite3.Connection,
) -> None:
    """Pages say no namespace: they are those of Spack's public cache."""
    assert recipe_links(samples, "py-torch") == {"builtin": f"{PUBLIC}py-torch"}


VERSIONS = ("1.0", "1.9", "1.10", "2.0-rc1", "2.0", "3.1", "main", "develop")
STACKS = ("e4s", "ml")

Binary = tuple[str, str, str, str]
"""Release, stack, package, version."""


def written(
    folder: Path, binaries: Iterable[Binary], packages: list[dict[str, Any]]
) -> Path:
    """Build a database of binaries and package data."""
    pages: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, (release, stack, package, version) in enumerate(binaries):
        one = spec(number, versions=[version], stacks=[stack])
        pages.setdefault((package, release), []).append(one)
    files = {
        f"{at}": page(*key, specs) for at, (key, specs) in enumerate(pages.items())
    }
    build([write(folder / "pages", **files), write_packages(folder / "data", *packages)],
          folder / "x.db")  # fmt: skip
    return folder / "x.db"


@pytest.mark.parametrize("seed", range(3))
def test_what_is_behind_is_that_of_a_brute_force(seed: int, tmp_path: Path) -> None:
    """For each release, each stack and both: the newest binary there, and what Spack
    has since.
    """
    rng = random.Random(seed)
    names = [f"p{at}" for at in range(12)]
    packages = []
    for name in names[:10]:
        known = rng.sample(VERSIONS, rng.randint(0, 6))
        old = [{"name": each} for each in VERSIONS if each not in known][:2]
        packages.append(published(name, *known, versions_deprecated=old))
    # Two packages have no binary, and two no package data.
    binaries = set()
    for name in names[2:]:
        for _ in range(5):
            release = rng.choice(("develop", "v0.23"))
            stack = rng.choice(STACKS)
            binaries.add((release, stack, name, rng.choice(VERSIONS)))
    file = written(tmp_path, sorted(binaries), packages)

    for asked_release in (None, "develop", "v0.23"):
        for asked_stack in (None, *STACKS):
            versions_of: dict[str, list[str]] = {}
            for release, stack, name, version in binaries:
                if asked_release in (None, release) and asked_stack in (None, stack):
                    versions_of.setdefault(name, []).append(version)
            expected = {}
            for package in packages:
                name = package["name"]
                versions = versions_of.get(name, [])
                newer_count = count_newer(package, versions)
                if newer_count:
                    newest = preferred(versions)
                    expected[name] = (newest, newer_count, len(versions))

            found = behind(file, release=asked_release, stack=asked_stack)

            answer = {}
            for status in found:
                counts = (status.versions_behind, status.spec_count)
                answer[status.name] = (status.newest_version, *counts)
            assert answer == expected, (asked_release, asked_stack)
            assert list(answer) == sorted(expected)


def count_newer(package: dict[str, Any], versions: list[str]) -> int:
    """Return how many of Spack's versions are newer than the preferred one of some."""
    if not versions:
        return 0
    newest = equality_key(preferred(versions))
    count = 0
    for known in package["versions"]:
        version = known["name"]
        # Branches do not count.
        if not preference_key(version)[0] and equality_key(version) > newest:
            count += 1
    return count


def test_without_package_data_nothing_can_be_said(
    samples_file: Path, tmp_path: Path
) -> None:
    """The error says what to build with; an unknown stack is named."""
    with pytest.raises(
        DatabaseError, match="no package data; build it with the output of spack"
    ):
        behind(samples_file)

    file = written(tmp_path, [("develop", "e4s", "a", "1.0")], [published("a", "1.0")])
    with pytest.raises(UnknownNameError):
        behind(file, stack="nothing")
    assert behind(file) == []


SEARCHES = {
    "fast fourier transform": "fftw",
    "python bindings for MPI": "py-mpi4py",
    "json library": "json-c",
    "xml parser": "expat",
    "message passing interface": "mpich",
    "sparse solvers on gpus": "ghost",
    "compile flags config": "pkgconfig",
    "secure sockets tls": "openssl",
    "geospatial raster": "gdal",
    "lossless compression": "zstd",
    "density functional theory": "octopus",
    "finite elements": "mfem",
}


@pytest.fixture(scope="module")
def descriptions(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[sqlite3.Connection]:
    """A database of the descriptions of 1,170 of Spack's packages, and of their
    dependents.
    """
    folder = tmp_path_factory.mktemp("texts")
    texts = json.loads(gzip.decompress((DATA / "descriptions.json.gz").read_bytes()))
    packages = []
    for name, (text, user_count) in texts.items():
        users = described(*(f"u{number}" for number in range(user_count)))
        packages.append(published(name, description=text, dependent_to=users))
    build(write_packages(folder / "in", *packages), folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("text", SEARCHES)
def test_a_search_has_what_people_expect_among_the_first_three(
    text: str, descriptions: sqlite3.Connection
) -> None:
    """Words in any form and order, as people type them."""
    found = described_packages(descriptions, text, 3)
    assert SEARCHES[text] in found


def test_a_name_comes_before_a_description(descriptions: sqlite3.Connection) -> None:
    """And nothing is found by no word, or by one that nobody uses."""
    assert described_packages(descriptions, "hdf5", 3)[0] == "hdf5"
    for nothing in ("", "zzzz", '"', "* ( ^", "of the"):
        assert described_packages(descriptions, nothing, 3) == []


def test_a_summary_is_one_printable_line() -> None:
    """The first sentence, or the beginning of a long one."""
    assert summary_of("FFTW is a library\nfor 3.14 things. It is fast.\n") == (
        "FFTW is a library for 3.14 things."
    )
    assert summary_of("a\x1b[31m\u202e") == "a\\x1b[31m\\u202e"
    assert len(summary_of("word " * 100)) <= 160
