"""build.facet_counts: specs and packages by facet value, counted as plain Python counts them."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build import facet_counts
from spack_cache_db.build.counting import count
from spack_cache_db.build.ids import number
from spack_cache_db.build.merge import Merge
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.readers import read_files
from tests.pagetexts import page, spec

RELEASES = ["develop", "v0.20", "v0.9"]
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
        st.tuples(st.sampled_from(RELEASES), st.sampled_from(["zlib", "zstd"])), SPECS, max_size=5
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
        patch.setattr(facet_counts, "RELEASES_AT_ONCE", at_once)
        found = count(number(merged)).facets
    releases = [None, *merged.releases]
    assert {
        (releases[release or 0], facet, value): counts for release, facet, value, *counts in found
    } == {key: [len(specs_of[key]), len(packages_of[key])] for key in specs_of}
    order = [(release or 0, facet, value) for release, facet, value, *_ in found]
    assert order == sorted(order)
