"""build.problems: whatever does not add up is told, in the order of the documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.build.ids import number
from spack_cache_db.build.merge import Merge
from spack_cache_db.build.problems import differing, problems
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import Document, Tarball, Writer, tarball_suffix
from spack_cache_db.sources.readers import read_files
from tests.configurations import configuration
from tests.pagetexts import page, spec, spec_hash


def told(**pages: bytes) -> list[tuple[str, str]]:
    """Return (path, message) of every problem of some pages."""
    merge = Merge()
    merge.add(read_files(RawFile(name, name, data) for name, data in pages.items()))
    merged = merge.merged()
    found = problems(merged, number(merged))
    return [(merged.documents[at - 1].path, each.message) for at, each in found]


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


ONE, TWO = configuration(target="zen3", variants=()), configuration(target="zen2", variants=("+x",))
AS_JSON = json.loads(json.dumps(TWO._asdict()))
URL = f"https://m{tarball_suffix(TWO)}{spec_hash(1)}.spack"


@pytest.mark.parametrize(
    ("column", "words", "declared"),
    [
        ("configuration", "target zen2, not zen3; variants +x, not without", AS_JSON),
        ("size", "2 kB, not 1 kB", "2 kB"),
        ("tarball", f"{URL}, not https://s{tarball_suffix(ONE)}{spec_hash(1)}.spack", URL),
    ],
)
def test_what_is_not_stored_is_declared(column: str, words: str, declared: Any) -> None:
    """As a value in JSON; the message names the document that is right, and has both values."""
    writer = Writer()
    texts = writer.texts
    for path, configuration_, size, prefix in (("a", ONE, "1 kB", "s"), ("b", TWO, "2 kB", "m")):
        writer.append(
            "listings",
            writer.add(Document(f"in/{path}", path, "-", "develop")),
            spec=[texts.hashes[spec_hash(1)]],
            configuration=[texts.configurations[configuration_]],
            stacks=[texts.stack_sets[()]],
            size=[texts.sizes[size]],
            tarball=[texts.tarballs[Tarball(f"https://{prefix}", is_whole=False)]],
        )
    merge = Merge()
    merge.add(writer.columns)
    merged = merge.merged()
    found = {each.code: (at, each) for at, each in problems(merged, number(merged))}
    assert len(found) == 3
    at, problem = found[f"two_{column}s"]
    assert (at, problem.message) == (
        2,
        f"the spec {spec_hash(1)} has another {column} here than in a: {words}",
    )
    assert json.loads(str(problem.declared)) == declared


def test_a_part_that_one_does_not_say_is_told() -> None:
    """A record may get a field that only some sources know."""
    said, stored = {"a": None, "b": "x", "c": ("+x",)}, {"a": "y", "b": "x", "c": ()}
    assert differing(said, stored) == "a None, not y; c +x, not without"
