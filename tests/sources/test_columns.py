"""sources.columns: each text once, each listing five numbers."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from spack_cache_db.errors import Fault
from spack_cache_db.sources.columns import Columns, Tarball, tarball_suffix, to_columns
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.normal import normal_configuration
from spack_cache_db.sources.pages.parse import parse_page
from spack_cache_db.sources.pages.records import Page
from tests.pagetexts import MORE_SAMPLES, page, spec, spec_hash

PREFIX = "https://example.org/v1"
ARCH = "linux-ubuntu24.04-x86_64_v3"


def parsed(data: bytes, name: str = "a.md") -> Page:
    """Parse a page."""
    return parse_page(RawFile(name, name, data))


def columns(pages: Iterable[bytes]) -> Columns:
    """Collect pages."""
    return to_columns(parsed(data, f"{number}.md") for number, data in enumerate(pages))


def derived(number: int, compiler: str = "gcc-13.2.0") -> str:
    """Return the URL that the layout of mirrors gives to a spec."""
    return (
        f"{PREFIX}/build_cache/{ARCH}/{compiler}/zlib-1.0/"
        f"{ARCH}-{compiler}-zlib-1.0-{spec_hash(number)}.spack"
    )


def test_what_is_said_twice_is_held_once() -> None:
    """Specs, configurations, stack sets and sizes of several pages share their texts."""
    found = columns(
        [
            page(release="develop", specs=[spec(1), spec(2, stacks=["root", "e4s"])]),
            page(release="v0.20", specs=[spec(1), spec(3, target="zen3")]),
        ]
    )
    assert found.hashes == [spec_hash(1), spec_hash(2), spec_hash(3)]
    assert [each.target for each in found.configurations] == ["x86_64_v3", "zen3"]
    assert (found.stack_sets, found.sizes, found.tarballs) == ([("e4s", "root")], ["-"], [])
    assert [*found.spec] == [0, 1, 0, 2]
    assert [*found.configuration] == [0, 0, 0, 1]
    assert {*found.stacks, *found.size, *found.tarball} == {0}
    assert [(each.release, each.start, each.spec_count) for each in found.pages] == [
        ("develop", 0, 2),
        ("v0.20", 2, 2),
    ]


def test_two_spellings_of_one_thing_are_one() -> None:
    """`gcc@=13.2.0` of then is `gcc@13.2.0` of now."""
    then = spec(2, compiler="gcc@=13.2.0", variants=["~cuda", "build_system=cmake"])
    found = columns([page(specs=[spec(1), then])])
    assert len(found.configurations) == 1
    assert [*found.configuration] == [0, 0]


def test_a_url_of_the_usual_layout_is_held_by_its_prefix() -> None:
    """The rest follows from the spec; `gcc@=13.2.0` is spelled `gcc-13.2.0` there."""
    specs = [spec(1, tarball=derived(1)), spec(2, compiler="gcc@=13.2.0", tarball=derived(2))]
    found = columns([page(specs=[*specs, spec(3)])])
    assert found.tarballs == [Tarball(PREFIX, is_whole=False)]
    assert [*found.tarball] == [1, 1, 0]


@pytest.mark.parametrize(
    "url", ["", "https://example.org/x.spack", derived(2), derived(1) + "x", derived(1, "gcc-1")]
)
def test_any_other_url_is_held_whole(url: str) -> None:
    """Nothing is guessed of a URL that is not of the usual layout."""
    found = columns([page(specs=[spec(1, tarball=url)])])
    assert found.tarballs == [Tarball(url, is_whole=True)]


def test_the_urls_of_a_real_page_share_one_prefix() -> None:
    """All those of the sample of 2023 follow the layout."""
    data = (MORE_SAMPLES / "v0.18" / "axl" / "specs.md").read_bytes()
    found = columns([data])
    assert found.tarballs == [Tarball("https://binaries.spack.io/releases/v0.18", is_whole=False)]
    first = parsed(data).details[0]
    suffix = tarball_suffix(normal_configuration("axl", first))
    assert f"https://binaries.spack.io/releases/v0.18{suffix}{first.hash}.spack" == first.tarball


def test_a_page_that_cannot_be_kept_leaves_only_its_fault() -> None:
    """Its neighbours are whole, and the slices of listings still fit."""
    bad = page(release="v0.1", specs=[spec(7), spec(8, versions=["1", "2"])])
    found = columns([page(specs=[spec(1)]), bad, page(release="v0.2", specs=[spec(2)])])
    assert found.faults == [
        Fault("1.md", 6, f"the spec {spec_hash(8)} has 2 versions, expected one")
    ]
    assert [(each.path, each.start, each.spec_count) for each in found.pages] == [
        ("0.md", 0, 1),
        ("2.md", 1, 1),
    ]
    assert [found.hashes[at] for at in found.spec] == [spec_hash(1), spec_hash(2)]


def test_faults_of_earlier_stages_are_passed_on() -> None:
    """A fault is no page."""
    fault = Fault("x", 0, "is missing")
    assert to_columns([fault]) == Columns(faults=[fault])
