"""Since when the versions of a package are there, as a chart and in words."""

from __future__ import annotations

from spack_cache_db.query.connection import read_lookups
from spack_cache_db.site.pages.filters import Filters
from spack_cache_db.site.pages.package import Lane, Timeline, load_package
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash

LISTED = {
    "s-2025-01-05": ("1.9 zen3",),
    "s-2025-01-12": ("1.9 zen3", "1.10 zen3"),
    "s-2025-01-19": ("1.10 zen3", "1.10 aarch64"),
    "s-2025-01-26": ("1.10 zen3", "1.9 aarch64"),
    "v1.0": ("1.8 zen3",),
    "develop": ("1.10 aarch64", "2.0 zen4"),
}
"""The versions and targets that each release has, the oldest first."""


def timeline(built: Build) -> Timeline:
    """Return the timeline of the package."""
    hashes = sorted({text for listed in LISTED.values() for text in listed})
    pages = {
        release: page(
            "zlib",
            release,
            [
                spec(hash=spec_hash(hashes.index(text)), versions=[version], target=target)
                for text in listed
                for version, target in [text.split()]
            ],
        )
        for release, listed in LISTED.items()
    }
    conn = built(**pages)
    found = load_package(read_lookups(conn), "zlib", Filters())
    assert found is not None
    return found.timeline


def test_versions_are_shown_since_when_they_are_there(built: Build) -> None:
    """By family of targets, the newest version first; a gap begins another bar."""
    found = timeline(built)
    assert found.releases == tuple(LISTED)
    assert [each.version for each in found.versions] == ["2.0", "1.10", "1.9", "1.8"]
    assert {each.version: each.lanes for each in found.versions} == {
        "2.0": (Lane("x86_64", ((5, 1),), "develop", None, 1),),
        "1.10": (
            Lane("x86_64", ((1, 3),), "2025-01-12", None, 3),
            Lane("aarch64", ((2, 1), (5, 1)), "2025-01-19", None, 2),
        ),
        "1.9": (
            Lane("x86_64", ((0, 2),), "2025-01-05", "2025-01-12", 2),
            Lane("aarch64", ((3, 1),), "2025-01-26", None, 1),
        ),
        "1.8": (Lane("x86_64", ((4, 1),), "v1.0", "v1.0", 1),),
    }


def test_timeline_says_the_same_in_words(built: Build) -> None:
    """What the bars show can be read, family by family where they differ."""
    assert [each.sentence for each in timeline(built).versions] == [
        "2.0 since develop",
        "1.10 since 2025-01-12, on aarch64 since 2025-01-19",
        "1.9 since 2025-01-05, on aarch64 since 2025-01-26, on x86_64 last in 2025-01-12",
        "1.8 since v1.0, last in v1.0",
    ]
