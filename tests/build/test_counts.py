"""build.counts: every count of the database is that of plain Python."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build, counts
from spack_cache_db.build.counts import count
from spack_cache_db.build.ids import number as numbered
from spack_cache_db.build.merge import Merge
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.readers import read_files
from tests import contradictions
from tests.conftest import Build
from tests.pagetexts import page, spec, write

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
    """Return the rank of a release: the first one decides the configuration of a hash."""
    return ("develop", "v0.20", "develop-2025-02-02", "develop-2025-01-01").index(release)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(pages=PAGES)
def test_every_count_is_that_of_plain_python(
    pages: Listings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also if pages name two configurations for one hash, or other stacks in other releases."""
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
    for (release, package), listed in pages.items():
        for number, (_, names) in listed.items():
            first = target[package, number]
            facets.update([(release, "targets", first), *((release, "stacks", n) for n in names)])
    for key, found in target.items():
        facets.update([(None, "targets", found), *((None, "stacks", n) for n in stacks[key])])
    counted = connection.execute(
        "SELECT releases.name, facet, value, facet_counts.spec_count FROM facet_counts "
        "LEFT JOIN releases ON releases.id = release WHERE facet IN ('targets', 'stacks')"
    )
    assert {row[:3]: row[3] for row in counted} == dict(facets)
    pairs: Counter[tuple[str, str, str]] = Counter()
    for (release, package), listed in pages.items():
        pairs.update((package, target[package, number], release) for number in listed)
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


def test_a_page_without_specs_is_kept(built: Build) -> None:
    """The package has a page, and nothing else."""
    connection = built(a=page(specs=[]))
    assert connection.execute("SELECT spec_count FROM pages").fetchall() == [(0,)]
    assert connection.execute(
        "SELECT name, spec_count, release_count, newest_version FROM packages"
    ).fetchall() == [("zlib", 0, 1, None)]
    assert connection.execute("SELECT count(*) FROM problems").fetchone() == (0,)


FACET_RELEASES = ["develop", "v0.20", "v0.9"]
SPECS = st.dictionaries(
    st.integers(1, 5),
    st.tuples(
        st.sampled_from(["1.0", "1.10"]),
        st.sampled_from(["none", "gcc@13.2.0"]),
        st.sampled_from(["ubuntu24.04", "rhel8"]),
        st.sampled_from(["linux", "darwin"]),
        st.sampled_from(["zen3", "aarch64"]),
        st.lists(st.sampled_from("ab"), unique=True),
    ),
    max_size=4,
)
Pages = dict[tuple[str, str], dict[int, tuple[str, str, str, str, str, list[str]]]]
FACETS = ("versions", "compilers", "oss", "platforms", "targets")


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 8])
@given(
    whole=st.dictionaries(
        st.tuples(st.sampled_from(FACET_RELEASES), st.sampled_from(["zlib", "zstd"])),
        SPECS,
        max_size=5,
    )
)
def test_every_value_is_counted(whole: Pages, at_once: int) -> None:
    """In each release and in all of them, however many releases are counted at once."""
    files, rows = [], []
    taken: dict[int, tuple[str, str, str, str, str]] = {}
    for (release, package), listed in sorted(whole.items(), key=lambda item: item[0]):
        specs = []
        for small, (version, compiler, os, platform, target, stacks) in listed.items():
            key = small + 10 * (package == "zstd")
            # One hash has one configuration: where it disagrees is tested elsewhere.
            values = taken.setdefault(key, (version, compiler, os, platform, target))
            names = zip(("versions", "compiler", "os", "platform", "target"), values, strict=True)
            changes = {name: [value] if name == "versions" else value for name, value in names}
            specs.append(spec(key, stacks=stacks, **changes))
            rows.append((release, package, key, values, stacks))
        files.append(RawFile(f"{release}{package}", "x", page(package, release, specs)))
    specs_of: dict[tuple[str | None, str, str], set[int]] = defaultdict(set)
    packages_of: dict[tuple[str | None, str, str], set[str]] = defaultdict(set)
    for release, package, key, values, stacks in rows:
        for where in (release, None):
            pairs = [*zip(FACETS, values, strict=True), *(("stacks", each) for each in stacks)]
            for pair in pairs:
                specs_of[where, *pair].add(key)
                packages_of[where, *pair].add(package)
    merge = Merge()
    merge.add(read_files(files))
    merged = merge.merged()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "RELEASES_AT_ONCE", at_once)
        found = count(numbered(merged)).facets
    releases = [None, *merged.releases]
    assert {
        (releases[release or 0], facet, value): counts for release, facet, value, *counts in found
    } == {key: [len(specs_of[key]), len(packages_of[key])] for key in specs_of}
    order = [(release or 0, facet, value) for release, facet, value, *_ in found]
    assert order == sorted(order)


SHOWN = """
SELECT release, configurations.package, shown.spec_count, configurations.version
FROM configuration_releases AS shown
JOIN configurations ON configurations.id = shown.configuration
"""


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=contradictions.listings())
def test_what_each_release_has_of_each_package(drawn: list[contradictions.Listing]) -> None:
    """The sums over configurations, and the version that Spack prefers (the largest id)."""
    with contradictions.opened(drawn) as conn:
        shown: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for release, package, *of_configuration in conn.execute(SHOWN):
            shown[release, package].append(tuple(of_configuration))
        expected = [
            (*key, len(some), sum(specs for specs, _ in some), max(version for _, version in some))
            for key, some in sorted(shown.items())
        ]
        assert conn.execute("SELECT * FROM release_packages").fetchall() == expected
