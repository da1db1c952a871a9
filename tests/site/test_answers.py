"""`/find` over HTTP, as a page and as data, over sources that contradict each other."""

from __future__ import annotations

import asyncio
import csv
import io
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build
from spack_cache_db.records import Configuration
from tests.contradictions import QUERIES, STACKS, Listing, listings, write_sources
from tests.oracle import Answer, Oracle
from tests.site.addresses import get
from tests.site.conftest import site


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(listings(), st.lists(QUERIES, min_size=3, max_size=6), st.data())
def test_find_answers_as_the_sources_do(
    drawn: list[Listing], queries: list[str], data: st.DataObject
) -> None:
    """Rows, counts and links are those of the specs that satisfy the query, in every place."""
    expected = Oracle(drawn)
    places = st.fixed_dictionaries(
        {},
        optional={
            "release": st.sampled_from(expected.releases),
            "stack": st.sampled_from([s for s in STACKS if expected.counting(stack=s)] or [""]),
            "host": st.sampled_from(["zen3", "m1"]),
        },
    )
    asked = [(text, data.draw(places)) for text in queries]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "spack-cache.db")
        build(write_sources(Path(folder, "in"), drawn), output)
        asyncio.run(every_form_says_so(site(output), expected, asked))


async def every_form_says_so(
    datasette: Any, expected: Oracle, asked: list[tuple[str, dict[str, str]]]
) -> None:
    """Ask for JSON, CSV and the page."""
    for text, place in asked:
        given_ = {name: value for name, value in place.items() if value}
        answer = expected.answer(text, **given_)
        fields = urlencode({"q": text, **given_})
        counts = {configuration: len(hashes) for configuration, hashes in answer.items()}

        found = (await get(datasette, f"/find.json?{fields}")).json()
        if counts:
            rows = {configuration_of(row): row["spec_count"] for row in found}
            assert rows == counts, (text, place)
            lines = csv.DictReader(io.StringIO((await get(datasette, f"/find.csv?{fields}")).text))
            assert {configuration_of(row): int(row["spec_count"]) for row in lines} == counts
        else:
            assert not found["ok"], (text, place)
        links_lead_to_specs(await get(datasette, f"/find?{fields}"), answer, fields)


def configuration_of(row: dict[str, Any]) -> Configuration:
    """Return the configuration of a row; CSV has its variants in one text."""
    *words, variants = (row[name] for name in Configuration._fields)
    each = variants.split() if isinstance(variants, str) else variants
    return Configuration._make((*words, tuple(each)))


def links_lead_to_specs(response: Any, answer: Answer, text: str) -> None:
    """The page links to one spec of each configuration, unless it leads to another page."""
    if response.status_code == 302:
        return
    assert response.status_code == 200, text
    linked = set(re.findall(r'href="/spec/([a-z2-7]{32})["?#]', response.text))
    assert linked <= {dag_hash for hashes in answer.values() for dag_hash in hashes}, text
    assert all(linked & hashes for hashes in answer.values()), text
