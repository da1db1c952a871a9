"""build.merge, numbering, counting and rows: many units, one database."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build, check
from spack_cache_db.sources import units
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash, write

RELEASES = ("develop", "v0.20", "develop-2025-01-01", "develop-2025-02-02")
PAGES = st.dictionaries(
    st.tuples(st.sampled_from(RELEASES), st.sampled_from(["zlib", "zstd"])),
    st.dictionaries(
        st.integers(1, 4),
        st.tuples(
            st.sampled_from(["zen3", "x86_64_v3"]),
            st.sets(st.sampled_from(["a", "b", "root"])),
        ),
        max_size=4,
    ),
    min_size=1,
    max_size=6,
)
Listings = dict[tuple[str, str], dict[int, tuple[str, set[str]]]]


def texts(pages: Listings) -> dict[str, bytes]:
    """Return pages; a spec's number depends on its package, for hashes are not shared."""
    return {
        f"{release}.{package}": page(
            package,
            release,
            [
                spec(
                    number + 100 * len(package) * (package == "zstd"),
                    target=target,
                    stacks=sorted(stacks),
                )
                for number, (target, stacks) in listed.items()
            ],
        )
        for (release, package), listed in pages.items()
    }


def order(release: str) -> int:
    """Return a release's place: the foremost decides what a spec is."""
    return ("develop", "v0.20", "develop-2025-02-02", "develop-2025-01-01").index(release)


@settings(max_examples=40, deadline=None)
@given(pages=PAGES)
def test_every_count_is_that_of_plain_python(
    pages: Listings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also where one hash has two configurations, or other stacks in other releases."""
    folder = tmp_path_factory.mktemp("counts")
    build([str(write(folder / "pages", **texts(pages)))], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    target: dict[tuple[str, int], str] = {}
    stacks: dict[tuple[str, int], set[str]] = defaultdict(set)
    releases: dict[tuple[str, int], set[str]] = defaultdict(set)
    for (release, package), listed in sorted(pages.items(), key=lambda item: order(item[0][0])):
        for number, (found, names) in listed.items():
            target.setdefault((package, number), found)
            stacks[package, number] |= names
            releases[package, number].add(release)
    rows = connection.execute(
        "SELECT package, target, stacks, releases, first_seen, last_seen FROM builds"
    ).fetchall()
    dates = {
        key: sorted(name[8:] for name in names if name.startswith("develop-"))
        for key, names in releases.items()
    }
    assert Counter(rows) == Counter(
        (
            package,
            target[package, number],
            json.dumps(sorted(stacks[package, number] - {"root"}), separators=(",", ":")),
            len(releases[package, number]),
            *(dates[package, number][at] if dates[package, number] else None for at in (0, -1)),
        )
        for package, number in target
    )
    facets: Counter[tuple[str | None, str, str]] = Counter()
    for (release, _), listed in pages.items():
        for found, names in listed.values():
            facets.update([(release, "targets", found), *((release, "stacks", n) for n in names)])
    for key, found in target.items():
        facets.update([(None, "targets", found), *((None, "stacks", n) for n in stacks[key])])
    counted = connection.execute(
        "SELECT releases.name, facet, value, facet_counts.spec_count FROM facet_counts "
        "LEFT JOIN releases ON releases.id = release WHERE facet IN ('targets', 'stacks')"
    )
    assert {row[:3]: row[3] for row in counted} == dict(facets)
    pairs: Counter[tuple[str, str, str]] = Counter()
    for (release, package), listed in pages.items():
        pairs.update((package, found, release) for found, _ in listed.values())
    counted = connection.execute(
        "SELECT packages.name, targets.name, releases.name, configuration_releases.spec_count "
        "FROM configuration_releases "
        "JOIN configurations ON configurations.id = configuration_releases.configuration "
        "JOIN packages ON packages.id = configurations.package "
        "JOIN targets ON targets.id = configurations.target "
        "JOIN releases ON releases.id = configuration_releases.release"
    )
    assert {row[:3]: row[3] for row in counted} == dict(pairs)
    connection.close()


def test_the_division_into_units_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faults and problems are the same, however the input was divided."""
    pages = {
        "a": page(release="develop", specs=[spec(1)]),
        "b": page(release="develop", specs=[spec(2)]),
        "c": page("zstd", specs=[spec(1, target="zen3")]),
        "d": page(release="v0.20", specs=[spec(1, target="zen4")], meta={"num_specs": 9}),
        "e": b"nothing",
    }
    write(tmp_path, **pages)
    found = []
    for entries_per_unit in (1, 2, 100):
        monkeypatch.setattr(units, "ENTRIES_PER_UNIT", entries_per_unit)
        found.append(check([str(tmp_path)]))
    assert found[0] == found[1] == found[2]
    assert [Path(fault.path).name for fault in found[0][0]] == ["b.md", "c.md", "e.md"]


def test_a_refused_page_leaves_no_trace(tmp_path: Path) -> None:
    """No package, version, stack or spec of it is in the file."""
    pages = {
        "a": page(specs=[spec(1)]),
        "b": page(specs=[spec(2, versions=["9.9"], stacks=["gone"], target="gone", os="gone")]),
    }
    output = tmp_path / "x.db"
    build([str(write(tmp_path / "pages", **pages))], output, keep_going=True)
    connection = sqlite3.connect(output)
    assert connection.execute("SELECT hash, version FROM builds").fetchall() == [
        (spec_hash(1), "1.0")
    ]
    for table in ("versions", "stacks", "targets", "operating_systems"):
        names = {name for (name,) in connection.execute(f"SELECT name FROM {table}")}
        assert not names & {"9.9", "gone"}
    connection.close()


def test_releases_are_numbered_in_their_order(built: Build) -> None:
    """Branch, releases from new to old, snapshots from new to old."""
    names = ["develop", "v0.23.1", "v0.9", "develop-2025-02-02", "develop-2025-01-01", "pr-1"]
    pages = {name: page(release=name, specs=[spec(1)]) for name in sorted(names)}
    rows = built(**pages).execute("SELECT name, position, kind FROM releases ORDER BY position")
    kinds = ["branch", "release", "release", "snapshot", "snapshot", "other"]
    assert rows.fetchall() == [(*each,) for each in zip(names, range(1, 7), kinds, strict=True)]


def test_versions_are_numbered_in_spacks_order(built: Build) -> None:
    """1.10 is newer than 1.9, and develop is newer than any number."""
    ordered = ["1.0", "1.9", "1.10", "1.10.1", "2023.08.25", "develop"]
    specs = [spec(number, versions=[name]) for number, name in enumerate(sorted(ordered))]
    connection = built(a=page(specs=specs))
    rows = connection.execute("SELECT name FROM versions ORDER BY position")
    assert [name for (name,) in rows] == ordered
    assert connection.execute("SELECT newest_version FROM packages").fetchone() == ("develop",)


@pytest.mark.parametrize(
    "specs",
    [
        [spec(1, variants=["a b"]), spec(2, variants=["a", "b"])],
        [spec(1, variants=[]), spec(2, variants=[""])],
        [spec(1, stacks=["a", "b"]), spec(2, stacks=['a","b'])],
        [spec(1, versions=["01"]), spec(2, versions=["1"])],
        [spec(1, compiler="gcc"), spec(2, compiler="none")],
        [spec(1, tarball="x"), spec(2, tarball="y"), spec(3)],
        [
            spec(1, tarball="https://x"),
            spec(
                2,
                tarball="https://x/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
                f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(2)}.spack",
            ),
        ],
    ],
)
def test_what_reads_alike_stays_apart(specs: list[dict[str, Any]], built: Build) -> None:
    """Two things whose texts look the same are two rows."""
    rows = built(a=page(specs=specs)).execute(
        "SELECT hash, version, compiler, tarball, stacks, variants FROM build_listings"
    )
    found = {row[0]: row[1:4] for row in rows}
    assert found == {
        each["hash"]: (each["versions"][0], each["compiler"], each.get("tarball")) for each in specs
    }


def test_a_page_without_specs_is_kept(built: Build) -> None:
    """The package has a page, and nothing else."""
    connection = built(a=page(specs=[]))
    assert connection.execute("SELECT spec_count FROM pages").fetchall() == [(0,)]
    assert connection.execute(
        "SELECT name, spec_count, release_count, newest_version FROM packages"
    ).fetchall() == [("zlib", 0, 1, None)]
    assert connection.execute("SELECT count(*) FROM problems").fetchone() == (0,)


def test_a_hash_in_another_release_is_one_spec(built: Build) -> None:
    """Its stacks are the union, its dates those of the snapshots."""
    connection = built(
        a=page(release="develop", specs=[spec(1, stacks=["a"])]),
        b=page(release="develop-2025-01-01", specs=[spec(1, stacks=["b", "root"])]),
        c=page(release="develop-2025-02-02", specs=[spec(1, stacks=["b"])]),
    )
    assert connection.execute(
        "SELECT stacks, releases, first_seen, last_seen FROM builds"
    ).fetchall() == [('["a","b"]', 3, "2025-01-01", "2025-02-02")]
