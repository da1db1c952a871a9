"""Pages become columns, and each spelling is normalized once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from spack_cache_db.errors import InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import TABLES, Columns, Writer
from spack_cache_db.sources.pages import PageReader, normal_configuration
from spack_cache_db.sources.pages.page_parser import SpecDetail
from tests.pagetexts import page, spec, spec_hash


def columns(*pages: bytes) -> Columns:
    """Read pages."""
    writer = Writer()
    reader = PageReader(writer)
    for number, data in enumerate(pages):
        reader.add(RawFile(f"in/{number}.md", f"{number}.md", data))
    return writer.columns


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


def configuration(**changes: Any) -> Configuration:
    """Return the normal configuration of a spec with these changes."""
    return normal_configuration("zlib", msgspec.convert(spec(**changes), SpecDetail))


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
