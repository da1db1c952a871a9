"""build.counting: every count of the database is that of plain Python."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build
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
    """Return a release's place: the foremost decides what a spec is."""
    return ("develop", "v0.20", "develop-2025-02-02", "develop-2025-01-01").index(release)


@pytest.mark.slow
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


def test_a_page_without_specs_is_kept(built: Build) -> None:
    """The package has a page, and nothing else."""
    connection = built(a=page(specs=[]))
    assert connection.execute("SELECT spec_count FROM pages").fetchall() == [(0,)]
    assert connection.execute(
        "SELECT name, spec_count, release_count, newest_version FROM packages"
    ).fetchall() == [("zlib", 0, 1, None)]
    assert connection.execute("SELECT count(*) FROM problems").fetchone() == (0,)
