"""The records of pages refuse other types, and their shapes are those of JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType, defstruct
from msgspec.json import encode

from spack_cache_db.sources.pages.page_format import (
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Meta,
    Shape,
    SpecDetail,
)
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


TYPES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    int: st.integers(0, 9),
    dict[str, int]: st.dictionaries(st.text(), st.integers(0, 9)),
}
OPTIONAL: Any = str | UnsetType


def strings(value: object) -> int:
    """Count the strings of a JSON value, keys among them."""
    if isinstance(value, dict):
        return sum(1 + strings(each) for each in value.values())
    return sum(map(strings, value)) if isinstance(value, list) else int(isinstance(value, str))


@st.composite
def records(draw: st.DrawFn) -> list[Struct]:
    """Draw some records of one made-up type."""
    types = draw(st.lists(st.sampled_from([*TYPES, OPTIONAL]), min_size=1, max_size=5))
    fields: list[Any] = [
        (f"f{at}", each, UNSET) if each is OPTIONAL else (f"f{at}", each)
        for at, each in enumerate(types)
    ]
    made = defstruct("Made", fields, kw_only=True)
    texts = TYPES | {OPTIONAL: st.just(UNSET) | st.text()}
    values = st.tuples(*(texts[each] for each in types))
    names = [field[0] for field in fields]
    rows = draw(st.lists(values, min_size=1, max_size=4))
    return [made(**dict(zip(names, row, strict=True))) for row in rows]


@pytest.mark.slow
@given(records())
def test_strings_are_counted_as_they_stand_in_the_json(made: list[Struct]) -> None:
    """Whatever fields a record has: so a key that stands twice is seen by its quotes."""
    assert Shape(type(made[0])).texts(made) == strings(json.loads(encode(made)))


def test_a_detail_has_the_keys_of_its_record() -> None:
    """The tarball alone may lack."""
    shape = Shape(SpecDetail)
    assert [*shape.kinds] == [*SpecDetail.__struct_fields__]
    assert (shape.kinds["os"], shape.kinds["stacks"]) == (TEXT, TEXTS)
    assert "tarball" in shape.optional
    assert "size" not in shape.optional


def test_meta_has_the_keys_of_its_record() -> None:
    """All of them have to be there."""
    shape = Shape(Meta)
    assert (shape.kinds["num_specs"], shape.kinds["num_specs_by_stack"]) == (NUMBER, NUMBERS)
    assert shape.optional == set()


@pytest.mark.parametrize(
    "field",
    [("size", float), ("size", str | None), ("size", str, ""), ("size", int | UnsetType, UNSET)],
)
def test_a_field_that_nobody_could_check_is_no_field(field: tuple[str, object]) -> None:
    """It is found when the program starts, by the name of the field."""
    made = defstruct("Made", [field])
    with pytest.raises(TypeError, match=r"Made\.size: "):
        Shape(made)
