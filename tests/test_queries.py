"""metadata.yml's queries: the rows of each are those of a second answer, made from the
sources.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.info import info
from tests.graphs import dependencies, edges, installs, kind, run_time
from tests.indexes import edge, hash_of, index, node, record
from tests.metadata import QUERIES, run
from tests.package_data import listed, published, write_packages
from tests.pagetexts import page, spec, spec_hash, write
from tests.paths import ROOT

HASHES = sorted(installs())[::30]
GALLERY = "Questions of analysts"
"""The group of the queries with a chart."""


def of_group(*groups: str) -> list[str]:
    """Return the queries of some groups."""
    return [name for name, each in QUERIES.items() if each["group"] in groups]


def test_there_are_few_queries() -> None:
    """Each has a group, a title, and a description that names each parameter."""
    assert 12 <= len(QUERIES.keys() - of_group(GALLERY)) <= 15
    assert len(of_group(GALLERY)) == 12
    for name, query in QUERIES.items():
        assert query["group"], name
        assert query["title"], name
        for parameter in query.get("params", ()):
            assert f"{parameter.capitalize()}: " in query["description"], name


@pytest.mark.parametrize("query", of_group("Dependencies"))
def test_empty_parameters_ask_for_dependencies(
    query: str, real_index: sqlite3.Connection
) -> None:
    """Each query answers with nothing filled in."""
    assert run(real_index, query)


A = "k=a"
B = "k=b"
NEW = "develop-2025-01-12"
OLD = "develop-2025-01-05"
PLAIN = ("aa", "1.0", "gcc@13.2.0", "ubuntu24.04", "x86_64_v3", A)
SHOWN = ("x86_64_v3", "2025-01-05", "2025-01-12")
HISTORY: list[tuple[str, dict[str, str], list[tuple[Any, ...]]]] = [
    ("most_hashes", {}, [(*PLAIN, 3)]),
    ("most_hashes", {"package": "bb"}, []),
    ("variant_values_of_package", {}, [("aa", "k", "a", 3, 1), ("aa", "k", "b", 1, 1)]),
    ("variant_values_of_package", {"package": "bb"}, [("bb", "k", "a", 1, 1)]),
    ("compilers_of_release", {}, [("develop", "gcc@13.2.0", 1, 1)]),
    ("compilers_of_release", {"release": OLD}, [(OLD, "gcc@13.2.0", 2, 3)]),
    ("targets_of_release", {}, [("develop", "x86_64", "x86_64_v3", 1, 1)]),
    (
        "targets_of_release",
        {"release": OLD},
        [(OLD, "x86_64", "x86_64_v3", 1, 2), (OLD, "aarch64", "aarch64", 1, 1)],
    ),
    ("changes_by_release", {}, [("develop", NEW, 1, 0, 2), (NEW, OLD, 3, 2, 2)]),
    ("new_versions", {}, [("aa", "2.0", 1, 1)]),
    ("new_versions", {"old": NEW, "new": OLD}, [("bb", "1.0", 1, 1)]),
    ("stacks_by_growth", {}, [("e4s", 2, 3, 1), ("ml", 1, 1, 0)]),
    ("stacks_by_growth", {"new": "develop"}, [("ml", 1, 1, 0), ("e4s", 3, 1, -2)]),
    ("families_lost", {}, [("bb", "aarch64", 1, "2025-01-05", 0)]),
    ("families_lost", {"release": OLD}, []),
    ("most_replaced", {}, [(*PLAIN, 1, 1)]),
    ("most_replaced", {"package": "bb"}, []),
    (
        "only_in_snapshots",
        {"package": "bb"},
        [(spec_hash(3), "bb", "1.0", "aarch64", 1, SHOWN[1])],
    ),
    ("growth", {}, [(OLD[-10:], OLD, 2, 3), (NEW[-10:], NEW, 1, 3)]),
    (
        "compiler_by_snapshot",
        {},
        [(OLD[-10:], "gcc@13.2.0", 3, 100.0), (NEW[-10:], "gcc@13.2.0", 3, 100.0)],
    ),
    ("target_shares", {}, [("x86_64", "x86_64_v3", 1, 100.0)]),
    (
        "target_shares",
        {"release": OLD},
        [("x86_64", "x86_64_v3", 2, 66.7), ("aarch64", "aarch64", 1, 33.3)],
    ),
    ("churn", {}, [(NEW[-10:], NEW, 2, 2, 66.7)]),
    ("lifetimes", {}, []),
    ("stack_similarity", {"release": NEW}, [("e4s and ml", 1, 3, 33.3)]),
    ("packages_came_back", {}, []),
    ("most_versions", {}, [("aa", 1, 1)]),
    ("most_versions", {"release": NEW}, [("aa", 2, 2)]),
    (
        "packages_by_families",
        {"release": OLD},
        [("aarch64", 1), ("x86_64", 1)],
    ),
    (
        "longest_kept",
        {"package": "bb"},
        [(spec_hash(3), "bb", "1.0", "aarch64", SHOWN[1], SHOWN[1], 0)],
    ),
]
"""Each query about releases, its parameters, and its rows over a small history."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Two snapshots and their branch: binaries are added, replaced, lost and kept."""
    folder = tmp_path_factory.mktemp("history")
    kept = spec(1, variants=[A])
    lost = spec(2, variants=[A], stacks=["ml"])
    lost_package = spec(3, variants=[A], target="aarch64")
    added = spec(4, variants=[A])
    newest = spec(5, versions=["2.0"], variants=[B], stacks=["e4s", "ml", "root"])
    pages = {
        "a": page("aa", OLD, [kept, lost]),
        "b": page("bb", OLD, [lost_package]),
        "c": page("aa", NEW, [kept, added, newest]),
        "d": page("aa", "develop", [newest]),
    }
    build([write(folder / "pages", **pages)], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


@pytest.mark.parametrize(("query", "params", "rows"), HISTORY)
def test_each_query_over_a_small_history(
    history: sqlite3.Connection,
    query: str,
    params: dict[str, str],
    rows: list[tuple[Any, ...]],
) -> None:
    """Each query has its rows in their order; empty parameters mean all or the
    newest.
    """
    assert [tuple(row.values()) for row in run(history, query, **params)] == rows


def test_binaries_that_snapshots_keep(history: sqlite3.Connection) -> None:
    """Each is there once, the one that was kept longest first."""
    kept, *others = run(history, "longest_kept")

    assert tuple(kept.values()) == (spec_hash(1), "aa", "1.0", *SHOWN, 7)
    assert [row["days"] for row in others] == [0, 0, 0, 0]
    assert {row["hash"] for row in run(history, "only_in_snapshots")} == set(
        map(spec_hash, (1, 2, 3, 4))
    )


def write_listed(folder: Path, hashes: Mapping[str, tuple[int, ...]]) -> Path:
    """Write the pages of one package that list the numbered specs of each release."""
    pages = {}
    for number, (release, spec_numbers) in enumerate(hashes.items()):
        specs = [spec(spec_number) for spec_number in spec_numbers]
        pages[f"p{number}"] = page("aa", release, specs)
    return write(folder, **pages)


def test_a_survival_curve_knows_both_ends_of_a_history(tmp_path: Path) -> None:
    """The documented statement leaves out what may be older than the history, and what
    is listed now has not ended.
    """
    days = ("develop-2025-01-01", "develop-2025-01-11", "develop-2025-01-31")
    hashes = {
        # The first snapshot has 1 and 2; of the others, 3 and 4 end after the second
        # one, and 6 after the same snapshot but in a branch that still has it.
        days[0]: (1, 2),
        days[1]: (1, 3, 4, 5, 6),
        days[2]: (1, 5, 7),
        "develop": (1, 6),
    }
    build([write_listed(tmp_path / "pages", hashes)], tmp_path / "x.db")
    document = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"```sql\n(-- The share of.*?)```", document, re.DOTALL)
    connection = sqlite3.connect(tmp_path / "x.db")
    curve = connection.execute(statement).fetchall()
    connection.close()

    # Of 3 to 7, two have ended at an age of 0 days.
    assert curve == [(0, 1), (0, pytest.approx(3 / 5))]


def test_packages_that_came_back(tmp_path: Path) -> None:
    """A package is counted for each snapshot that lists it again, in each branch."""
    listed = {
        "develop-2025-01-01": "ab",
        "develop-2025-01-02": "a",
        "develop-2025-01-03": "ab",
        "develop-2025-01-04": "a",
        "develop-2025-01-05": "abc",
        "other-2025-01-02": "b",
        "other-2025-01-06": "b",
        "develop": "c",
    }
    numbers: dict[str, int] = {}
    pages = {}
    for release, packages in listed.items():
        for package in packages:
            number = numbers.setdefault(package, len(numbers) + 1)
            pages[f"{release}-{package}"] = page(package * 2, release, [spec(number)])
    build([write(tmp_path / "pages", **pages)], tmp_path / "x.db")
    connection = sqlite3.connect(tmp_path / "x.db")
    found = run(connection, "packages_came_back")
    connection.close()

    assert [tuple(row.values()) for row in found] == [
        ("bb", "develop", 2, "2025-01-05")
    ]


def test_lifetimes_are_the_documented_curve(tmp_path: Path) -> None:
    """In percent, with the last value of each age."""
    days = ("develop-2025-01-01", "develop-2025-01-11", "develop-2025-01-31")
    hashes = {days[0]: (1,), days[1]: (2, 3, 4), days[2]: (3, 5), "develop": (4,)}
    build([write_listed(tmp_path / "pages", hashes)], tmp_path / "x.db")
    connection = sqlite3.connect(tmp_path / "x.db")

    # Of 2 to 5, one has ended at an age of 0 days.
    assert run(connection, "lifetimes") == [{"days": 0, "percent": 75.0}]
    connection.close()


def test_most_needed_packages(real_index: sqlite3.Connection) -> None:
    """The direct link and run dependencies of all binaries of a real index."""
    names = {key: each["spec"]["name"] for key, each in installs().items()}
    users: dict[str, set[str]] = {}
    for dag_hash, needed in edges().items():
        if kind(dag_hash) == "binary":
            for other, types in needed.items():
                if types & {"link", "run"}:
                    users.setdefault(names[other], set()).add(dag_hash)
    expected = {}
    for package, hashes in users.items():
        user_packages = {names[dag_hash] for dag_hash in hashes}
        expected[package] = (len(hashes), len(user_packages))

    assert {
        row["package"]: (row["needed_by"], row["package_count"])
        for row in run(real_index, "most_needed_packages")
    } == expected


def test_two_versions_in_one_closure(real_index: sqlite3.Connection) -> None:
    """The binaries that need two versions of Python, over edges of any type."""
    expected: dict[tuple[str, int], int] = {}
    for dag_hash in edges():
        needed = {dag_hash}
        ahead = [dag_hash]
        while ahead:
            for other in edges()[ahead.pop()]:
                if other not in needed:
                    needed.add(other)
                    ahead.append(other)
        versions = {
            installs()[each]["spec"]["version"]
            for each in needed
            if installs()[each]["spec"]["name"] == "python"
        }
        if len(versions) > 1 and kind(dag_hash) == "binary":
            key = (installs()[dag_hash]["spec"]["name"], len(versions))
            expected[key] = expected.get(key, 0) + 1
    found = run(real_index, "two_versions_in_one", package="python")

    assert found
    assert {
        (row["package"], len(row["needed_versions"].split(", "))): row["binaries"]
        for row in found
    } == expected


@pytest.mark.slow
def test_changes_of_a_release_are_the_sums_of_its_configurations(
    all_sources: sqlite3.Connection,
) -> None:
    """The query counts without the view, which takes longer."""
    sums = (
        "SELECT release, sum(added), sum(removed) FROM release_changes GROUP BY release"
    )

    changes = {
        (row["release"], row["added"], row["removed"])
        for row in run(all_sources, "changes_by_release")
        if row["added"] or row["removed"]
    }
    assert changes == set(all_sources.execute(sums))


def named(hashes: Iterable[str]) -> set[tuple[str, str, str, str]]:
    """Return hash, package, version and kind of specs."""
    specs = {dag_hash: installs()[dag_hash]["spec"] for dag_hash in hashes}
    return {
        (dag_hash, each["name"], each["version"], kind(dag_hash))
        for dag_hash, each in specs.items()
    }


def shown(found: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """Return the same of rows."""
    kinds = {(1, 0): "binary", (0, 1): "external", (0, 0): "known as a dependency"}
    return {
        (
            row["hash"],
            row["package"],
            row["version"],
            kinds[row["is_binary"], row["is_external"]],
        )
        for row in found
    }


def types_of(row: dict[str, Any]) -> set[str]:
    """Return how a spec uses another itself."""
    return set((row["types"] or "").split(",")) - {""}


def test_dependencies_of_hash(real_index: sqlite3.Connection) -> None:
    """All that a spec links to or runs or uses directly, each once, and how it uses it
    itself.
    """
    for dag_hash in HASHES:
        found = run(real_index, "dependencies_of_hash", hash=dag_hash)
        assert len(found) == len(dependencies(dag_hash))
        assert shown(found) == named(dependencies(dag_hash))
        for row in found:
            assert types_of(row) == edges()[dag_hash].get(row["hash"], set())


def test_dependents_of_hash(real_index: sqlite3.Connection) -> None:
    """All that uses a spec directly in any way, or links to it or runs it through
    others.
    """
    for dag_hash in HASHES:
        found = run(real_index, "dependents_of_hash", hash=dag_hash)
        through = {user for user in installs() if dag_hash in run_time(user)} - {
            dag_hash
        }
        directly = {
            each: to[dag_hash] for each, to in edges().items() if dag_hash in to
        }
        assert len(found) == len(through | directly.keys())
        assert shown(found) == named(through | directly.keys())
        assert all(types_of(row) == directly.get(row["hash"], set()) for row in found)


def test_dependencies_without_binary(real_index: sqlite3.Connection) -> None:
    """Of what a spec needs to run, and of itself, what is no binary: the externals."""
    for dag_hash in HASHES:
        found = run(real_index, "dependencies_without_binary", hash=dag_hash)
        lacking = {each for each in run_time(dag_hash) if kind(each) != "binary"}
        assert shown(found) == named(lacking)
        assert {(row["release"], row["release_count"]) for row in found} <= {
            ("develop", 0)
        }


def test_another_release_may_have_it(tmp_path: Path) -> None:
    """A release lacks externals, and binaries that only another release has."""
    system = record(node("system", external={"path": "/usr"}), is_binary=False)
    tool = node("tool", edge("system", "link"))
    main = record(node("main", edge("system", "link"), edge("tool", "run")))
    for name, is_binary in (("develop", True), ("v1.0", False)):
        data = index(main, system, record(tool, is_binary=is_binary))
        (tmp_path / name / "root").mkdir(parents=True)
        (tmp_path / name / "root" / "index.json").write_bytes(data)
    build([str(tmp_path)], tmp_path / "x.db")
    connection = sqlite3.connect(tmp_path / "x.db")
    lacking = {}
    for release in ("", "develop", "v1.0"):
        rows = run(
            connection,
            "dependencies_without_binary",
            hash=hash_of("main"),
            release=release,
        )
        lacking[release] = {
            (row["package"], row["is_binary"], row["release_count"]) for row in rows
        }
    connection.close()

    assert lacking["develop"] == lacking[""] == {("system", 0, 0)}
    assert lacking["v1.0"] == {("system", 0, 0), ("tool", 1, 1)}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package in two states, and two of whose versions nothing or not everything is
    known.
    """
    folder = tmp_path_factory.mktemp("packages")
    numbers: dict[tuple[str, str], int] = {}

    def snapshot(package: str, day: str, *versions: str) -> bytes:
        specs = [
            spec(
                numbers.setdefault((package, version), len(numbers)), versions=[version]
            )
            for version in versions
        ]
        return page(package, f"develop-2025-04-{day}", specs)

    old = snapshot("old", "06", "1.0")
    new = snapshot("old", "20", "1.0", "1.5")
    current = snapshot("current", "20", "2.0", "2.0-local")
    named = snapshot("named", "20", "3.0")
    simple = snapshot("simple", "20", "1.0", "0.9")
    pages = write(
        folder / "pages", old=old, new=new, current=current, named=named, simple=simple
    )
    deprecated = [{"name": "1.0"}]
    users = [{"name": "old", "description": "The old one."}]
    data = write_packages(
        folder / "data",
        published("old", "3.0", "2.0", "1.5", versions_deprecated=deprecated),
        published("current", "2.0"),
        published("needed", "1.0", dependent_to=users),
        published("alone", "4.0"),
        names=["named"],
        simple=[listed("simple", "1.0")],
    )
    build([pages, data], folder / "x.db")
    return folder / "x.db"


@pytest.fixture
def connection(packages: Path) -> Iterator[sqlite3.Connection]:
    """A connection to it."""
    connection = sqlite3.connect(packages)
    yield connection
    connection.close()


def test_versions_behind_spack(connection: sqlite3.Connection) -> None:
    """Packages without known versions do not count."""
    assert [
        tuple(row.values()) for row in run(connection, "versions_behind_spack")
    ] == [
        (0, 2, "current"),
        (2, 1, "old"),
    ]


def test_binaries_of_versions_that_were_dropped(connection: sqlite3.Connection) -> None:
    """Deprecated and unknown ones; of a package without known versions nothing is
    said.
    """
    found = {
        (row["package"], row["version"]): row
        for row in run(connection, "versions_dropped")
    }

    assert {key: row["status"] for key, row in found.items()} == {
        ("current", "2.0-local"): "unknown",
        ("old", "1.0"): "deprecated",
        ("simple", "0.9"): "unknown",
    }
    assert found["old", "1.0"]["spec_count"] == 1
    assert found["old", "1.0"]["last_seen"] == "2025-04-20"


def test_info_has_the_numbers(packages: Path, samples_file: Path) -> None:
    """Those of the views; none without package data."""
    assert info(packages)["compared_with_spack"] == {
        "packages_behind": 1,
        "packages_missing": 2,
        "versions_deprecated": 1,
        "versions_unknown": 2,
    }
    assert info(samples_file)["compared_with_spack"] == {}
