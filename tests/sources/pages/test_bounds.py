"""sources.pages: what no real page says is refused by name; real pages are far from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.errors import InputError
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import Writer
from spack_cache_db.sources.pages import PageReader, page_parser
from spack_cache_db.sources.strictness import MAX_NAME, MAX_TEXT, MAX_TEXTS
from tests.pagetexts import MORE_SAMPLES, SAMPLE_PAGES, meta_of, page, page_of, spec, spec_hash

SPEC = spec_hash(1)
META = json.dumps(meta_of([spec()]))


def read(data: bytes) -> None:
    """Read a page into columns."""
    PageReader(Writer()).add(RawFile("in/a.md", "a.md", data))


def fault(data: bytes) -> str:
    """Return the one thing that is wrong with a page."""
    with pytest.raises(InputError) as caught:
        read(data)
    (found,) = caught.value.faults
    return str(found).removeprefix("in/a.md:")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"os": "o" * 201}, "has a os of 201 characters, expected at most 200"),
        (
            {"variants": ["k=" + "v" * 4095]},
            "has a variant of 4,097 characters, expected at most 4,096",
        ),
        (
            {"variants": [f"k{number}=v" for number in range(1001)]},
            "has 1,001 variants, expected at most 1,000",
        ),
    ],
)
def test_a_spec_that_says_too_much_is_refused(changes: dict[str, Any], said: str) -> None:
    """Each text and each list of a spec has a bound, which is named."""
    data = page_of("zlib", "develop", META, json.dumps([spec(**changes)]))
    assert fault(data) == f"6: the spec {SPEC} {said}"


LARGE = [
    (field, value)
    for field, sample in spec(tarball="u").items()
    for value in (
        [["+" + "t" * 4097], [f"+t{number}" for number in range(1001)]]
        if isinstance(sample, list)
        else ["t" * 4097]
    )
]


@pytest.mark.parametrize(("field", "value"), LARGE)
def test_no_field_of_a_spec_is_without_a_bound(field: str, value: Any) -> None:
    """What a record takes and nothing bounds could fill a disk."""
    with pytest.raises(InputError):
        read(page(specs=[spec(**{field: value})], meta=meta_of([spec()])))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"versions": ["1" * 201]},
            "meta has a text in versions of 201 characters, expected at most",
        ),
        ({"oss": ["a"] * 1001}, "meta has 1,001 oss, expected at most 1,000"),
        (
            {"num_specs_by_stack": {"s" * 201: 1}},
            "meta has a text in num_specs_by_stack of 201 char",
        ),
    ],
)
def test_a_summary_that_says_too_much_is_refused(changes: dict[str, Any], said: str) -> None:
    """So with `meta`, whose texts go into messages."""
    assert fault(page(meta=changes)).startswith(f"5: {said}")


@pytest.mark.parametrize(
    ("meta", "details", "said"),
    [
        (META, "[" + "[]," * 250_000 + "[]]", "6: spec_details has about 500,002 values"),
        (META, '[{"a":' + "0," * 500_000 + "0}]", "6: spec_details has about 500,002 values"),
        (META, '[{"a":{' + '"":0,' * 500_000 + "}}]", "6: spec_details has about 500,003 values"),
        ('{"oss":["' + "a" * 2_000_000 + "," * 500_001, "[]", "5: meta has about 500,003 values"),
        (META, '["' + "a" * 2**24 + '"]', "6: spec_details has more than 16,777,216 bytes"),
        ('{"' + "a" * 2**24 + '":1}', "[]", "5: meta has more than 16,777,216 bytes"),
    ],
)
def test_json_that_would_fill_the_memory_is_not_decoded(meta: str, details: str, said: str) -> None:
    """Values are counted before they are made, bytes before they are copied."""
    assert fault(page_of("zlib", "develop", meta, details)).startswith(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (b"title: [" + b"a," * 30_000 + b"a]", "2: has more than 20,000 parts"),
        (b"title:\n" + b"- a\n" * 30_000, "2: has more than 20,000 parts"),
        (b"title: '" + b"a" * 2**20 + b"'", "2: this entry has more than 1,048,576 bytes"),
        (b"title:\n" + b"\n" * 2**20, "2: this entry has more than 1,048,576 bytes"),
    ],
)
def test_yaml_that_would_fill_the_memory_is_not_decoded(entries: bytes, said: str) -> None:
    """Each small key has a bound."""
    assert fault(b"---\n" + entries + b"\n---").startswith(said)


def test_the_pages_of_the_site_are_far_from_the_bounds() -> None:
    """No sample comes near a tenth of any bound but that of a name, which is a third."""
    for path in [*SAMPLE_PAGES, *MORE_SAMPLES.glob("*/*/specs.md")]:
        front = page_parser.read_front_matter(path.read_bytes())
        for key in page_parser.JSON_KEYS:
            source = front[key].value
            assert len(source.text) * 10 < page_parser.MAX_JSON
            assert source.text.count(b",") * 10 < page_parser.MAX_ITEMS
            texts = json.loads(source.text)
            for each in texts if key == "spec_details" else []:
                assert max(map(len, each["variants"]), default=0) * 10 < MAX_TEXT
                assert len(each["variants"]) * 10 < MAX_TEXTS
                assert max(map(len, [each["compiler"], *each["versions"]])) * 3 < MAX_NAME
