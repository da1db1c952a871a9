"""build.problems: contradictions are recorded with their source, in the order of the documents."""

from __future__ import annotations

import json

from spack_cache_db.build.problems import differing
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash

ROWS = "SELECT source, code, message, hash, value FROM problems ORDER BY id"


def test_sources_that_add_up_have_no_problems(built: Build) -> None:
    """The table is empty."""
    assert built(a=page(), b=page(release="v0.20")).execute(ROWS).fetchall() == []


def test_problems_of_a_page_come_before_those_with_other_pages(built: Build) -> None:
    """Each has its page, and the hash and the value that no other table has."""
    found = built(
        c=page(release="v0.9", specs=[spec(1, target="zen2"), spec(2, target="zen2")]),
        a=page(meta={"num_specs": 7}, specs=[spec(1), spec(2)]),
        b=page(release="v0.20", specs=[spec(1, target="zen2")], meta={"targets": ["zen3"]}),
    ).execute(ROWS)
    other = "has another configuration here than in a.md: target zen2, not x86_64_v3"
    one, two = spec_hash(1), spec_hash(2)
    rows = [(*row[:4], row[4] and json.loads(row[4])) for row in found]
    assert [row[:4] for row in rows] == [
        ("a.md", "num_specs", "meta declares num_specs 7, the page lists 2", None),
        ("b.md", "targets", "meta.targets declares zen3, which no spec has and does not declare "
                            "zen2, which specs have", None),
        ("b.md", "two_configurations", f"the spec {one} {other}", one),
        ("c.md", "two_configurations", f"the spec {one} {other}", one),
        ("c.md", "two_configurations", f"the spec {two} {other}", two),
    ]  # fmt: skip
    assert [row[4] for row in rows[:2]] == [7, ["zen3"]]
    assert {row[4]["target"] for row in rows[2:]} == {"zen2"}


def test_a_part_that_one_source_does_not_say_is_told() -> None:
    """A record may get a field that only some sources know."""
    said, stored = {"a": None, "b": "x", "c": ("+x",)}, {"a": "y", "b": "x", "c": ()}
    assert differing(said, stored) == "a None, not y; c +x, not without"
