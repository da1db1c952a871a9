"""environments.reuse: what a `spack.yaml` sets about the reuse of binaries."""

import json
from typing import Any

import pytest

from spack_cache_db.environments.model import (
    Environment,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules, SpecFilter
from tests.indexes import hash_of, lock_of, node


def read(
    environment: dict[str, Any], files: dict[str, bytes] | None = None
) -> Environment:
    """Return an environment that refers to files by their paths."""
    text = json.dumps({"spack": {"specs": ["app"], **environment}})
    around = Surroundings(open=(files or {}).get)
    return read_environment(text.encode(), "/e/spack.yaml", surroundings=around)


def rules_of(
    environment: dict[str, Any], files: dict[str, bytes] | None = None
) -> ReuseRules:
    """Return the rules of the first spec of an environment."""
    return read(environment, files).specs[0].reuse


def texts(filter: SpecFilter) -> tuple[list[str], list[str]]:
    """Return the texts of the specs that a filter includes and excludes."""
    return [query.text for query in filter.include], [
        query.text for query in filter.exclude
    ]


@pytest.mark.parametrize(
    ("reuse", "kinds", "reuses_roots"),
    [
        (True, "local buildcache external", True),
        (False, "external", True),
        ("dependencies", "local buildcache external", False),
        ({}, "local buildcache external", True),
        ({"roots": False}, "local buildcache external", False),
        (
            {"roots": True, "from": [{"type": "buildcache"}]},
            "buildcache external",
            True,
        ),
        ({"from": [{"type": "external"}, {"type": "local"}]}, "external local", True),
        ({"from": []}, "external", True),
        (None, "local buildcache external", True),
    ],
)
def test_the_forms_of_reuse(reuse: Any, kinds: str, reuses_roots: bool) -> None:
    """Each form names the sources, and whether the specs themselves are reused."""
    rules = rules_of({"concretizer": {"reuse": reuse, "unify": True}})

    assert [source.kind for source in rules.sources] == kinds.split()
    assert rules.reuses_roots == reuses_roots


def test_a_source_has_the_common_filters_or_its_own() -> None:
    """`include` and `exclude` of a source replace those of `reuse:`, each by itself."""
    sources = [
        {"type": "buildcache"},
        {"type": "local", "exclude": ["c"]},
        {"type": "external", "include": []},
    ]
    reuse = {"include": ["a", "%gcc"], "exclude": ["b@1"], "from": sources}
    rules = rules_of({"concretizer": {"reuse": reuse}})

    assert [texts(source.filter) for source in rules.sources] == [
        (["a", "%gcc"], ["b@1"]),
        (["a", "%gcc"], ["c"]),
        ([], ["b@1"]),
    ]


def test_the_lockfile_of_an_environment_is_a_source() -> None:
    """Its hashes are read; one that cannot be opened has a note; one without a path has
    none.
    """
    sources = [
        {"type": "environment", "path": "../other"},
        {"type": "environment", "path": "named"},
        {"type": "environment"},
    ]
    files = {"/other/spack.lock": lock_of(node("hdf5"))}
    environment = read({"concretizer": {"reuse": {"from": sources}}}, files)
    hashes = [source.hashes for source in environment.specs[0].reuse.sources[:3]]

    assert hashes == [frozenset((hash_of("hdf5"),)), None, frozenset()]
    (note,) = environment.notes
    assert "the spack.lock of an environment cannot be opened" in note


@pytest.mark.parametrize(
    ("mixing", "allowed"),
    [(True, None), (False, frozenset()), (["a", "b"], frozenset("ab")), (None, None)],
)
def test_mixed_compilers(mixing: Any, allowed: frozenset[str] | None) -> None:
    """`compiler_mixing` allows all packages, none, or the ones that it lists."""
    rules = rules_of({"concretizer": {"compiler_mixing": mixing}})

    assert rules.allowed_to_mix == allowed


def test_mirrors_with_a_filter() -> None:
    """Filters below `fetch` replace those of the mirror; mirrors without one are left
    out.
    """
    mirrors = {
        "all": "https://a.example",
        "some": {"url": "https://b.example", "exclude_binary": ["hdf5", "%fortran"]},
        "fetched": {
            "exclude_binary": ["x"],
            "fetch": {"url": "https://c.example", "include_binary": ["y"]},
            "push": "https://d.example",
        },
        "unfiltered": {"url": "https://e.example", "exclude_binary": []},
    }
    found = rules_of({"mirrors": mirrors}).mirrors

    assert [(mirror.name, mirror.url, texts(mirror.filter)) for mirror in found] == [
        ("some", "https://b.example", ([], ["hdf5", "%fortran"])),
        ("fetched", "https://c.example", (["y"], ["x"])),
    ]


def test_included_files_set_reuse() -> None:
    """A `concretizer.yaml` of a folder counts, and the environment's own setting
    replaces it.
    """
    files: Any = {
        "/scope": {
            "concretizer.yaml": b"concretizer: {reuse: dependencies, compiler_mixing: false}",
            "mirrors.yaml": b"mirrors: {m: {url: u, exclude_binary: [x]}}",
        }
    }
    included = rules_of({"include": ["/scope"]}, files)
    own = rules_of({"include": ["/scope"], "concretizer": {"reuse": True}}, files)

    assert included.reuses_roots is False
    assert included.allowed_to_mix == frozenset()
    assert [mirror.name for mirror in included.mirrors] == ["m"]
    assert own.reuses_roots is True
    assert own.allowed_to_mix == frozenset()


def test_a_group_may_have_its_own_settings() -> None:
    """`override` of a group applies to its specs only."""
    group = {
        "group": "g",
        "specs": ["b"],
        "override": {
            "concretizer": {"reuse": False},
            "packages": {"b": {"require": "+x"}},
        },
    }
    first, second = read({"specs": ["a", group]}).specs

    assert first.reuse is REUSE_ALL
    assert second.reuse.setting == "reuse: false"
    assert list(second.rules.required) == ["b"]


@pytest.mark.parametrize(
    ("concretizer", "message"),
    [
        ({"reuse": "sometimes"}, "'sometimes' is not a value of reuse:"),
        ({"reuse": ["hdf5"]}, "expected true, false, dependencies, or a mapping"),
        ({"reuse": {"from": [{"include": []}]}}, "expected the key type:"),
        (
            {"reuse": {"from": [{"type": "mirror"}]}},
            "'mirror': expected one of local, buildcache",
        ),
        ({"reuse": {"exclude": ["@@"]}}, "'@@' is not a spec"),
    ],
)
def test_settings_that_cannot_be_read(
    concretizer: dict[str, Any], message: str
) -> None:
    """The fault names what is wrong and what is expected."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read({"concretizer": concretizer})


def test_settings_of_no_concern_are_read_over() -> None:
    """Other keys of `concretizer:` set nothing about reuse."""
    environment = read({"concretizer": {"unify": "when_possible", "timeout": 9}})

    assert environment.specs[0].reuse.sources == REUSE_ALL.sources
    assert environment.notes == ()
