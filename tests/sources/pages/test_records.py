"""sources.pages.records: what they refuse by their types, and how they are compared."""

from __future__ import annotations

import msgspec
import pytest

from spack_cache_db.sources.pages.page_format import Meta, SpecDetail
from tests.pagetexts import meta_of, spec


@pytest.mark.parametrize(("record", "value"), [(Meta, meta_of([spec()])), (SpecDetail, spec())])
def test_an_unknown_key_is_refused(record: type[msgspec.Struct], value: dict[str, object]) -> None:
    """Nothing that a page says is dropped in silence."""
    assert msgspec.convert(value, record)
    with pytest.raises(msgspec.ValidationError, match="unknown field `new`"):
        msgspec.convert(value | {"new": 1}, record)


def test_a_detail_without_a_tarball_has_none() -> None:
    """Which is not the same as an empty one."""
    assert msgspec.convert(spec(), SpecDetail).tarball is msgspec.UNSET
    assert msgspec.convert(spec(tarball=""), SpecDetail).tarball == ""


def test_details_are_equal_by_value_and_meta_by_identity() -> None:
    """A `meta` that many pages share is compared fast."""
    assert msgspec.convert(spec(), SpecDetail) == msgspec.convert(spec(), SpecDetail)
    one, two = (msgspec.convert(meta_of([spec()]), Meta) for _ in range(2))
    assert one == one
    assert one != two
