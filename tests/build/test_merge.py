"""build.merge: many units, one whole, however the input was divided; nothing is lost in silence."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db import sources
from spack_cache_db.build import build, check
from spack_cache_db.build.frames import Frame, numbers
from spack_cache_db.build.merge import Merge, Merged, first_dependencies, fold, unions
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import (
    TABLES,
    Columns,
    Document,
    Interned,
    Stacks,
    Writer,
)
from spack_cache_db.sources.readers import read_files
from tests.configurations import configuration
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash, write


def merged(*columns: Columns) -> Merged:
    """Merge what some units say."""
    merge = Merge()
    for each in columns:
        merge.add(each)
    return merge.merged()


def pages(**files: bytes) -> Columns:
    """Return what some pages say, as one unit."""
    return read_files(RawFile(f"in/{name}", name, data) for name, data in files.items())


def said(whole: Merged) -> list[tuple[object, ...]]:
    """Return every listing in texts, in the order of the listings."""
    texts = whole.texts
    of: dict[int, int] = dict(whole.specs.rows("spec", "configuration"))
    return [
        (
            whole.releases[release - 1],
            whole.documents[document - 1].path,
            texts.hashes.things[spec - 1],
            texts.configurations.things[of[spec] - 1].target,
            texts.stack_sets.things[stacks - 1],
            [None, *texts.sizes.things][size],
            [None, *texts.tarballs.things][tarball],
        )
        for document, spec, stacks, size, tarball, release in whole.listings.rows()
    ]


def test_each_text_is_held_once() -> None:
    """However many units say it; every listing finds its own again."""
    one = pages(a=page("zlib", "develop", [spec(1), spec(2, size="7")]))
    two = pages(b=page("zlib", "v0.20", [spec(2, size="7"), spec(3, target="zen3")]))
    whole = merged(one, two)
    assert whole.texts.hashes.things == [spec_hash(1), spec_hash(2), spec_hash(3)]
    assert whole.texts.sizes.things == ["7"]
    stacks = ("e4s", "root")
    assert said(whole) == [
        ("develop", "a", spec_hash(1), "x86_64_v3", stacks, None, None),
        ("develop", "a", spec_hash(2), "x86_64_v3", stacks, "7", None),
        ("v0.20", "b", spec_hash(2), "x86_64_v3", stacks, "7", None),
        ("v0.20", "b", spec_hash(3), "zen3", stacks, None, None),
    ]


def test_the_order_of_units_does_not_matter() -> None:
    """Documents and listings come in an order of their own."""
    names = ["develop", "v0.20", "v0.9", "develop-2025-01-01", "develop-2025-02-02"]
    found = [
        pages(
            **{f"{name}-{package}": page(package, name, [spec(first + at), spec(first + at + 1)])}
        )
        for at, name in enumerate(names)
        for first, package in ((0, "zlib"), (50, "zstd"))
    ]
    whole = [merged(*found), merged(*reversed(found))]
    found = [*found]
    random.Random(1).shuffle(found)
    whole.append(merged(*found))
    assert whole[0].faults == []
    assert whole[0].releases == ["develop", "v0.20", "v0.9", *names[:2:-1]]
    assert whole[0].documents == whole[1].documents == whole[2].documents
    assert sorted(said(whole[0]), key=str) == sorted(said(whole[1]), key=str)
    assert sorted(said(whole[0]), key=str) == sorted(said(whole[2]), key=str)


def test_pages_come_before_other_documents() -> None:
    """Their places are their ids; others follow by release and path."""
    writer = Writer()
    for path, release in (("b", "v0.20"), ("c", "develop"), ("a", "v0.20")):
        writer.add(Document(path, path, "-", release))
    whole = merged(
        writer.columns, pages(z=page("zlib", "v0.20"), y=page("zstd", "v0.20", [spec(2)]))
    )
    assert [each.path for each in whole.documents] == ["z", "y", "c", "a", "b"]
    assert whole.document_release.tolist() == [0, 2, 2, 1, 2, 2]


def test_what_refused_pages_say_is_left_out() -> None:
    """None of their listings is there; a refusal names them."""
    whole = merged(
        pages(a=page("zlib", "develop", [spec(1)])), pages(b=page("zlib", "develop", [spec(2)]))
    )
    assert [row[2] for row in said(whole)] == [spec_hash(1)]
    assert [each.fault.path for each in whole.refusals] == ["in/b"]
    assert [each.path for each in whole.documents] == ["a"]


def test_the_first_document_says_what_an_unlisted_spec_is() -> None:
    """By the order of the documents; what the other says is a difference."""
    found = []
    for path, target in (("b", "zen2"), ("a", "zen3")):
        writer = Writer()
        number = writer.add(Document(path, path, "-", "develop"))
        at = writer.texts.configurations[configuration(target=target)]
        spec = [writer.texts.hashes["x" * 32]]
        writer.append("unlisted", number, spec=spec, configuration=[at])
        found.append(writer.columns)
    whole = merged(*found)
    things = whole.texts.configurations.things
    ((document, number, binary),) = whole.specs.rows("document", "configuration", "is_binary")
    assert (whole.documents[document - 1].path, things[number - 1].target) == ("a", "zen3")
    assert not binary
    (difference,) = (each for each in whole.differences if len(each.said))
    ((document, number),) = difference.said.rows("document", "configuration")
    assert (whole.documents[document - 1].path, things[number - 1].target) == ("b", "zen2")


def test_nothing_merges_to_nothing() -> None:
    """No unit, no document."""
    whole = merged()
    assert (whole.documents, whole.releases, len(whole.listings)) == ([], [], 0)


def test_the_division_into_units_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faults and problems are the same, however the input was divided."""
    pages = {
        "a": page(release="develop", specs=[spec(1)]),
        "b": page(release="develop", specs=[spec(2)]),
        "c": page("zstd", specs=[spec(1, target="zen3")]),
        "d": page(release="v0.20", specs=[spec(1, target="zen4")], meta={"num_specs": 9}),
        "e": b"nothing",
    }
    write(tmp_path, **pages)
    found = []
    for entries_per_unit in (1, 2, 100):
        monkeypatch.setattr(sources, "ENTRIES_PER_UNIT", entries_per_unit)
        found.append(check([str(tmp_path)]))
    assert found[0] == found[1] == found[2]
    assert [Path(fault.path).name for fault in found[0][0]] == ["b.md", "c.md", "e.md"]


class Listing(NamedTuple):
    """A row of listings; all are of one release."""

    document: int
    spec: int
    stacks: int
    size: int
    tarball: int


ROWS = st.lists(
    st.builds(
        Listing,
        document=st.integers(1, 9),
        spec=st.integers(1, 3),
        stacks=st.integers(1, 4),
        size=st.integers(0, 2),
        tarball=st.integers(0, 2),
    ),
    max_size=12,
    unique_by=itemgetter(0, 1),
)
SETS: list[Stacks] = [(), ("a",), ("b",), ("a", "b")]
Told = tuple[str, Listing, Listing]


def frame(rows: Sequence[Listing]) -> Frame:
    """Return listings of one release as a frame."""
    columns = {name: numbers(getattr(row, name) for row in rows) for name in Listing._fields}
    return Frame(**columns, release=numbers(1 for _ in rows))


def folded(rows: Sequence[Listing]) -> tuple[list[tuple[object, ...]], list[Told]]:
    """Return what listings become, and what of them is not stored, as `fold` gives it."""
    known = Interned[Stacks]()
    for each in SETS:
        known[each]
    found, differences = fold(frame(rows), known)
    return [
        (*row[:2], known.things[row[2] - 1], *row[3:]) for row in found.rows(*Listing._fields)
    ], [
        (each.column, Listing._make(said), Listing._make(stored))
        for each in differences
        for said, stored in zip(
            each.said.rows(*Listing._fields), each.stored.rows(*Listing._fields), strict=True
        )
    ]


def folded_in_python(group: list[Listing]) -> tuple[tuple[object, ...], list[Told]]:
    """Return what a group of listings becomes, and what of them is not stored: by plain Python."""
    first = group[0]
    sized = next((each for each in group if each.size), first)
    linked = next((each for each in group if each.tarball), first)
    names = {name for each in group for name in SETS[each.stacks - 1]}
    told = []
    for each in group:
        if each.size not in (0, sized.size):
            told.append(("size", each, sized))
    row = (first.document, first.spec, tuple(sorted(names)))
    return (*row, sized.size, linked.tarball), told


@given(ROWS)
def test_a_fold_is_that_of_plain_python(rows: list[Listing]) -> None:
    """Stacks are united; the first that knows is right; whoever says otherwise is told."""
    rows = sorted(rows, key=lambda each: (each.spec, each.document))
    expected = [folded_in_python([*group]) for _, group in groupby(rows, key=itemgetter(1))]
    found, differences = folded(rows)
    assert found == [row for row, _ in expected]
    assert sorted(differences) == sorted(each for _, some in expected for each in some)


@pytest.mark.parametrize(
    "column", [name for name, meaning in TABLES["listings"].items() if meaning.is_optional]
)
def test_who_does_not_know_hides_nothing(column: str) -> None:
    """The first document that knows is right, 0 contradicts nobody, and another size does."""
    silent = Listing(1, 1, 1, 0, 0)
    right, wrong = (silent._replace(document=at + 1, **{column: at}) for at in (1, 2))
    ((*row,),), differences = folded([silent, right, wrong])
    assert row[Listing._fields.index(column)] == 1
    assert differences == ([] if column == "tarball" else [(column, wrong, right)])


STACKS = st.sets(st.sampled_from("abcd")).map(lambda names: tuple(sorted(names)))


@pytest.mark.slow
@given(st.lists(st.lists(STACKS, min_size=1, max_size=5), max_size=5))
def test_unions_hold_every_stack_of_the_group(groups: list[list[Stacks]]) -> None:
    """And no other; a set that is new gets a number."""
    known = Interned[Stacks]()
    sets = numbers(known[each] for group in groups for each in group)
    starts = numbers(np.cumsum([0, *map(len, groups)])[:-1])
    found = unions(known, sets, starts)
    assert [known.things[at - 1] for at in found] == [
        tuple(sorted(set().union(*group))) for group in groups
    ]
    assert len(set(known.things)) == len(known)


def test_the_first_document_that_has_a_record_is_right() -> None:
    """Document 1 comes before 2, whatever the order of the rows; one that agrees is not odd."""
    rows = [(2, 7, 8, 1), (1, 7, 9, 1), (1, 7, 8, 1), (3, 7, 8, 1), (3, 7, 9, 1)]
    names = ("document", "spec", "dependency", "use")
    edges = Frame(**dict(zip(names, map(numbers, zip(*rows, strict=True)), strict=True)))
    records = Frame(document=numbers([2, 1, 3, 3, 3]), spec=numbers([7, 7, 7, 8, 9]))
    kept, (odd_records, odd_edges) = first_dependencies(records, edges)
    assert sorted(kept.rows()) == [(1, 7, 8, 1), (1, 7, 9, 1)]
    assert [*odd_edges.rows()] == [(2, 7, 8, 1)]
    assert [*odd_records.rows()] == [(2, 7)]


@pytest.mark.parametrize("first_has_it", [True, False])
def test_a_record_without_edges_has_its_word(tmp_path: Path, first_has_it: bool) -> None:
    """No dependencies is something to say: it counts if it comes first, else it is a problem."""
    needs = {"1": first_has_it, "2": not first_has_it}
    for stack, has_it in needs.items():
        edges = [edge("b", "link")] if has_it else []
        folder = tmp_path / "in" / "develop" / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(record(node("a", *edges)), record(node("b"))))

    build(tmp_path / "in", tmp_path / "x.db")

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        count = connection.execute("SELECT count(*) FROM dependencies").fetchone()
        rows = connection.execute("SELECT mirror, code, value FROM problems").fetchall()
    said: list[Any] = [] if first_has_it else [[hash_of("b"), ["link"], [], None]]
    assert count == (int(first_has_it),)
    assert [(*row[:2], json.loads(row[2])) for row in rows] == [(2, "two_dependencies", said)]
