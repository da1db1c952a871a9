"""build.problems: whatever does not add up is told, in the order of the documents."""

from __future__ import annotations

from spack_cache_db.build.ids import number
from spack_cache_db.build.merge import Merge
from spack_cache_db.build.problems import problems
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.readers import read_files
from tests.pagetexts import page, spec, spec_hash


def told(**pages: bytes) -> list[tuple[str, str]]:
    """Return (path, message) of every problem of some pages."""
    merge = Merge()
    merge.add(read_files(RawFile(name, name, data) for name, data in pages.items()))
    numbered = number(merge.merged())
    return [(numbered.documents[at].path, each.message) for at, each in problems(numbered)]


def test_pages_that_add_up_have_none() -> None:
    """Nothing is told of them."""
    assert told(a=page(), b=page(release="v0.20")) == []


def test_problems_come_by_page() -> None:
    """Those that a page has with itself before those that it has with others."""
    other = "has another configuration here than in a foremost release"
    found = told(
        c=page(release="v0.9", specs=[spec(1, target="zen2"), spec(2, target="zen2")]),
        a=page(meta={"num_specs": 7}, specs=[spec(1), spec(2)]),
        b=page(release="v0.20", specs=[spec(1, target="zen2")], meta={"targets": ["zen3"]}),
    )
    assert found == [
        ("a", "meta declares num_specs 7, the page lists 2"),
        ("b", "meta.targets declares zen3, which no spec has and does not declare zen2, "
              "which specs have"),
        ("b", f"the spec {spec_hash(1)} {other}"),
        ("c", f"the spec {spec_hash(1)} {other}"),
        ("c", f"the spec {spec_hash(2)} {other}"),
    ]  # fmt: skip
