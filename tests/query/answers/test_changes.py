"""What changed between two releases, against what their pages and indexes say."""

import json
import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.model import ROOT, Configuration
from spack_cache_db.query.answers.diff import compare, diff
from spack_cache_db.query.answers.diff_databases import diff_databases
from spack_cache_db.query.answers.diff_result import Amount
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.open.sql import connected
from spack_cache_db.spack.targets import Build, build_runs_on
from spack_cache_db.spack.versions import version_key
from tests.contradictions import (
    EXAMPLE,
    STACKS,
    Listing,
    database_of,
    listings,
)
from tests.indexes import edge, hash_of, index, node, record
from tests.oracle import Oracle

QUICK = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def expected(sources: Oracle, sides: tuple[str, str], narrowing: dict[str, str]) -> Any:
    """Return the answer of `diff --json`, without causes, from what the sources say one
    by one.
    """
    old_name, new_name = sides
    old_side = _side(sources, old_name, narrowing)
    new_side = _side(sources, new_name, narrowing)
    old_packages = {shown.configuration.package for shown in old_side.values()}
    new_packages = {shown.configuration.package for shown in new_side.values()}
    old_versions = _versions(old_side)
    new_versions = _versions(new_side)
    old_stacks = _stacks(old_side)
    new_stacks = _stacks(new_side)
    return {
        "packages": {
            "added": sorted(new_packages - old_packages),
            "removed": sorted(old_packages - new_packages),
        },
        "versions": {
            "added": _in_version_order(new_versions - old_versions),
            "removed": _in_version_order(old_versions - new_versions),
        },
        "configurations": _changed_configurations(old_side, new_side),
        "stacks": {
            "added": sorted(new_stacks - old_stacks),
            "removed": sorted(old_stacks - new_stacks),
        },
        "specs": {
            "kept": len(old_side.keys() & new_side.keys()),
            "added": len(new_side.keys() - old_side.keys()),
            "removed": len(old_side.keys() - new_side.keys()),
        },
    }


def _versions(side: dict[str, Listing]) -> set[tuple[str, str]]:
    """Return the packages of a side with their versions."""
    configurations = {shown.configuration for shown in side.values()}
    return {
        (configuration.package, configuration.version)
        for configuration in configurations
    }


def _in_version_order(versions: set[tuple[str, str]]) -> list[list[str]]:
    """Return packages and versions as JSON has them, in the order of the answer."""
    ordered = sorted(versions, key=lambda pair: (pair[0], version_key(pair[1])))
    return [[package, version] for package, version in ordered]


def _changed_configurations(
    old_side: dict[str, Listing], new_side: dict[str, Listing]
) -> dict[str, list[dict[str, Any]]]:
    """Return the configurations by how they changed, with numbers of binaries."""
    # A binary that changes its configuration is removed from one and added to another.
    before = {(key, shown.configuration) for key, shown in old_side.items()}
    after = {(key, shown.configuration) for key, shown in new_side.items()}
    kept = Counter(configuration for _, configuration in before & after)
    added = Counter(configuration for _, configuration in after - before)
    removed = Counter(configuration for _, configuration in before - after)

    changes: dict[str, dict[Configuration, dict[str, int]]] = {
        "added": {},
        "removed": {},
        "grown": {},
        "shrunk": {},
        "rebuilt": {},
    }
    old_configurations = {shown.configuration for shown in old_side.values()}
    new_configurations = {shown.configuration for shown in new_side.values()}
    for configuration in new_configurations - old_configurations:
        changes["added"][configuration] = {"specs": added[configuration]}
    for configuration in old_configurations - new_configurations:
        changes["removed"][configuration] = {"specs": removed[configuration]}
    for configuration in old_configurations & new_configurations:
        counts = {
            "kept": kept[configuration],
            "added": added[configuration],
            "removed": removed[configuration],
        }
        if counts["added"] and counts["removed"]:
            changes["rebuilt"][configuration] = counts
        elif counts["added"]:
            changes["grown"][configuration] = counts
        elif counts["removed"]:
            changes["shrunk"][configuration] = counts
    return {change: _words(counts) for change, counts in changes.items()}


def expected_by_stack(
    sources: Oracle, sides: tuple[str, str], narrowing: dict[str, str]
) -> dict[str, Amount]:
    """Return what each stack kept, got and lost, from what the sources say."""
    old_name, new_name = sides
    old_side = _side(sources, old_name, narrowing)
    new_side = _side(sources, new_name, narrowing)
    amounts = {}
    for stack in sorted(_stacks(old_side) | _stacks(new_side)):
        old = {key for key, shown in old_side.items() if stack in shown.stacks}
        new = {key for key, shown in new_side.items() if stack in shown.stacks}
        amounts[stack] = Amount(len(old & new), len(new - old), len(old - new))
    return amounts


def _side(sources: Oracle, name: str, narrowing: dict[str, str]) -> dict[str, Listing]:
    """Return the binaries of a release, or of one stack in it (`develop:e4s`)."""
    release, _, stack = name.partition(":")
    stack = stack or narrowing.get("stack", "")
    side = {}
    for key, shown in sources.shown[release].items():
        if stack and stack not in shown.stacks:
            continue
        if narrowing.get("package") not in (None, shown.configuration.package):
            continue
        if narrowing.get("target") not in (None, shown.configuration.target):
            continue
        host = narrowing.get("host")
        if host is not None and not build_runs_on(_build_of(shown), host):
            continue
        side[key] = shown
    return side


def _build_of(listing: Listing) -> Build:
    return Build(listing.configuration.platform, listing.configuration.target)


def _stacks(side: dict[str, Listing]) -> set[str]:
    return {name for shown in side.values() for name in shown.stacks} - {ROOT}


def _words(counts: dict[Any, dict[str, int]]) -> list[dict[str, Any]]:
    return _sorted(
        {**configuration._asdict(), "variants": list(configuration.variants), **numbers}
        for configuration, numbers in counts.items()
    )


def _sorted(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda each: json.dumps(each, sort_keys=True))


@pytest.mark.slow
@QUICK
@given(drawn=listings(), data=st.data())
def test_difference_is_what_the_sources_say(
    drawn: list[Listing], data: st.DataObject
) -> None:
    """All that `diff` compares is as each release shows it."""
    sources = Oracle(drawn)
    stacks = sorted(
        {name for each in drawn if each.is_binary for name in each.stacks} & set(STACKS)
    )
    places = list(sources.releases)
    places += [f"{release}:{stack}" for release in sources.releases for stack in stacks]
    sides = data.draw(st.tuples(st.sampled_from(places), st.sampled_from(places)))
    shown = [listing for some in sources.shown.values() for listing in some.values()]
    packages = [listing.configuration.package for listing in shown]
    targets = [listing.configuration.target for listing in shown]
    options = {
        "package": st.sampled_from(packages),
        "target": st.sampled_from(targets),
        "host": st.sampled_from(["zen3", "x86_64_v3", "aarch64"]),
    }
    if stacks and not any(":" in side for side in sides):
        options["stack"] = st.sampled_from(stacks)
    narrowing = data.draw(st.fixed_dictionaries({}, optional=options))
    with database_of(drawn) as conn:
        difference_follows_the_rule(conn, sources, sides, narrowing)


def difference_follows_the_rule(
    conn: sqlite3.Connection,
    sources: Oracle,
    sides: tuple[str, str],
    narrowing: dict[str, str],
) -> None:
    """Compare a difference with the sources."""
    found = json.loads(json.dumps(diff(conn, *sides, **narrowing).as_dict()))
    place = f":{narrowing['stack']}" if "stack" in narrowing else ""
    assert (found.pop("old"), found.pop("new")) == tuple(side + place for side in sides)
    found.pop("causes")
    for kind, rows in found["configurations"].items():
        names = [row["package"] for row in rows]
        assert names == sorted(names)
        found["configurations"][kind] = _sorted(rows)
    assert found == expected(sources, sides, narrowing)

    changes = compare(read_lookups(conn), *sides, **narrowing)
    assert changes.by_stack == expected_by_stack(sources, sides, narrowing)


def test_differences_of_an_example() -> None:
    """The same of all releases of one file, in the fast loop."""
    sources = Oracle(EXAMPLE)
    with database_of(EXAMPLE) as conn:
        for sides in [
            (old, new) for old in sources.releases for new in sources.releases
        ]:
            for narrowing in (
                {},
                {"stack": "e4s"},
                {"package": "aa"},
                {"target": "zen2"},
            ):
                difference_follows_the_rule(conn, sources, sides, narrowing)
        difference_follows_the_rule(
            conn, sources, ("develop:ml", "v1.10:ml"), {"host": "zen3"}
        )


REFUSED: list[tuple[tuple[str, str], dict[str, str]]] = [
    (("develop", "devel"), {}),
    (("develop", "develop:no-such-stack"), {}),
    (("develop:e4s", "develop"), {"stack": "hep"}),
    (("develop", "develop"), {"package": "py-mpi5py"}),
    (("develop", "develop"), {"target": "zen33"}),
    (("develop", "develop"), {"host": "zen33"}),
]


@pytest.mark.parametrize(("sides", "narrowing"), REFUSED)
def test_name_that_the_file_lacks_is_refused(
    samples: sqlite3.Connection, sides: tuple[str, str], narrowing: dict[str, str]
) -> None:
    """A release, stack, package or target that is not known is an error and no empty
    answer.
    """
    with pytest.raises(UnknownNameError):
        diff(samples, *sides, **narrowing)


Spec = dict[str, Any]


def spec(name: str, tag: str, *needs: tuple[str, str], **more: Any) -> Spec:
    """Return a record; `tag` tells its hash from others of the name, also in what needs
    it.
    """
    edges = [
        edge(each, "build", "link") | {"hash": hash_of(each + key)}
        for each, key in needs
    ]
    return record(node(name, *edges, **more, hash=hash_of(name + tag)))


def causes(folder: Path, old: list[Spec], new: list[Spec]) -> list[tuple[str, int]]:
    """Return the causes of what was rebuilt from one release to the next, as lines with
    counts.

    All of the difference is the same for two databases.
    """
    for release, records in (("v1.0", old), ("v1.1", new)):
        path = folder / "in" / release / "e4s" / "index.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(index(*records))
        build([path], folder / f"{release}.db", release="develop")
    build([str(folder / "in")], folder / "out.db")
    conn = sqlite3.connect(folder / "out.db")
    found = diff(conn, "v1.0", "v1.1")
    conn.close()
    apart = diff_databases(folder / "v1.0.db", folder / "v1.1.db")
    assert replace(apart.releases["develop"], old="v1.0", new="v1.1") == found
    assert apart.is_empty == found.is_empty
    return [(str(cause), cause.configurations) for cause in found.causes or ()]


def zlib(tag: str, version: str = "1.0", **more: Any) -> Spec:
    """Return a dependency of many."""
    return spec("zlib", tag, version=version, **more)


OLD = [
    zlib("a"),
    spec("png", "a", ("zlib", "a")),
    spec("tiff", "a", ("png", "a")),
    spec("hdf5", "a", ("zlib", "a")),
]


def rebuilt(*dependencies: Spec) -> list[Spec]:
    """Return the packages above the dependencies, with other hashes."""
    return [
        *dependencies,
        spec("png", "b", ("zlib", "b")),
        spec("tiff", "b", ("png", "b")),
        spec("hdf5", "b", ("zlib", "b")),
    ]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (rebuilt(zlib("b", "1.1")), [("zlib 1.0 → 1.1", 3)]),
        (
            rebuilt(zlib("b", parameters={"build_system": "generic", "pic": True})),
            [("zlib nothing → +pic", 3)],
        ),
        (rebuilt(zlib("b", package_hash="other")), [("zlib: its recipe", 4)]),
        (
            [*OLD[:3], spec("hdf5", "b", ("zlib", "a"), package_hash="other")],
            [("hdf5: its recipe", 1)],
        ),
        (
            [*OLD[:3], spec("hdf5", "b", ("zlib", "a"), ("png", "a"))],
            [("png: now needed", 1)],
        ),
        ([*OLD[:3], spec("hdf5", "b")], [("zlib: no longer needed", 1)]),
        (OLD, []),
    ],
    ids=["version", "variants", "recipe below", "recipe", "new", "gone", "none"],
)
def test_nearest_dependency_that_changed_is_the_cause(
    tmp_path: Path, new: list[Spec], expected: list[tuple[str, int]]
) -> None:
    """A change is found through dependencies that differ by hash alone, and counted
    once each.
    """
    assert causes(tmp_path, OLD, new) == expected


def test_hashes_are_compared_with_those_most_like_them(tmp_path: Path) -> None:
    """Of two look-alikes each is compared with the one of the same dependencies."""
    old = [
        zlib("a"),
        spec("mpi", "a"),
        spec("h", "1", ("zlib", "a")),
        spec("h", "2", ("mpi", "a")),
    ]
    new = [
        zlib("b", "1.1"),
        spec("mpi", "a"),
        spec("h", "3", ("zlib", "b")),
        spec("h", "2", ("mpi", "a")),
        spec("h", "4", ("mpi", "a"), package_hash="other"),
    ]

    assert causes(tmp_path, old, new) == [("zlib 1.0 → 1.1", 1)]


def test_causes_of_too_much_are_not_looked_for(tmp_path: Path) -> None:
    """Where more was rebuilt than may be looked at there is no answer, rather than a
    part of it.
    """
    causes(tmp_path, OLD, new := rebuilt(zlib("b", "1.1")))
    with connected(tmp_path / "out.db") as conn:
        lookups = read_lookups(conn)
        hashes = 2 * (len(new) - 1)
        changes = compare(lookups, "v1.0", "v1.1")
        found = [changes.in_words(most) for most in (None, hashes, hashes - 1)]

    assert found[0].causes == found[1].causes != ()
    assert found[2].causes is None and found[2].rebuilt == found[0].rebuilt
