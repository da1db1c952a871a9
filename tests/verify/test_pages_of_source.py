"""verify.pages_of_source: a page in normal form, with every key that it has."""

from __future__ import annotations

import pytest

from spack_cache_db.errors import InputError
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.parse import parse_page
from spack_cache_db.sources.pages.records import Meta, SpecDetail
from spack_cache_db.verify.pages_of_source import said_by_source
from tests.pagetexts import meta_of, page, spec, spec_hash


def said(data: bytes) -> dict[str, object]:
    """Return what a page says."""
    return said_by_source(parse_page(RawFile("in/a.md", "a.md", data)))


def test_the_spellings_of_all_eras_are_one() -> None:
    """Compilers, variants and the order of lists; all else letter for letter."""
    then = spec(
        1,
        compiler="gcc@=13.2.0",
        variants=["~cuda", "libs:=static,shared"],
        stacks=["root", "e4s"],
        size="1 kB",
        tarball="x",
    )
    assert said(page(specs=[then])) == {
        "meta": meta_of([then]) | {"compilers": ["gcc@13.2.0"]},
        "spec_details": {
            spec_hash(1): then
            | {
                "compiler": "gcc@13.2.0",
                "variants": ["libs=shared,static", "~cuda"],
                "stacks": ["e4s", "root"],
            }
        },
    }


def test_every_key_of_the_records_is_said() -> None:
    """A key that is added to them is held against the file at once."""
    found = said(page(specs=[spec(1, tarball="x")]))
    assert {*found["meta"]} == {*Meta.__struct_fields__}  # type: ignore[misc]
    detail = found["spec_details"][spec_hash(1)]  # type: ignore[index]
    assert {*detail} >= {*spec(1, tarball="x")}
    assert {*detail} <= {*SpecDetail.__struct_fields__}


def test_a_detail_without_normal_form_is_a_fault() -> None:
    """The same that a build tells."""
    with pytest.raises(InputError) as caught:
        said(page(specs=[spec(1, versions=[])]))
    assert str(caught.value) == f"in/a.md:6: the spec {spec_hash(1)} has 0 versions, expected one"
