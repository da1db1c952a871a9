"""What changed between two releases, against what their pages and indexes say."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build
from spack_cache_db.query.changes import diff, diff_databases
from spack_cache_db.query.names import UnknownNameError
from spack_cache_db.records import ROOT
from spack_cache_db.spack.targets import runs_on
from spack_cache_db.spack.versions import version_key
from tests.contradictions import EXAMPLE, STACKS, Listing, listings, opened
from tests.indexes import index, record
from tests.oracle import Oracle
from tests.small_sources import nodes

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def expected(sources: Oracle, sides: tuple[str, str], narrowing: dict[str, str]) -> Any:
    """Return the answer of `diff --json`, without causes, from what the sources say one by one."""
    was, now = (_side(sources, name, narrowing) for name in sides)

    def both(key: Any) -> dict[str, list[Any]]:
        before, after = ({key(each) for each in side.values()} for side in (was, now))
        return {"added": sorted(after - before), "removed": sorted(before - after)}

    before, after = (
        {(key, each.configuration) for key, each in side.items()} for side in (was, now)
    )
    shown = [{each.configuration for each in side.values()} for side in (was, now)]
    removed, added = (
        Counter(each for _, each in some) for some in (before - after, after - before)
    )
    kept = Counter(each for _, each in before & after)
    versions = both(lambda each: (each.configuration.package, each.configuration.version))
    return {
        "packages": both(lambda each: each.configuration.package),
        "versions": {
            side: [list(each) for each in sorted(some, key=lambda v: (v[0], version_key(v[1])))]
            for side, some in versions.items()
        },
        "configurations": {
            "added": _words({key: {"specs": added[key]} for key in shown[1] - shown[0]}),
            "removed": _words({key: {"specs": removed[key]} for key in shown[0] - shown[1]}),
            **{
                change: _words(
                    {
                        key: {"kept": kept[key], "added": added[key], "removed": removed[key]}
                        for key in shown[0] & shown[1]
                        if (bool(added[key]), bool(removed[key])) == changed
                    }
                )
                for change, changed in {
                    "grown": (True, False),
                    "shrunk": (False, True),
                    "rebuilt": (True, True),
                }.items()
            },
        },
        "stacks": {
            "added": sorted(_stacks(now) - _stacks(was)),
            "removed": sorted(_stacks(was) - _stacks(now)),
        },
        "specs": {
            "kept": len(was.keys() & now.keys()),
            "added": len(now.keys() - was.keys()),
            "removed": len(was.keys() - now.keys()),
        },
    }


def _side(sources: Oracle, name: str, narrowing: dict[str, str]) -> dict[str, Listing]:
    release, _, stack = name.partition(":")
    stack = stack or narrowing.get("stack", "")
    return {
        key: each
        for key, each in sources.shown[release].items()
        if (not stack or stack in each.stacks)
        and narrowing.get("package") in (None, each.configuration.package)
        and narrowing.get("target") in (None, each.configuration.target)
        and ("host" not in narrowing or runs_on(each.configuration.target, narrowing["host"]))
    }


def _stacks(side: dict[str, Listing]) -> set[str]:
    return {name for each in side.values() for name in each.stacks} - {ROOT}


def _words(counts: dict[Any, dict[str, int]]) -> list[dict[str, Any]]:
    return _sorted(
        {**key._asdict(), "variants": list(key.variants), **more} for key, more in counts.items()
    )


def _sorted(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda each: json.dumps(each, sort_keys=True))


@pytest.mark.slow
@QUICK
@given(drawn=listings(), data=st.data())
def test_difference_is_what_the_sources_say(drawn: list[Listing], data: st.DataObject) -> None:
    """All that `diff` compares is as each release shows it."""
    sources = Oracle(drawn)
    stacks = sorted({name for each in drawn if each.is_binary for name in each.stacks} & {*STACKS})
    places = [*sources.releases]
    places += [f"{release}:{stack}" for release in sources.releases for stack in stacks]
    sides = data.draw(st.tuples(st.sampled_from(places), st.sampled_from(places)))
    shown = [each for some in sources.shown.values() for each in some.values()]
    options = {
        "package": st.sampled_from([each.configuration.package for each in shown]),
        "target": st.sampled_from([each.configuration.target for each in shown]),
        "host": st.sampled_from(["zen3", "x86_64_v3", "aarch64"]),
    }
    if stacks and not any(":" in side for side in sides):
        options["stack"] = st.sampled_from(stacks)
    narrowing = data.draw(st.fixed_dictionaries({}, optional=options))
    with opened(drawn) as conn:
        difference_follows_the_rule(conn, sources, sides, narrowing)


def difference_follows_the_rule(
    conn: sqlite3.Connection, sources: Oracle, sides: tuple[str, str], narrowing: dict[str, str]
) -> None:
    """Compare a difference with the sources."""
    found = json.loads(json.dumps(diff(conn, *sides, **narrowing).as_dict()))
    place = f":{narrowing['stack']}" if "stack" in narrowing else ""
    assert (found.pop("old"), found.pop("new")) == tuple(side + place for side in sides)
    found.pop("causes")
    for kind, rows in found["configurations"].items():
        names = [each["package"] for each in rows]
        assert names == sorted(names)
        found["configurations"][kind] = _sorted(rows)
    assert found == expected(sources, sides, narrowing)


def test_differences_of_an_example() -> None:
    """The same of all releases of one file, in the fast loop."""
    sources = Oracle(EXAMPLE)
    with opened(EXAMPLE) as conn:
        for sides in [(old, new) for old in sources.releases for new in sources.releases]:
            for narrowing in ({}, {"stack": "e4s"}, {"package": "aa"}, {"target": "zen2"}):
                difference_follows_the_rule(conn, sources, sides, narrowing)
        difference_follows_the_rule(conn, sources, ("develop:ml", "v1.10:ml"), {"host": "zen3"})


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
    """A release, stack, package or target that is not known is an error and no empty answer."""
    with pytest.raises(UnknownNameError):
        diff(samples, *sides, **narrowing)


@pytest.mark.slow
@QUICK
@given(data=st.data())
def test_two_databases_differ_as_their_releases_in_one(data: st.DataObject) -> None:
    """What `diff` finds between two releases, it finds if each release has its own database."""
    # Hashes that both indexes have are of the same specs, as in Spack.
    every = [each["spec"] for each in data.draw(nodes(7, "8"))]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for release in ("v1.0", "v1.1"):
            binaries = data.draw(st.lists(st.booleans(), min_size=7, max_size=7))
            pairs = zip(every, binaries, strict=True)
            path = folder / "in" / release / "e4s" / "index.json"
            path.parent.mkdir(parents=True)
            path.write_bytes(index(*(record(each, is_binary=is_own) for each, is_own in pairs)))
            build([path], folder / f"{release}.db", release="develop", stack="e4s")
        build([folder / "in"], folder / "both.db")
        narrowing = data.draw(st.sampled_from([{}, {"package": every[0]["name"]}]))
        expected = diff(folder / "both.db", "v1.0", "v1.1", **narrowing)
        found = diff_databases(folder / "v1.0.db", folder / "v1.1.db", **narrowing)
        apart = found.releases["develop"]
        assert replace(apart, old="v1.0", new="v1.1").as_dict() == expected.as_dict()
        assert found.is_empty == expected.is_empty
