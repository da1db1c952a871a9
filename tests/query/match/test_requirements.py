"""query.records: which binaries an environment's `packages:` lets count."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import CoveredSpec
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.spack.matching import version_matches
from spack_cache_db.spack.parser import parse_query
from tests.conftest import Build
from tests.graphs import installs, run_time
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, write

EXTERNAL = {"spec": "openmpi@4.1", "prefix": "/usr"}


def covered(
    conn: sqlite3.Connection, packages: dict[str, Any], *specs: str
) -> dict[str, CoveredSpec]:
    """Return the answers for specs under what `packages:` requires, by the texts of the
    specs.
    """
    text = json.dumps({"spack": {"specs": specs, "packages": packages}})
    found = cover_environment(
        read_lookups(conn), read_environment(text.encode(), "-")
    ).specs
    return {each.spec: each for each in found if each.is_root is None}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of app, built with two providers of mpi, and of what both link, run
    and build.
    """
    specs = [
        node("mpich", version="4.1", parameters={"cuda": True}),
        node("openmpi", edge("lib", "link"), version="5.0"),
        node("lib", version="1.0"),
        node("tool", version="2.0"),
        node("gcc", version="13.2", external={"path": "/usr"}),
        node("other", edge("app openmpi", "run") | {"name": "app"}),
        node("alone"),
    ]
    for mpi, version in (("mpich", "1.0"), ("openmpi", "2.0")):
        app = node(
            "app",
            edge(mpi, "link", virtuals=("mpi",)),
            edge("tool", "build", virtuals=("pkgconfig",)),
            edge("gcc", "build", virtuals=("c",)),
            hash=hash_of(f"app {mpi}"),
            version=version,
        )
        specs.append(app)
    records = map(record, specs)
    folder = tmp_path_factory.mktemp("mirror")
    build(write(folder / "in", a=index(*records)), folder / "x.db")
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        yield connection


def configuration_of(version: str) -> Configuration:
    """Return the configuration of app."""
    variants = ("build_system=generic",)
    return Configuration(
        "app", version, "gcc@13.2", "debian12", "linux", "x86_64_v3", variants
    )


@pytest.mark.parametrize(
    ("packages", "app", "alone"),
    [
        ({"mpi": {"require": "mpich"}}, "1.0", True),
        ({"mpi": {"require": ["mpich@4:", "mpich+cuda"]}}, "1.0", True),
        ({"mpi": {"require": "mpich~cuda"}}, None, True),
        ({"mpi": {"require": [{"one_of": ["mvapich2", "openmpi@4"]}]}}, None, True),
        ({"mpi": {"require": [{"any_of": ["mvapich2", "openmpi@5"]}]}}, "2.0", True),
        ({"mpi": {"require": [{"one_of": ["mpich", "mpich@4:"]}]}}, None, True),
        ({"mpi": {"conflict": [{"spec": "openmpi", "when": "os=rhel8"}]}}, "2.0", True),
        (
            {"mpi": {"conflict": [{"spec": "openmpi", "when": "platform=linux"}]}},
            "1.0",
            True,
        ),
        ({"mpi": {"require": [{"spec": "mpich", "when": "%gcc"}]}}, "2.0", True),
        ({"mpi": {"require": [{"spec": "mpich", "when": "+cuda"}]}}, "2.0", True),
        ({"openmpi": {"require": "@4"}}, "1.0", True),
        ({"lib": {"require": "@2"}, "mpich": {"require": "@3"}}, None, True),
        ({"tool": {"require": "@9"}}, "2.0", True),
        ({"pkgconfig": {"require": "other-tool"}}, "2.0", True),
        ({"c": {"require": "llvm"}}, None, True),
        ({"gcc": {"require": "@12"}}, "2.0", True),
        ({"app": {"require": "^mpi=mpich"}}, "1.0", True),
        ({"app": {"require": "^lib"}}, "2.0", True),
        ({"app": {"require": "^tool"}}, None, True),
        ({"app": {"require": "%tool"}}, "2.0", True),
        ({"app": {"require": [{"spec": "@1", "when": "^pkgconfig"}]}}, "2.0", True),
        ({"app": {"require": [{"spec": "@1", "when": "^mpi"}]}}, "1.0", True),
        (
            {"app": {"require": [{"spec": "@1", "when": "^mpi=openmpi ^lib"}]}},
            "1.0",
            True,
        ),
        ({"all": {"require": "target=zen3"}}, None, False),
        ({"all": {"require": "@1"}, "openmpi": {"require": "@5"}}, None, True),
        ({"all": {"require": "~cuda"}}, "2.0", True),
        ({"all": {"require": "%gcc"}, "mpich": {"require": "@4"}}, "1.0", False),
        ({"all": {"version": ["9"], "providers": {"mpi": ["mpich"]}}}, "2.0", True),
        ({"mpi": {"prefer": ["mpich"]}}, "1.0", True),
        ({"app": {"prefer": ["@1"]}}, "1.0", True),
        ({"app": {"prefer": [{"spec": "@1", "when": "platform=darwin"}]}}, "2.0", True),
        ({"openmpi": {"prefer": ["@4"]}}, "1.0", True),
        ({"tool": {"prefer": ["@9"]}}, "2.0", True),
        ({"all": {"prefer": ["target=zen3"]}}, None, False),
        ({"openmpi": {"buildable": False, "externals": [EXTERNAL]}}, "2.0", True),
        (
            {"mpi": {"buildable": False}, "openmpi": {"externals": [EXTERNAL]}},
            "2.0",
            True,
        ),
    ],
)
def test_a_requirement_counts_for_what_a_binary_links_and_runs(
    mirror: sqlite3.Connection, packages: dict[str, Any], app: str | None, alone: bool
) -> None:
    """A binary counts if each package that it links or runs satisfies its
    requirements.
    """
    found = covered(mirror, packages, "app", "alone", "other")

    assert found["app"].status == ("binary" if app else "near")
    if app is not None:
        assert found["app"].configuration == configuration_of(app)
    assert found["alone"].status == ("binary" if alone else "near")
    # It runs app@2.0, whose requirements are its own.
    assert (found["other"].status == "binary") == (app == "2.0")


def test_what_excludes_a_binary_is_named(mirror: sqlite3.Connection) -> None:
    """The answer names the requirement, the nearest binary, and what breaks the
    requirement.
    """
    found = covered(mirror, {"mpi": {"require": ["mvapich2"]}}, "app", "other")

    assert found["app"].reasons == (
        "without 'packages: mpi: require: mvapich2': 2 configurations; nearest is app@2.0 gcc@13.2 "
        f"debian12 x86_64_v3 /{hash_of('app openmpi')[:7]}, which uses openmpi@5.0",
    )
    assert found["app"].hash is None
    assert found["app"].configuration is not None
    assert "which uses openmpi@5.0" in found["other"].reasons[0]
    (own,) = covered(mirror, {"all": {"require": "target=zen3"}}, "alone").values()
    assert own.reasons == (
        "without 'packages: all: require: target=zen3': 1 configuration; x86_64_v3 runs on zen3; "
        f"nearest is alone@1.0 none debian12 x86_64_v3 /{hash_of('alone')[:7]}",
    )
    both = covered(mirror, {"mpi": {"require": "mvapich2"}}, "app@1 +none")[
        "app@1 +none"
    ]
    assert (
        "without +none and 'packages: mpi: require: mvapich2': 1 configuration"
        in both.reasons[0]
    )


@pytest.mark.parametrize(
    ("packages", "spec", "status"),
    [
        ({"app": {"prefer": ["@1"]}}, "app@2", "binary"),
        ({"app": {"prefer": ["@1"]}}, "app@:2", "binary"),
        ({"app": {"prefer": ["@3"]}}, "app@:2", "binary"),
        ({"app": {"prefer": ["@3"]}}, "app", "near"),
        ({"all": {"prefer": ["target=zen3"]}}, "app target=x86_64_v3", "binary"),
        ({"openmpi": {"prefer": ["@4"]}}, "app ^openmpi@5", "binary"),
        ({"openmpi": {"prefer": ["@4"]}}, "app ^openmpi", "near"),
        ({"openmpi": {"require": ["@4"]}}, "app ^openmpi@5", "near"),
    ],
)
def test_a_strong_preference(
    mirror: sqlite3.Connection, packages: dict[str, Any], spec: str, status: str
) -> None:
    """`prefer` excludes binaries that violate it, unless the spec itself contradicts
    it.
    """
    answer = covered(mirror, packages, spec)[spec]

    assert answer.status == status
    if status == "near":
        key = "prefer" if "prefer" in str(packages) else "require"
        assert f": {key}: @" in " ".join(answer.reasons)


def test_a_condition_on_another_package_is_not_seen(mirror: sqlite3.Connection) -> None:
    """It is unknown whether such a requirement counts, except for what satisfies it
    anyway.
    """
    for owner, option in (("openmpi", "@4"), ("mpi", "mpich")):
        packages = {owner: {"require": [{"spec": option, "when": "lib@1"}]}}
        found = covered(mirror, packages, "app@1", "app@2")
        assert [found["app@1"].status, found["app@2"].status] == ["binary", "unknown"]


@pytest.mark.parametrize(
    ("packages", "status"),
    [
        ({"mpi": {"require": "mpich"}}, "unknown"),
        ({"zlib": {"conflict": ["@1.2"]}}, "unknown"),
        ({"bar": {"require": "^mpi"}}, "unknown"),
        ({"bar": {"require": [{"any_of": ["^mpi", "%gcc@13"]}]}}, "binary"),
        ({"bar": {"require": "@2"}}, "near"),
        ({"all": {"require": "target=x86_64_v3"}}, "binary"),
        ({"mpi": {"prefer": ["mpich"]}}, "unknown"),
        ({"mpi": {"version": ["4"]}}, "binary"),
        ({}, "binary"),
    ],
)
def test_pages_do_not_show_it(
    built: Build, packages: dict[str, Any], status: str
) -> None:
    """Without dependency data it is unknown whether requirements on dependencies
    hold.
    """
    conn = built(a=page("bar", "develop", [spec(1)]))
    (answer,) = covered(conn, packages, "bar").values()

    assert answer.status == status
    if status == "unknown":
        assert answer.hash is None
        assert answer.configuration is not None
        assert "'packages: " in answer.reasons[0]


def test_pages_beside_an_index(built: Build) -> None:
    """Of a spec that only pages list nothing is known; others of its package are
    answered.
    """
    records = [record(node("bar", version="3.0")), record(node("foo"))]
    pages = page("bar", "v1.0", [spec(1, os="rhel8"), spec(2, versions=["9.0"])])
    conn = built(a=index(*records), b=pages)
    found = covered(
        conn, {"mpi": {"require": "mpich"}}, "bar", "bar os=rhel8", "foo", "bar ^foo"
    )

    assert {name: answer.status for name, answer in found.items()} == {
        "bar": "binary",
        "bar os=rhel8": "unknown",
        "foo": "binary",
        "bar ^foo": "unknown",
    }
    assert found["bar"].configuration is not None
    assert found["bar"].configuration.version == "3.0"
    assert "^foo, 'packages: mpi: require: mpich'" in found["bar ^foo"].reasons[0]


def test_a_virtual_root_is_the_provider_that_is_required(
    mirror: sqlite3.Connection,
) -> None:
    """A spec of a virtual package asks for what the environment requires as its
    provider.
    """
    either = {"mpi": {"require": [{"any_of": ["mvapich2", "openmpi"]}]}}

    assert covered(mirror, either, "mpi")["mpi"].query == "openmpi"
    assert covered(mirror, {}, "mpi")["mpi"].status == "unanswerable"


def in_versions(text: str) -> Callable[[dict[str, Any]], bool]:
    """Return whether the version of a node is in the ranges of an option."""
    ranges = parse_query(text).versions
    return lambda node: version_matches(ranges, node["version"])


def is_shared(node: dict[str, Any]) -> bool:
    """Return whether a node has +shared."""
    return node["parameters"].get("shared") is True


def is_for_x86_64_v3(node: dict[str, Any]) -> bool:
    """Return whether the target of a node is x86_64_v3."""
    target = node["arch"]["target"]
    # Targets that Spack knows are objects.
    name = target if isinstance(target, str) else target["name"]
    return bool(name == "x86_64_v3")


def is_for_debian12(node: dict[str, Any]) -> bool:
    """Return whether the operating system of a node is debian12."""
    return bool(node["arch"]["platform_os"] == "debian12")


OPTIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "@1": in_versions("@1"),
    "@2:": in_versions("@2:"),
    "@:4": in_versions("@:4"),
    "+shared": is_shared,
    "target=x86_64_v3": is_for_x86_64_v3,
    "os=debian12": is_for_debian12,
    "target=x86_64_v3 os=debian12": (
        lambda node: is_for_x86_64_v3(node) and is_for_debian12(node)
    ),
}
"""Options, and whether a node of an index satisfies them."""


@cache
def nodes() -> dict[str, dict[str, Any]]:
    """Return the nodes of the real index, by hash."""
    return {dag_hash: each["spec"] for dag_hash, each in installs().items()}


def breaks(requirement: Any, subject: dict[str, Any], name: str) -> bool:
    """Return whether a node breaks a requirement that counts for it."""
    if name == "all" and "external" in subject:
        return False
    if "conflict" in requirement:
        return OPTIONS[requirement["conflict"]](subject)
    (group,) = requirement.keys() - {"when"}
    if "when" in requirement and not OPTIONS[requirement["when"]](subject):
        return False
    texts = requirement[group]
    if name == "all":
        texts = [
            text
            for text in texts
            if text != "+shared" or "shared" in subject["parameters"]
        ]
        if not texts:
            return False
    count = sum(OPTIONS[text](subject) for text in texts)
    return count == 0 or (group == "one_of" and count != 1)


def required(packages: dict[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    """Yield the requirements that count for a package, each with the name of its
    entry.
    """
    for kind in ("require", "conflict"):
        own = name if packages.get(name, {}).get(kind) else "all"
        for each in packages.get(own, {}).get(kind, ()):
            yield own, {"conflict": each} if kind == "conflict" else each


NAMES = ["all", "zlib-ng", "openmpi", "ncurses", "glibc", "hdf5", "cmake"]


@st.composite
def groups(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a requirement of one or any of some options, with or without a condition."""
    kind = draw(st.sampled_from(["one_of", "any_of"]))
    option = st.sampled_from(list(OPTIONS))
    group: dict[str, Any] = {
        kind: draw(st.lists(option, min_size=1, max_size=3, unique=True))
    }
    condition = draw(st.none() | option)
    if condition is not None:
        group["when"] = condition
    return group


ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "require": st.lists(groups(), max_size=2),
        "conflict": st.lists(st.sampled_from(list(OPTIONS)), max_size=1),
    },
)


@pytest.mark.slow
@settings(max_examples=8)
@given(st.dictionaries(st.sampled_from(NAMES), ENTRY, max_size=3))
def test_a_walk_over_the_real_index_says_the_same(
    real_index: sqlite3.Connection, packages: dict[str, Any]
) -> None:
    """Of each package as many binaries count as a walk over all their dependencies
    finds.
    """
    broken = set()
    for dag_hash, subject in nodes().items():
        for entry_name, requirement in required(packages, subject["name"]):
            if breaks(requirement, subject, entry_name):
                broken.add(dag_hash)
    counts: dict[str, int] = {}
    for dag_hash, each in installs().items():
        if each["in_buildcache"]:
            name = each["spec"]["name"]
            counts[name] = counts.get(name, 0) + run_time(dag_hash).isdisjoint(broken)
    found = covered(real_index, packages, *counts)

    assert {name: answer.spec_count for name, answer in found.items()} == counts
    # What the solver reuses of them is another question.
    assert all(
        (answer.hash is not None) == bool(counts[name])
        for name, answer in found.items()
    )
