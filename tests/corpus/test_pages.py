"""The invented corpus: always the same, consistent with itself, and shaped like the real site."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from tests.corpus import history
from tests.corpus import pages as corpus

SCALE = 0.01


@pytest.fixture(scope="module")
def site() -> history.History:
    """The smallest site that the generator makes."""
    return history.history(SCALE)


@pytest.fixture(scope="module")
def pages(site: history.History) -> list[corpus.Page]:
    """Its pages."""
    return list(corpus.pages(site))


def _keys(page: corpus.Page) -> dict[str, Any]:
    fence, title, layout, categories, meta, specs, end = page.data.decode().split("\n")

    assert (fence, layout, end) == ("---", "layout: cache", "---")

    return {
        "title": title.removeprefix('title: "').removesuffix('"'),
        "release": categories.removeprefix("categories: [package, ").removesuffix("]"),
        "meta": json.loads(meta.removeprefix("meta: ")),
        "specs": json.loads(specs.removeprefix("spec_details: ")),
    }


def _configuration(page: dict[str, Any], spec: dict[str, Any]) -> tuple[str, ...]:
    """Spell a spec's configuration alike in all eras."""
    return (
        page["title"],
        *spec["versions"],
        spec["compiler"].replace("@=", "@"),
        spec["os"],
        spec["platform"],
        spec["target"],
        " ".join(text.replace(":=", "=") for text in spec["variants"]),
    )


def test_hash_means_one_configuration(site: history.History, pages: list[corpus.Page]) -> None:
    """A hash is the same thing in every release, however its era spells it."""
    found: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for page in map(_keys, pages):
        for spec in page["specs"]:
            found[spec["hash"]].add(_configuration(page, spec))

    assert {len(each) for each in found.values()} == {1}
    assert {len(each) for each in found} == {32}
    assert set("".join(found)) == set("abcdefghijklmnopqrstuvwxyz234567")
    assert len(found) == site.spec_count()
