"""The fields of an address: each once, and not too many."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.answers import BadAddress
from spack_cache_db.site.middleware import MOST_FIELDS, bounded
from tests.site.addresses import get

FIELDS = st.lists(st.tuples(st.sampled_from("abc"), st.text("x &=%+é", max_size=2)), max_size=60)


@given(FIELDS)
def test_each_field_stands_once(fields: list[tuple[str, str]]) -> None:
    """Nothing is lost, nothing stands twice, and the order is the same."""
    kept = parse_qsl(
        bounded("/x.json", urlencode(fields).encode()).decode(), keep_blank_values=True
    )

    assert kept == list(dict.fromkeys(fields))
    assert bounded("/x.json", urlencode(kept).encode()) == urlencode(kept).encode()


@pytest.mark.parametrize(
    "fields",
    [
        [(f"c{number}", "1") for number in range(MOST_FIELDS[""] + 1)],
        [("_facet", str(number)) for number in range(11)],
        [(name, str(n)) for name in ("_facet_date", "_facet_array") for n in range(6)],
        [("_sort", "a"), ("_sort", "b"), ("_sort_desc", "c")],
    ],
)
def test_too_many_are_refused(fields: list[tuple[str, str]]) -> None:
    """Fields, facets of all kinds together, and sorts have a number that they may not pass."""
    with pytest.raises(BadAddress, match="more than"):
        bounded("/x.json", urlencode(fields).encode())


@pytest.mark.asyncio
async def test_too_many_facets_are_told(datasette: Any) -> None:
    """An address that asks for too much is a 400 with the reason."""
    answer = await get(
        datasette, "/spack-cache/builds?" + "&".join(f"_facet={n}" for n in range(50))
    )

    assert answer.status_code == 400
    assert "more than 10 fields" in answer.text
