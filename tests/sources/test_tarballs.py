"""sources.tarballs: of a URL, only that is stored which nothing else gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.columns import TarballParts, tarball_suffix, tarball_url
from tests.configurations import configuration
from tests.pagetexts import spec_hash

SPECS = (
    configuration(version="1.3"),
    configuration(package="aida", version="3", compiler="none", variants=("+x",)),
)
MIRROR = "https://example.org/v1"


def usual(mirror: str, at: int, number: int) -> str:
    """Return the URL of a spec in a mirror of the usual layout."""
    return f"{mirror}{tarball_suffix(SPECS[at])}{spec_hash(number)}.spack"


URLS = st.one_of(
    st.builds(usual, st.sampled_from(["", MIRROR, "s3://m"]), st.integers(0, 1), st.integers(0, 2)),
    st.sampled_from(["", MIRROR, "x.spack"]),
)


@pytest.mark.slow
@given(st.lists(st.tuples(URLS, st.integers(0, 1), st.integers(0, 2))))
def test_every_url_can_be_put_together_again(asked: list[tuple[str, int, int]]) -> None:
    """In whatever order they come, and whatever was seen before."""
    parts = TarballParts(SPECS)
    for url, at, number in asked:
        split = parts.split(url, at + 1, spec_hash(number))
        assert tarball_url(split, SPECS[at], spec_hash(number)) == url
        assert split.is_whole == (usual("", at, number) != url[-len(usual("", at, number)) :])
