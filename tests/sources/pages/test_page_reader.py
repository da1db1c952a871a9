"""Pages become columns, and each spelling is normalized once."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from spack_cache_db.errors import InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import TABLES, Columns, PageFacts, Tarball, Writer
from spack_cache_db.sources.pages.page_format import Json, SpecDetail
from spack_cache_db.sources.pages.page_parser import parse_page, read_details
from spack_cache_db.sources.pages.page_reader import (
    PageReader,
    as_set,
    kept_variant,
    normal_configuration,
)
from spack_cache_db.spack.normal_forms import readable_variant
from tests.pagetexts import MORE_SAMPLES, page, spec, spec_hash

PREFIX = "https://example.org/v1"
ARCH = "linux-ubuntu24.04-x86_64_v3"


def columns(*pages: bytes) -> Columns:
    """Read pages."""
    writer = Writer()
    reader = PageReader(writer)
    for number, data in enumerate(pages):
        reader.add(RawFile(f"in/{number}.md", f"{number}.md", data))
    return writer.columns


def derived(number: int, compiler: str = "gcc-13.2.0") -> str:
    """Return the URL that the layout of mirrors gives to a spec."""
    return (
        f"{PREFIX}/build_cache/{ARCH}/{compiler}/zlib-1.0/"
        f"{ARCH}-{compiler}-zlib-1.0-{spec_hash(number)}.spack"
    )


def test_what_is_said_twice_is_held_once() -> None:
    """Specs, configurations and stack sets of several pages share their texts."""
    found = columns(
        page(release="develop", specs=[spec(1), spec(2, stacks=["root", "e4s"])]),
        page(release="v0.20", specs=[spec(1), spec(3, target="zen3")]),
    )
    listings = found.tables["listings"]
    assert found.things["hashes"] == [spec_hash(1), spec_hash(2), spec_hash(3)]
    assert [each.target for each in found.things["configurations"]] == ["x86_64_v3", "zen3"]
    assert found.things["stack_sets"] == [("e4s", "root")]
    assert [*listings["spec"]] == [1, 2, 1, 3]
    assert [*listings["configuration"]] == [1, 1, 1, 2]
    assert [*listings["document"]] == [1, 1, 2, 2]
    assert [*listings["stacks"]] == [1] * 4


def test_a_page_is_a_document() -> None:
    """With where it lies, its release, its package and its era."""
    (found,) = columns(page("zlib", "v0.20")).documents
    assert (found.location, found.path, found.release) == ("in/0.md", "0.md", "v0.20")
    assert (found.page, found.problems) == (PageFacts("zlib", "A"), ())


def test_two_spellings_of_one_thing_are_one() -> None:
    """`gcc@=13.2.0` of then is `gcc@13.2.0` of now."""
    then = spec(2, compiler="gcc@=13.2.0", variants=["~cuda", "build_system=cmake"])
    found = columns(page(specs=[spec(1), then]))
    assert len(found.things["configurations"]) == 1
    assert [*found.tables["listings"]["configuration"]] == [1, 1]


def test_one_spelling_in_two_packages_is_two_configurations() -> None:
    """The package is the page's, not the detail's."""
    found = columns(page("zlib", specs=[spec(1)]), page("zstd", specs=[spec(2)]))
    assert [each.package for each in found.things["configurations"]] == ["zlib", "zstd"]


def changed(detail: SpecDetail, field: str) -> SpecDetail:
    """Return a detail that says something else in one field."""
    value = getattr(detail, field)
    if field == "hash":
        return replace(detail, hash=spec_hash(3))
    if field == "versions":
        return replace(detail, versions=("2.0",))
    return replace(detail, **{field: (*value, "x=y") if isinstance(value, tuple) else f"{value}x"})


def resolved(found: Columns) -> list[tuple[object, ...]]:
    """Return what each listing says, in texts."""
    columns = [
        [
            [None, *found.things[str(meaning.of)]][number]
            for number in found.tables["listings"][name]
        ]
        for name, meaning in TABLES["listings"].items()
        if name != "document"
    ]
    return [*zip(*columns, strict=True)]


@pytest.mark.parametrize("field", SpecDetail.__struct_fields__)
def test_every_field_of_a_detail_reaches_the_columns(field: str) -> None:
    """Two listings that differ in one field are two in the columns: nothing takes one for both."""
    sound = parse_page(RawFile("a", "a", page(specs=[spec(1, size="1", tarball="x")])))
    (one,) = read_details(sound)
    other = changed(one, field)
    if field != "hash":
        other = replace(other, hash=spec_hash(2))
    both = [msgspec.to_builtins(each) for each in (one, other)]
    # The second form is not as pages write it.
    for written in (json.dumps(both), json.dumps(both, indent=1)):
        writer = Writer()
        text = Json(written.encode(), 6)
        PageReader(writer).keep(replace(sound, spec_details=text))
        said = resolved(writer.columns)
        # The first is the hash.
        assert (said[0][1:] != said[1][1:]) == (field != "hash")
        assert said[0] != said[1]


def test_a_size_that_is_not_known_is_none() -> None:
    """Pages print a dash for it."""
    found = columns(page(specs=[spec(1), spec(2, size="1 MB"), spec(3, size="")]))
    sizes = [*found.tables["listings"]["size"]]
    assert (found.things["sizes"], sizes) == (["1 MB", ""], [0, 1, 2])


def test_a_url_of_the_usual_layout_is_held_by_its_prefix() -> None:
    """The rest follows from the spec; `gcc@=13.2.0` is spelled `gcc-13.2.0` there."""
    specs = [spec(1, tarball=derived(1)), spec(2, compiler="gcc@=13.2.0", tarball=derived(2))]
    found = columns(page(specs=[*specs, spec(3)]))
    assert found.things["tarballs"] == [Tarball(PREFIX, is_whole=False)]
    assert [*found.tables["listings"]["tarball"]] == [1, 1, 0]


def test_the_urls_of_a_real_page_share_one_prefix() -> None:
    """All those of the sample of 2023 follow the layout."""
    found = columns((MORE_SAMPLES / "v0.18" / "axl" / "specs.md").read_bytes())
    assert found.things["tarballs"] == [
        Tarball("https://binaries.spack.io/releases/v0.18", is_whole=False)
    ]


def test_a_page_that_cannot_be_kept_leaves_only_its_fault() -> None:
    """Its neighbours are whole."""
    writer = Writer()
    reader = PageReader(writer)
    bad = page(release="v0.1", specs=[spec(7), spec(8, versions=["1", "2"])])
    reader.add(RawFile("0.md", "0.md", page(specs=[spec(1)])))
    with pytest.raises(InputError) as caught:
        reader.add(RawFile("1.md", "1.md", bad))
    reader.add(RawFile("2.md", "2.md", page(release="v0.2", specs=[spec(2)])))
    assert str(caught.value) == f"1.md:6: the spec {spec_hash(8)} has 2 versions, expected one"
    found = writer.columns
    assert [each.path for each in found.documents] == ["0.md", "2.md"]
    assert [each[0] for each in resolved(found)] == [spec_hash(1), spec_hash(2)]
    assert [*found.tables["listings"]["document"]] == [1, 2]


TEXTS = st.lists(st.text(max_size=4), unique=True, max_size=5)


def configuration(**changes: Any) -> Configuration:
    """Return the normal configuration of a spec with these changes."""
    return normal_configuration("zlib", msgspec.convert(spec(**changes), SpecDetail))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"compiler": "gcc@=13.2.0"}, {"compiler": "gcc@13.2.0"}),
        ({"compiler": "gcc@13.2.0/abcdefg"}, {"compiler": "gcc@13.2.0"}),
        ({"variants": ["libs:=static,shared"]}, {"variants": ["libs=shared,static"]}),
        ({"variants": ["patches:=cc8ac22"]}, {"variants": ["patches=cc8ac22"]}),
        ({"variants": ["~ipo", "+cuda"]}, {"variants": ["+cuda", "~ipo"]}),
    ],
)
def test_two_spellings_are_one_configuration(
    then: dict[str, object], now: dict[str, object]
) -> None:
    """The same thing in two eras."""
    assert configuration(**then) == configuration(**now)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"compiler": "gcc@13.2.0"}, {"compiler": "gcc@13.2"}),
        ({"compiler": "none"}, {"compiler": "gcc"}),
        ({"variants": ["+cuda"]}, {"variants": ["~cuda"]}),
        ({"variants": ["a b"]}, {"variants": ["a", "b"]}),
        ({"variants": []}, {"variants": [""]}),
        ({"variants": ["x=True"]}, {"variants": ["+x"]}),
        ({"os": "rhel8"}, {"os": "RHEL8"}),
        ({"versions": ["1.0"]}, {"versions": ["1.00"]}),
    ],
)
def test_other_things_stay_apart(one: dict[str, object], other: dict[str, object]) -> None:
    """Nothing is made equal that the pages tell apart."""
    assert configuration(**one) != configuration(**other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"versions": []}, "has 0 versions, expected one"),
        ({"versions": ["1", "2"]}, "has 2 versions, expected one"),
        ({"variants": ["+a", "+a"]}, r"lists the variant '\+a' twice, expected once"),
        ({"variants": ["a=x", "a:=x"]}, "lists the variant 'a=x' twice, expected once"),
        ({"compiler": ""}, "'' is not a compiler"),
        ({"compiler": "gcc@"}, "'gcc@' is not a compiler"),
    ],
)
def test_what_a_row_cannot_hold_is_refused(changes: dict[str, object], message: str) -> None:
    """Rather than dropped."""
    with pytest.raises(ValueError, match=message):
        configuration(**changes)


@given(TEXTS)
def test_a_set_has_one_order(texts: list[str]) -> None:
    """Sorted, with every member, whatever the order of the page."""
    assert as_set("stack", reversed(texts)) == as_set("stack", texts)
    assert sorted(as_set("stack", texts)) == sorted(texts)


@given(TEXTS.filter(bool))
def test_a_set_refuses_what_stands_twice(texts: list[str]) -> None:
    """A set cannot give it back."""
    with pytest.raises(ValueError, match="twice, expected once"):
        as_set("stack", [*texts, texts[0]])


@given(st.text(max_size=12))
def test_normal_text_is_its_own_normal_form(text: str) -> None:
    """Applied twice it changes nothing more; what is no variant stays as it is."""
    assert kept_variant(kept_variant(text)) == kept_variant(text)
    if readable_variant(text) is None:
        assert kept_variant(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(1)"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: {"versions": [text]},
        lambda text: {"os": text},
        lambda text: {"target": text},
        lambda text: {"platform": text},
        lambda text: {"compiler": text},
        lambda text: {"stacks": [text]},
        lambda text: {"size": text},
        lambda text: {"tarball": text},
        lambda text: {"variants": [f"{text}|cmd"]},
    ],
)
def test_no_text_of_a_page_is_a_formula(change: Any, text: str) -> None:
    """A spreadsheet runs a cell of CSV that begins so; `+name` and the size `-` are none."""
    with pytest.raises(InputError) as error:
        columns(page(specs=[spec(**change(text))]))
    assert text[0] in str(error.value)
