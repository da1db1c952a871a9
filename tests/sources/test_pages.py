"""sources.pages: sound pages become columns; every other page is refused with a
line.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from spack_cache_db.errors import InputError, LineFault, faults_of
from spack_cache_db.model import Problem
from spack_cache_db.sources.bounds import MAX_NAME, MAX_TEXT, MAX_TEXTS
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages import front_matter
from spack_cache_db.sources.pages.checks import (
    computed_meta,
    declared_meta,
    normal_configuration,
)
from spack_cache_db.sources.pages.front_matter import (
    Entry,
    Page,
    parse_page,
    read_front_matter,
)
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Writer
from tests.pagetexts import (
    MORE_SAMPLES,
    SAMPLE_PAGES,
    meta_of,
    page,
    page_of,
    spec,
    spec_hash,
)

SPEC = spec_hash(1)
META = json.dumps(meta_of([spec()]))
DETAILS = json.dumps([spec()])


def parse(data: bytes) -> Page:
    """Parse a page."""
    with faults_of("in/a.md"):
        return parse_page(RawFile("in/a.md", "a.md", data))


def fault(data: bytes) -> str:
    """Return the one fault of a page, from its line on."""
    with pytest.raises(InputError) as caught, faults_of("in/a.md"):
        PageReader(Writer()).add(parse(data))
    (only,) = caught.value.faults
    return str(only).removeprefix("in/a.md:")


def test_an_entry_may_go_on_over_several_lines() -> None:
    """Lists in block style, JSON over lines, blank lines and comments belong to the key
    above.
    """
    categories = b"categories:\n- package\n# a word\n\n- develop\n"
    meta = b'meta: {"a":\n 1\n}\n'
    rest = b"spec_details: []\nlayout: cache\ntitle: 1.10\n---"
    assert read_front_matter(b"---\n" + categories + meta + rest) == {
        "categories": Entry(2, ["package", "develop"]),
        "meta": Entry(7, b'{"a":\n 1\n}'),
        "spec_details": Entry(10, b"[]"),
        "layout": Entry(11, "cache"),
        "title": Entry(12, "1.10"),
    }


NOT_CLOSED = "the front matter is not closed, expected a second line ---"
NOT_OPENED = "no front matter, expected --- on the first line"
NO_COLON = "broken YAML: could not find expected ':'"
NO_END = "broken YAML: found unexpected end of stream"


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b" \n\n", 0, "the file is empty, expected a page that starts with ---"),
        (b"---", 1, NOT_CLOSED),
        (b"---\n", 1, NOT_CLOSED),
        (b"---\ntitle: 1\n----\n", 1, NOT_CLOSED),
        (b"--- x\ntitle: 1\n---\n", 1, NOT_OPENED),
        (b"\n---\ntitle: 1\n---\n", 1, NOT_OPENED),
        (b"\xef\xbb\xbf---\n---", 1, NOT_OPENED),
        (b"---\ntitle: 1\nb: \0\n---", 3, "a NUL byte, expected UTF-8 text"),
        (
            b"---\ntitle: 1\nb: \xe9\n---",
            3,
            "not UTF-8: byte 0xe9, expected UTF-8 text",
        ),
        (
            b"---\ntitle: 1\n---\n\ntext",
            4,
            "text after the front matter, expected none",
        ),
        (
            b"---\ntitle: 1\nlayout: 2\ntitle: 1\n---",
            4,
            "the key title is listed twice, first on",
        ),
        (
            b"---\ntitle: 1\nb\n---",
            3,
            "broken YAML: this is not one entry, expected `key: value`",
        ),
        (b"---\n{title: 1, layout: 2}\n---", 2, "broken YAML: this is not one entry"),
        (b"---\n title: 1\n layout: 2\n---", 2, "broken YAML: this is not one entry"),
        (b"---\na: 'x\n---", 2, NO_END),
        (b"---\ntitle: 1\na: *x\n---", 3, "broken YAML: found undefined alias"),
        (
            b'---\na: "\\ud800"\n---',
            2,
            "broken YAML: found invalid Unicode character escape",
        ),
        (
            b"---\ntitle: 1\n---\nb: 2\n---",
            3,
            "broken YAML: but found another document",
        ),
        (b"---\ntitle: \r.\n---", 2, NO_COLON),
        ("---\na: \u2028.\nb: 1\n---".encode(), 2, NO_COLON),
        (b"---\r\ntitle: 1\r\nb: 'x\r\n---\r\n", 3, NO_END),
        (b"---\n\xef\xbb\xbfa: 'x\n---", 2, NO_END),
        (
            b"---\n\ta: 1\n---",
            2,
            "broken YAML: found character that cannot start any token",
        ),
        (
            b"---\ntitle: " + b"[" * 40 + b"]" * 40 + b"\n---",
            2,
            "is nested more than 32 levels",
        ),
        (
            b"---\ntitle: '" + b"a" * 2**14 + b"'\n---",
            2,
            "this entry has more than 16,384 bytes",
        ),
    ],
)
def test_the_first_fault_of_a_front_matter_has_a_line(
    data: bytes, line: int, message: str
) -> None:
    """Also for what only YAML takes for the end of a line."""
    with pytest.raises(LineFault) as caught:
        read_front_matter(data)
    assert (caught.value.line, caught.value.message[: len(message)]) == (line, message)


@pytest.mark.parametrize(
    "key", [b'"title"', b"'title'", b"!!str title", b"&x title", b"title "]
)
def test_a_small_key_may_be_spelled_as_yaml_allows(key: bytes) -> None:
    """However a key is written, it is read; twice the same key is refused."""
    with pytest.raises(
        LineFault, match="the key title is listed twice, first on line 2"
    ) as caught:
        read_front_matter(b"---\n" + key + b": 2\ntitle: 1\n---")
    assert caught.value.line == 3


LINE_BREAKS = ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"]
"""The last three are line breaks only in YAML."""
WORDS = ["---", "...", "title", "meta", "spec_details", "categories", "x", "é"]
SIGNS = [": ", ":", "- ", "? ", ", ", "#", "<<", "'", '"', "{", "}", "[", "]", "{}"]
YAML_SIGNS = ["&a", "*a", "!!str ", "|", ">", "%", "\\"]
OTHER_CHARACTERS = ["\t", " ", "\ufeff", "\x07", "\0"]
PIECES = [*LINE_BREAKS, *WORDS, *SIGNS, *YAML_SIGNS, *OTHER_CHARACTERS]


def joined(pieces: list[str]) -> bytes:
    """Return pieces of a front matter as bytes."""
    return "".join(pieces).encode()


@given(
    data=st.binary(max_size=60)
    | st.lists(st.sampled_from(PIECES), max_size=20).map(joined)
)
@example(data=b"\r.")
def test_any_bytes_give_entries_or_a_fault(data: bytes) -> None:
    """Nothing else is ever raised, and a fault names a line that the file has."""
    for text in (data, b"---\n" + data + b"\n---", b"---\ntitle: " + data + b"\n---"):
        lines = len(text.removesuffix(b"\n").split(b"\n"))
        try:
            front = read_front_matter(text)
        except LineFault as error:
            assert 0 <= error.line <= lines
        else:
            assert all(1 < entry.line < lines for entry in front.values())


@given(st.data())
def test_a_page_that_lost_its_end_is_never_whole(data: st.DataObject) -> None:
    """Cut anywhere, a page is refused."""
    whole = page()
    with pytest.raises(LineFault):
        read_front_matter(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize("spelling", ['"{}"', "'{}'", "{} ", "&x {}", "!!str {}"])
@pytest.mark.parametrize(("key", "line"), [("meta", 5), ("spec_details", 6)])
def test_a_big_key_is_spelled_in_one_way(key: str, line: int, spelling: str) -> None:
    """YAML would read the same key, but its value is JSON to a decoder in the one
    spelling only.
    """
    data = page().replace(f"\n{key}:".encode(), f"\n{spelling.format(key)}:".encode())
    assert (
        fault(data)
        == f"{line}: {key} is not plain JSON, expected a line `{key}: ` and JSON"
    )


@pytest.mark.parametrize(
    ("name", "can_be_release", "can_be_package"),
    [
        ("py-torch", True, True),
        ("builtin.zlib", True, True),
        ("a" * 100, True, True),
        ("a" * 101, False, False),
        ("a b", True, False),
        ("../x", True, False),
        ("é", True, False),
        ("--help", False, False),
        (" a", False, False),
        ("a\\nb", False, False),
        ("a\u202eb", False, False),
    ],
)
def test_names_stand_in_lists_and_commands(
    name: str, can_be_release: bool, can_be_package: bool
) -> None:
    """A release is any printable text that is no option; a package is a name that Spack
    reads.
    """
    of_package = page(package=name)
    if can_be_package:
        assert parse(of_package).package == name
    else:
        assert_name_is_refused(of_package, line=2)

    of_release = page(release=f'"{name}"')
    if can_be_release:
        assert parse(of_release).document.release == name
    else:
        assert_name_is_refused(of_release, line=4)


def assert_name_is_refused(data: bytes, line: int) -> None:
    """Check that the fault of a page is the name on a line."""
    message = fault(data)
    assert message.startswith(f"{line}: ")
    assert "name: at most 100" in message


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner)
    ),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    key=st.sampled_from([*spec(), "tarball", "other"]),
    value=VALUES,
    meta_key=st.sampled_from([*meta_of([]), "other"]),
    meta_value=VALUES,
    remove=st.booleans(),
)
def test_any_value_of_any_key_is_read_or_refused(
    key: str, value: Any, meta_key: str, meta_value: Any, remove: bool
) -> None:
    """A page gives a record with the same value, or faults; nothing else is ever
    raised.
    """
    detail = spec(**{key: value})
    if remove:
        del detail[key]
    meta = meta_of([spec()]) | {meta_key: meta_value}
    data = page_of("zlib", "develop", json.dumps(meta), json.dumps([detail]))
    try:
        parsed = parse(data)
    except InputError as error:
        (only,) = error.faults
        assert only.line in (5, 6)
        return
    assert json.loads(json.dumps(getattr(parsed.meta, meta_key))) == meta_value
    read_value = getattr(parsed.details[0], key, UNSET)
    if remove:
        assert read_value is UNSET
    else:
        assert json.loads(json.dumps(read_value)) == value


def test_a_page_has_its_keys_and_no_others() -> None:
    """The first fault is reported, an unknown key with its line."""
    keys = "categories, layout, meta, spec_details, title"
    missing = f"1: the key categories is missing, expected {keys}"
    assert fault(b"---\ntitle: a\nlayout: cache\n---") == missing
    unknown = f"3: unknown key other, expected only {keys}"
    assert fault(page().replace(b"layout:", b"other: 1\nlayout:")) == unknown


@pytest.mark.parametrize(
    ("meta", "details", "expected"),
    [
        ("[]", DETAILS, "5: meta: Expected `object`, got `array`"),
        (
            "\n {\n x",
            DETAILS,
            "5: meta: JSON is malformed: object keys must be strings",
        ),
        (META, "{}", "6: spec_details: Expected `array`, got `object`"),
        (META, "[[]]", "6: spec_details: Expected `object`, got `array` - at `$[0]`"),
        (META, "", "6: spec_details: Input data was truncated"),
        (
            META,
            DETAILS + "x",
            "6: spec_details: JSON is malformed: trailing characters",
        ),
        (
            META,
            '[{"hash": NaN}]',
            "6: spec_details: JSON is malformed: invalid character",
        ),
        # Values are counted before they are made, bytes before they are copied.
        (
            META,
            "[" + "[]," * 250_000 + "[]]",
            "6: spec_details has about 500,002 values",
        ),
        (
            META,
            '[{"a":' + "0," * 500_000 + "0}]",
            "6: spec_details has about 500,002 values",
        ),
        (
            '{"oss":["' + "a" * 2_000_000 + "," * 500_001,
            "[]",
            "5: meta has about 500,003 values",
        ),
        (
            META,
            '["' + "a" * 2**24 + '"]',
            "6: spec_details has more than 16,777,216 bytes",
        ),
    ],
    ids=range(11),
)
def test_other_json_is_refused(meta: str, details: str, expected: str) -> None:
    """With the line of the key, before it fills the memory."""
    assert fault(page_of("zlib", "develop", meta, details)).startswith(expected)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"os": None}, "spec_details: Expected `str`, got `null` - at `$[0].os`"),
        ({"size": 7}, "spec_details: Expected `str`, got `int` - at `$[0].size`"),
        (
            {"tarball": None},
            "spec_details: Expected `str`, got `null` - at `$[0].tarball`",
        ),
        (
            {"stacks": [1]},
            "spec_details: Expected `str`, got `int` - at `$[0].stacks[0]`",
        ),
        (
            {"other": 1},
            "spec_details: Object contains unknown field `other` - at `$[0]`",
        ),
        (
            {"hash": "A" * 32},
            f"spec_details: $[0].hash is '{'A' * 32}', expected 32 char",
        ),
        (
            {"hash": "a" * 31 + "é"},
            f"spec_details: $[0].hash is '{'a' * 31}é', expected 32",
        ),
        (
            {"os": "o" * 201},
            f"the spec {SPEC} has a os of 201 characters, expected at most 200",
        ),
        ({"versions": []}, f"the spec {SPEC} has 0 versions, expected one"),
        ({"versions": ["1", "2"]}, f"the spec {SPEC} has 2 versions, expected one"),
        ({"variants": ["+a", "+a"]}, f"the spec {SPEC} lists the variant '+a' twice"),
        (
            {"variants": ["a=x", "a:=x"]},
            f"the spec {SPEC} lists the variant 'a=x' twice",
        ),
        ({"compiler": "gcc@"}, f"the spec {SPEC} 'gcc@' is not a compiler"),
    ],
    ids=range(13),
)
def test_a_listing_that_is_not_a_row_is_refused(
    changed: dict[str, Any], expected: str
) -> None:
    """The fault has the line of `spec_details`, and the path of the member or its
    hash.
    """
    data = page_of("zlib", "develop", META, json.dumps([spec(**changed)]))
    assert fault(data).startswith(f"6: {expected}")


def too_large_values() -> Iterator[tuple[str, Any]]:
    """Yield each field of a spec with a text that is too long, or too many texts."""
    for field, sample in spec(tarball="u").items():
        if isinstance(sample, list):
            yield field, ["+" + "t" * 4097]
            yield field, [f"+t{number}" for number in range(1001)]
        else:
            yield field, "t" * 4097


@pytest.mark.parametrize(("field", "value"), list(too_large_values()))
def test_no_field_of_a_spec_is_without_a_bound(field: str, value: Any) -> None:
    """What a record takes and nothing bounds could fill a disk."""
    fault(page(specs=[spec(**{field: value})], meta=meta_of([spec()])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"versions": ["1" * 201]},
            "a text in versions of 201 characters, expected at most",
        ),
        ({"oss": ["a"] * 1001}, "1,001 oss, expected at most 1,000"),
        (
            {"num_specs_by_stack": {"s" * 201: 1}},
            "a text in num_specs_by_stack of 201 char",
        ),
    ],
)
def test_a_summary_that_is_too_large_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    """The texts of `meta` are bounded as well, because they go into messages."""
    assert fault(page(meta=changes)).startswith(f"5: meta has {message}")


def test_the_pages_of_the_site_are_far_from_the_bounds() -> None:
    """No sample comes near a tenth of any bound but that of a name, which is a
    third.
    """
    for path in [*SAMPLE_PAGES, *MORE_SAMPLES.glob("*/*/specs.md")]:
        front = read_front_matter(path.read_bytes())
        for key in front_matter.JSON_KEYS:
            text = front[key].value
            assert len(text) * 10 < front_matter.MAX_JSON
            assert text.count(b",") * 10 < front_matter.MAX_ITEMS
        for detail in json.loads(front["spec_details"].value):
            assert len(detail["variants"]) * 10 < MAX_TEXTS
            for variant in detail["variants"]:
                assert len(variant) * 10 < MAX_TEXT
            for name in (detail["compiler"], *detail["versions"]):
                assert len(name) * 3 < MAX_NAME


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(1)"])
@pytest.mark.parametrize(
    "field",
    ["versions", "os", "target", "platform", "compiler", "size", "tarball", "stacks"],
)
def test_no_text_of_a_page_is_a_formula(field: str, text: str) -> None:
    """A spreadsheet runs a cell of CSV that begins so; `+name` and the size `-` are
    none.
    """
    value: Any = text
    if field in ("versions", "stacks"):
        value = [text]
    assert text[0] in fault(page(specs=[spec(**{field: value})]))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(1)"])
def test_no_variant_of_a_page_is_a_formula(text: str) -> None:
    """A variant may begin with `+`, but not with a formula that runs a program."""
    variants = [f"{text}|cmd"]
    assert text[0] in fault(page(specs=[spec(variants=variants)]))


def test_a_page_that_cannot_be_kept_leaves_only_its_fault() -> None:
    """Its neighbours are whole."""
    writer = Writer()
    reader = PageReader(writer)
    bad = page(release="v0.1", specs=[spec(7), spec(8, versions=["1", "2"])])

    reader.add(parse(page(specs=[spec(1)])))
    with pytest.raises(LineFault):
        reader.add(parse(bad))
    reader.add(parse(page(release="v0.2", specs=[spec(2)])))

    columns = writer.columns
    assert [document.release for document in columns.documents] == ["develop", "v0.2"]
    rows = columns.tables["listings"]
    assert list(rows["document"]) == [1, 2]
    hashes = [writer.texts.hashes.things[number - 1] for number in rows["spec"]]
    assert hashes == [spec_hash(1), spec_hash(2)]


NAMES = ["e4s", "root", "ubuntu24.04", "zen3", "x86_64_v3"]
SPECS = [spec(1, target="zen3", stacks=["e4s", "root"]), spec(2, stacks=["root"])]


def problems(data: bytes) -> tuple[Problem, ...]:
    """Return the problems of a page."""
    writer = Writer()
    PageReader(writer).add(parse(data))
    return writer.columns.documents[0].problems


@pytest.mark.parametrize(
    ("meta", "code", "message"),
    [
        ({"num_specs": 7}, "num_specs", "meta declares num_specs 7, the page lists 2"),
        (
            {"stacks": ["e4s", "root", "tutorial"]},
            "stacks",
            "meta.stacks declares tutorial, which no spec has",
        ),
        ({"oss": ["ubuntu24.04"] * 2}, "oss", "meta.oss has a repeated entry"),
        (
            {"num_specs_by_stack": {"e4s": 1, "root": 3}},
            "num_specs_by_stack",
            "meta.num_specs_by_stack declares root 3, which no spec has "
            "and does not declare root 2, which specs have",
        ),
    ],
)
def test_what_does_not_add_up_is_told_and_kept(
    meta: dict[str, Any], code: str, message: str
) -> None:
    """The value is the JSON of what the page says instead."""
    (problem,) = problems(page(specs=SPECS, meta=meta))
    assert (problem.code, problem.message) == (code, message)
    declared = meta[code]
    # Lists are sorted, because their order means nothing.
    if isinstance(declared, list):
        declared = sorted(declared)
    assert json.loads(problem.value or "") == declared


def test_text_that_is_no_variant_is_told_once() -> None:
    """It is kept as it is."""
    specs = [spec(1, variants=["a b"]), spec(2, variants=["+c", "a b"])]
    assert problems(page(specs=specs)) == (
        Problem("variant", "'a b' is not a variant of Spack's; stored unchanged", None),
    )


def test_a_page_that_adds_up_does_not_hide_one_that_does_not() -> None:
    """What is remembered of a sound page counts for its equals alone."""
    writer = Writer()
    reader = PageReader(writer)
    sound = parse(page(specs=SPECS))
    one, other = sound.details
    for details in ((one, other), (other, one), (other, other), (one, one)):
        reader.add(sound._replace(details=details))
    codes = []
    for document in writer.columns.documents:
        codes.append([problem.code for problem in document.problems])
    assert codes == [
        [],
        [],
        ["targets", "stacks", "num_specs_by_stack"],
        ["targets", "num_specs_by_stack"],
    ]


LISTS_OF_NAMES = st.lists(st.sampled_from(NAMES))
COMPILERS = st.lists(st.sampled_from(["gcc@13.2.0", "gcc@=13.2.0", "gcc@12"]))
COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2))
METAS = st.fixed_dictionaries(
    {},
    optional={
        "oss": LISTS_OF_NAMES,
        "stacks": LISTS_OF_NAMES,
        "targets": LISTS_OF_NAMES,
        "compilers": COMPILERS,
        "num_specs": st.integers(1, 3),
        "num_specs_by_stack": COUNTS,
    },
)


@given(METAS)
def test_a_problem_is_told_if_and_only_if_something_differs(
    meta: dict[str, Any],
) -> None:
    """Whatever is declared: there are as many problems as keys that are not what they
    must.
    """
    data = page(specs=SPECS, meta=meta)
    parsed = parse(data)
    details = parsed.details
    computed = computed_meta(
        [normal_configuration(parsed.package, detail) for detail in details],
        [detail.stacks for detail in details],
    )
    declared = declared_meta(parsed.meta)
    differing = [key for key, value in declared.items() if value != computed[key]]
    assert [problem.code for problem in problems(data)] == differing
