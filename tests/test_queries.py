"""metadata.yml's queries: right rows, all of them, and a word where a parameter is wrong."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from spack_cache_db.build.steps import build
from spack_cache_db.site import spec_functions
from tests.conftest import Build
from tests.indexes import edge, hash_of, index, node, real, record
from tests.many import EVERY_ANSWER, MANY, build_many
from tests.pagetexts import page, spec, spec_hash
from tests.paths import ROOT
from tests.test_metadata import DATABASE, METADATA, sample_specs

EVERY_QUERY = DATABASE["queries"]
# They need an index: tests/test_dependency_queries.py.
DEPENDENCY_QUERIES = (
    "dependencies_of_hash",
    "dependencies_without_binary",
    "dependents_of_hash",
    "differences_of_look_alikes",
)
QUERIES = {name: each for name, each in EVERY_QUERY.items() if name not in DEPENDENCY_QUERIES}


@pytest.fixture(scope="module")
def samples(samples_file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database of the five sample pages, as the site has it."""
    yield from connected(samples_file)


@pytest.fixture(scope="module")
def real_index(real_index_file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database of a real index, as the site has it."""
    yield from connected(real_index_file)


def connected(file: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection with the functions that find_spec needs."""
    connection = sqlite3.connect(file)
    spec_functions.register(connection)
    yield connection
    connection.close()


def run(connection: sqlite3.Connection, query: str, **params: str) -> list[dict[str, Any]]:
    """Run a canned query; parameters that are not given are empty, as in its form."""
    declared = dict.fromkeys(EVERY_QUERY[query]["params"], "")
    return rows_of(connection.execute(EVERY_QUERY[query]["sql"], declared | params))


def rows_of(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    """Return rows by the names of their columns."""
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def rows(connection: sqlite3.Connection, query: str, **params: str) -> list[dict[str, Any]]:
    """Return what a query answers, without the column that says that nothing is wrong."""
    found = run(connection, query, **params)
    assert [row["error"] for row in found] == [None] * len(found)
    return [{name: row[name] for name in row if name != "error"} for row in found]


@pytest.mark.parametrize("query", sorted(QUERIES))
def test_empty_parameters_ask_for_something(samples: sqlite3.Connection, query: str) -> None:
    """Each query answers with nothing filled in, and its last column is for what is wrong."""
    cursor = samples.execute(QUERIES[query]["sql"], dict.fromkeys(QUERIES[query]["params"], ""))
    assert [column[0] for column in cursor.description][-1] == "error"
    assert rows(samples, query) or query in ("missing_for_family", "problems_of_pages")
    assert QUERIES[query]["title"]
    assert "column error is empty" in QUERIES[query]["description"].replace("\n", " ")


WRONG = [
    ("find_spec", "spec", "py-mpi", "nothing here satisfies 'py-mpi'; /find says what comes near"),
    ("find_spec", "spec", "py-mpi4py@9:", "nothing here satisfies 'py-mpi4py@9:'; /find says"),
    ("find_spec", "spec", "py-mpi4py@@", "cannot read this spec at column 10"),
    ("find_spec", "spec", "py-mpi4py ^mpi", "no dependencies are known here"),
    ("find_spec", "page", "2", "no page '2'; pages: 1 to 1"),
    ("find_spec", "page", "0", "no page '0'; the first is 1"),
    ("find_spec", "page", "9" * 30, f"no page '{'9' * 30}'; pages: 1 to 1"),
    ("specs_of_package", "package", "py-mpi", "no release has a package 'py-mpi'; near it: py-m"),
    ("specs_of_package", "host", "zen33", "nothing here runs on a host 'zen33'; hosts: "),
    (
        "specs_of_package",
        "host",
        "power9le",
        "nothing here runs on a host 'power9le'; hosts: ",
    ),
    ("specs_of_package", "page", "2", "no page '2'; pages: 1 to 1"),
    ("targets_of_package", "package", "x", "no release has a package 'x'; near it: py-ml-dtypes"),
    (
        "targets_of_package",
        "release",
        "devel",
        "no release 'devel' has py-ml-dtypes; releases that have it: develop, develop-2025-04-20",
    ),
    ("targets_of_package", "release", "Develop", "no release 'Develop' has py-ml-dtypes; releases"),
    ("targets_of_package", "page", "2", "no page '2'; pages: 1 to 1"),
    (
        "releases_of_version",
        "package",
        "mpi4py",
        "no release has a package 'mpi4py'; near it: py-mpi4py",
    ),
    ("releases_of_version", "page", "1.0", "no page '1.0'; pages: 1 to 1"),
    (
        "releases_of_version",
        "version",
        "0.4",
        "py-ml-dtypes has no version '0.4'; versions: 0.4.0, 0.3.1",
    ),
    ("releases_of_hash", "hash", "aqp7di", "too short: 'aqp7di'; a hash has 32 characters, 7 of"),
    ("releases_of_hash", "hash", "a'aaa;-- ", "no hash begins with 'a'aaa;--'; all hashes"),
    ("releases_of_hash", "page", "+1", "no page '+1'; pages: 1 to 1"),
    ("most_hashes", "page", "2x", "no page '2x'; pages: 1 to 1"),
    ("most_hashes", "package", "py-", "no release has a package 'py-'; near it: py-ml-dtypes, py"),
    ("packages_of_stack", "stack", "e4", "no stack is called 'e4'; stacks: "),
    ("packages_of_stack", "stack", "E4S", "no stack is called 'E4S'; stacks: "),
    ("packages_of_stack", "stack", "root", "no stack is called 'root'; stacks: "),
    ("packages_of_stack", "page", "-1", "no page '-1'; pages: 1 to 1"),
    ("newest_versions", "package", "mpi5", "no package has 'mpi5' in its name; near it: py-m"),
    ("newest_versions", "page", "0", "no page '0'; pages: 1 to 1"),
    (
        "variant_values_of_package",
        "package",
        "PY-MPI4PY",
        "no release has a package 'PY-MPI4PY'; near it: py-mpi4py",
    ),
    ("variant_values_of_package", "page", "two", "no page 'two'; pages: 1 to 1"),
    (
        "missing_for_family",
        "has",
        "x86_64_v3",
        "no family is called 'x86_64_v3', a target of the family x86_64; families: aarch64, x86_64",
    ),
    ("missing_for_family", "has", "X86_64", "no family is called 'X86_64'; families: aarch64, x86"),
    (
        "missing_for_family",
        "lacks",
        "x86_64",
        "has and lacks are the same family, 'x86_64'; families: aarch64, x86_64",
    ),
    ("missing_for_family", "lacks", "aarch", "no family is called 'aarch'; families: aarch64, x"),
    ("missing_for_family", "page", "9" * 30, f"no page '{'9' * 30}'; pages: 1 to 1"),
    ("problems_of_pages", "page", "2", "no page '2'; pages: 1 to 1"),
]


@pytest.mark.parametrize(("query", "parameter", "value", "error"), WRONG)
def test_a_wrong_parameter_is_told(
    samples: sqlite3.Connection, query: str, parameter: str, value: str, error: str
) -> None:
    """One row says what is wrong and which values there are; no other row is given."""
    (row,) = run(samples, query, **{parameter: value})
    assert row.pop("error").startswith(error)
    assert set(row.values()) == {None}


def test_every_parameter_of_every_query_can_be_wrong() -> None:
    """The test above leaves none out."""
    declared = {(query, name) for query, each in QUERIES.items() for name in each["params"]}
    assert {(query, parameter) for query, parameter, _, _ in WRONG} == declared


def test_blanks_around_a_parameter_say_nothing(samples: sqlite3.Connection) -> None:
    """What is pasted with blanks, or a hash with its slash, is the same."""
    assert rows(samples, "most_hashes", package=" py-mpi4py ")
    assert rows(samples, "releases_of_hash", hash=" /aqp7dic ")
    assert rows(samples, "newest_versions", page=" 1")


def test_specs_of_package(samples: sqlite3.Connection) -> None:
    """Specs of a package on a machine are those whose target the machine runs."""
    found = rows(samples, "specs_of_package", package="py-mpi4py", host="zen3")
    expected = {
        each["hash"]
        for each in sample_specs()
        if each["package"] == "py-mpi4py" and each["target"] in ("x86_64", "x86_64_v3")
    }
    assert {row["hash"] for row in found} == expected
    assert len(found) == len(expected)
    assert len(rows(samples, "specs_of_package")) == 129


@pytest.mark.parametrize("query", ["specs_of_package", "find_spec"])
def test_what_is_current_comes_first(query: str, built: Build) -> None:
    """Of a configuration what a branch lists, then releases and snapshots from new to old."""
    file = built(
        a=page("zlib", "develop", [spec(9)]),
        b=page("zlib", "v1.9", [spec(1)]),
        c=page("zlib", "v1.10", [spec(5), spec(9)]),
        d=page("zlib", "develop-2025-01-05", [spec(2), spec(1)]),
        e=page("zlib", "develop-2025-02-05", [spec(3)]),
    )
    spec_functions.register(file)
    parameter = {"specs_of_package": "package", "find_spec": "spec"}[query]

    found = run(file, query, **{parameter: "zlib"})

    assert [row["hash"] for row in found] == [*map(spec_hash, (9, 5, 1, 3, 2))]


@pytest.mark.parametrize("release", ["develop", "develop-2025-04-20"])
def test_targets_of_package(release: str, samples: sqlite3.Connection) -> None:
    """Each version and target of a package in one release comes with its specs there."""
    found = rows(samples, "targets_of_package", package="py-ml-dtypes", release=release)
    expected = Counter(
        (each["versions"][0], each["target"])
        for each in sample_specs()
        if each["package"] == "py-ml-dtypes" and each["release"] == release
    )
    assert {(row["version"], row["target"]): row["specs"] for row in found} == expected
    assert len(found) == len(expected)
    assert {row["release"] for row in found} == {release}
    assert [row["version"] for row in found] == sorted(
        (row["version"] for row in found), reverse=True
    )


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0"])
def test_releases_of_version(version: str, samples: sqlite3.Connection) -> None:
    """Each release that lists the version comes with the number of its specs there."""
    found = rows(samples, "releases_of_version", package="py-ml-dtypes", version=version)
    expected = Counter(
        each["release"]
        for each in sample_specs()
        if each["package"] == "py-ml-dtypes" and each["versions"] == [version]
    )
    assert {row["release"]: row["specs"] for row in found} == expected
    assert rows(samples, "releases_of_version") == rows(
        samples, "releases_of_version", package="py-ml-dtypes", version="0.4.0"
    )


def test_releases_of_hash(samples: sqlite3.Connection) -> None:
    """A hash, or its start, gives the releases that list it."""
    counts = Counter(each["hash"] for each in sample_specs())
    twice = min(spec_hash for spec_hash, count in counts.items() if count == 2)
    found = rows(samples, "releases_of_hash", hash=twice[:7].upper())
    assert [row["release"] for row in found] == ["develop", "develop-2025-04-20"]
    assert rows(samples, "releases_of_hash") == found


def test_most_hashes(samples: sqlite3.Connection) -> None:
    """The 116 binaries of py-safetensors are three configurations."""
    found = rows(samples, "most_hashes", package="py-safetensors")
    counts = Counter(
        (each["os"], each["target"])
        for each in sample_specs()
        if each["package"] == "py-safetensors"
    )
    assert [row["spec_count"] for row in found] == sorted(counts.values(), reverse=True)
    assert (len(found), sum(row["spec_count"] for row in found)) == (3, 116)


def test_packages_of_stack(samples: sqlite3.Connection) -> None:
    """A stack's packages come with their specs, each counted once."""
    found = rows(samples, "packages_of_stack", stack="e4s")
    in_stack = {
        (each["package"], each["hash"]) for each in sample_specs() if "e4s" in each["stacks"]
    }
    expected = Counter(package for package, _ in in_stack)
    assert {row["package"]: row["specs"] for row in found} == expected


def test_the_newest_version_of_a_stack_is_in_the_stack(built: Build) -> None:
    """1.10 is newer than 1.9, and 2.0 is in another stack."""
    versions = {"1.9": ["e4s"], "1.10": ["e4s", "root"], "2.0": ["hep"]}
    specs = [
        spec(number, versions=[version], stacks=stacks)
        for number, (version, stacks) in enumerate(versions.items())
    ]
    connection = built(zlib=page("zlib", specs=specs))
    (row,) = rows(connection, "packages_of_stack", stack="e4s")
    assert row == {"stack": "e4s", "package": "zlib", "specs": 2, "newest_version": "1.10"}


def test_newest_versions(samples: sqlite3.Connection) -> None:
    """Each package comes with its newest version, or those whose name holds the text."""
    found = {row["package"]: row["newest_version"] for row in rows(samples, "newest_versions")}
    assert found == {
        "py-ml-dtypes": "0.4.0",
        "py-mpi4py": "4.0.1",
        "py-pdm-backend": "2.4.3",
        "py-safetensors": "0.4.5",
    }
    assert len(rows(samples, "newest_versions", package="mpi")) == 1


def test_variant_values_of_package(samples: sqlite3.Connection) -> None:
    """Each value of each variant comes with the specs that have it."""
    assert rows(samples, "variant_values_of_package", package="py-pdm-backend") == [
        {
            "package": "py-pdm-backend",
            "variant": "build_system",
            "value": "python_pip",
            "specs": 77,
            "configurations": 7,
        }
    ]


def test_missing_for_family(built: Build) -> None:
    """Packages of one family that the other lacks, both ways, with what the family has of them."""
    connection = built(
        both=page("both", specs=[spec(1), spec(2, target="neoverse_v1")]),
        here=page("here", specs=[spec(3), spec(5, target="zen3", versions=["1.10"])]),
        there=page("there", specs=[spec(4, target="aarch64")]),
        other=page("other", specs=[spec(6), spec(7, target="power9le", versions=["9"])]),
    )
    assert rows(connection, "missing_for_family") == [
        {"package": "here", "specs": 2, "newest_version": "1.10"},
        {"package": "other", "specs": 1, "newest_version": "1.0"},
    ]
    swapped = rows(connection, "missing_for_family", has="aarch64", lacks="x86_64")
    assert [row["package"] for row in swapped] == ["there"]
    (row,) = run(connection, "specs_of_package", package="there", host="zen3")
    assert row["error"] == "no spec of there runs on zen3; targets: aarch64"


def test_an_external_of_a_family_is_no_binary_of_it(tmp_path: Path) -> None:
    """A package of which a family has an external only is one that the family lacks."""
    arm = {"platform": "linux", "platform_os": "debian12", "target": "aarch64"}
    (tmp_path / "index.json").write_bytes(
        index(
            record(node("both", edge("gcc", "build"))),
            record(node("gcc", arch=arm, external={"path": "/usr"}), is_binary=False),
            record(node("arm", arch=arm)),
            record({**node("both", arch=arm, external={}), "hash": hash_of("2")}, is_binary=False),
        )
    )
    build([str(tmp_path / "index.json")], tmp_path / "x.db")
    connection = sqlite3.connect(tmp_path / "x.db")

    lacking = rows(connection, "missing_for_family")
    swapped = rows(connection, "missing_for_family", has="aarch64", lacks="x86_64")

    assert [row["package"] for row in lacking] == ["both"]
    assert [row["package"] for row in swapped] == ["arm"]
    connection.close()


def test_problems_of_pages(built: Build, samples: sqlite3.Connection) -> None:
    """A page that contradicts itself is named with what it declares; the samples have none."""
    connection = built(odd=page("odd", meta={"num_specs": 7}))
    found = rows(connection, "problems_of_pages")
    assert [(row["code"], row["package"], row["declared"]) for row in found] == [
        ("num_specs", "odd", "7")
    ]
    assert rows(samples, "problems_of_pages") == []


def test_what_another_release_shows_takes_no_place(built: Build) -> None:
    """Configurations that only a contradicted page shows of a hash leave room for its own."""
    versions = [f"{number}.0" for number in range(4)]
    own, other = (
        [spec(start + number, versions=[each]) for number, each in enumerate(versions)]
        for start in (0, 32**25)
    )
    connection = built(
        # The same hashes, before and in v1.0; and what has the configurations of v1.0 for its own.
        zz=page("zz", specs=own),
        shown=page("aa", "v1.0", specs=own),
        aa=page("aa", specs=other),
    )
    spec_functions.register(connection)
    short = EVERY_QUERY["find_spec"]["sql"].replace("999", "2").replace("998", "1")

    found = [
        rows_of(connection.execute(short, {"spec": f"/{spec_hash(0)[:31]}", "page": page}))
        for page in ("1", "2", "3")
    ]

    assert [[row["version"] or row["error"] for row in each] for each in found] == [
        ["3.0", "2.0", "row 3 is on page 2"],
        ["1.0", "0.0"],
        ["no page '3'; pages: 1 to 2"],
    ]
    assert {row["package"] for row in (*found[0][:2], *found[1])} == {"zz"}


def of_binaries() -> Iterator[tuple[str, str, str]]:
    """Yield package, version and hash of each binary of the real index, as its JSON has them."""
    for dag_hash, each in json.loads(real())["database"]["installs"].items():
        if each["in_buildcache"]:
            yield each["spec"]["name"], each["spec"]["version"], dag_hash


@pytest.mark.slow
@pytest.mark.parametrize("query", sorted(QUERIES))
def test_what_is_no_binary_is_in_no_answer(query: str, real_index: sqlite3.Connection) -> None:
    """Externals are not what an empty parameter asks for, nor what a list of all has."""
    known = {(package, version) for package, version, _ in of_binaries()}
    found = rows(real_index, query)
    packages = {row["package"] for row in found if row.get("package")}

    assert packages <= {package for package, _ in known}
    for row in found:
        version = row.get("version") or row.get("newest_version")
        assert version is None or not row.get("package") or (row["package"], version) in known


def test_externals_are_no_specs_of_a_package(real_index: sqlite3.Connection) -> None:
    """Llvm has a binary and an external: the queries count and show the one."""
    versions = Counter(version for package, version, _ in of_binaries() if package == "llvm")
    found = rows(real_index, "specs_of_package", package="llvm")

    assert Counter(row["version"] for row in found) == versions
    assert "17.0.6" not in versions
    (row,) = run(real_index, "releases_of_version", package="llvm", version="17.0.6")
    assert row["error"].startswith("llvm has no version '17.0.6'; versions: ")
    (row,) = run(real_index, "specs_of_package", package="gcc")
    assert row["error"].startswith("no release has a package 'gcc'; near it: ")
    (row,) = run(real_index, "most_hashes", package="glibc")
    assert row["error"].startswith("no release has a package 'glibc'; near it: ")


def test_counts_are_those_of_binaries(real_index: sqlite3.Connection) -> None:
    """Numbers of packages, hashes and versions are those of the index's binaries."""
    binaries = Counter(package for package, _, _ in of_binaries())
    packages = rows(real_index, "newest_versions")
    most = rows(real_index, "most_hashes")

    assert {row["package"]: row["spec_count"] for row in packages} == binaries
    assert min(row["spec_count"] for row in most) > 0


def test_a_hash_that_no_release_lists(real_index: sqlite3.Connection) -> None:
    """It is known as a dependency, which is what the answer says."""
    (external,) = real_index.execute(
        "SELECT min(hash) FROM specs WHERE release_count = 0"
    ).fetchone()
    (row,) = run(real_index, "releases_of_hash", hash=external)
    assert row["error"] == f"no release lists '{external}': it is known as a dependency"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Datasette:
    """One Datasette for all queries: the connections of each stay open until the tests end."""
    many = build_many(tmp_path_factory.mktemp("many"))
    return Datasette(
        [], immutables=[str(many)], metadata=METADATA, plugins_dir=str(ROOT / "plugins")
    )


def test_no_query_is_left_out() -> None:
    """The test below asks each."""
    assert EVERY_ANSWER.keys() == QUERIES.keys()


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("query", EVERY_ANSWER)
@pytest.mark.parametrize("form", ["json", "csv"])
async def test_no_answer_is_cut_in_silence(query: str, form: str, asked: Datasette) -> None:
    """Page by page all rows come; the last row of all pages but the last names the next."""
    params, total, keys = EVERY_ANSWER[query]
    found: list[dict[str, Any]] = []
    for number in ("", "2"):
        response = await asked.client.get(
            f"/spack-cache/{query}.{form}", params=params | {"page": number, "_shape": "array"}
        )
        assert response.status_code == 200, response.text
        text = response.text
        answer = response.json() if form == "json" else list(csv.DictReader(io.StringIO(text)))
        if number == "":
            last = answer.pop()
            of = "" if total is None else f" of {total}"
            assert last.pop("error") == f"row 1000{of} is on page 2"
            assert not any(last.values())
            assert len(answer) == 999
        assert not any(row["error"] for row in answer)
        found += answer
    assert len(found) == len({tuple(map(row.get, keys)) for row in found}) == (total or MANY)
