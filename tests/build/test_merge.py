"""build.merge: many units, one whole, however the input was divided."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from spack_cache_db.build import check
from spack_cache_db.build.merge import Merge, Merged
from spack_cache_db.sources import units
from spack_cache_db.sources.columns import Columns, Document, Writer
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.readers import read_files
from tests.configurations import configuration
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
    rows = zip(*(column.tolist() for column in whole.listings), strict=True)
    return [
        (
            whole.releases[whole.document_release[document]],
            whole.documents[document].path,
            texts.hashes.things[spec],
            texts.configurations.things[configuration].target,
            texts.stack_sets.things[stacks],
            [None, *texts.sizes.things][size],
            [None, *texts.tarballs.things][tarball],
        )
        for document, spec, configuration, stacks, size, tarball in rows
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
        none: list[int] = []
        writer.add(
            Document(path, path, "-", release),
            spec=none, configuration=none, stacks=none, size=none, tarball=none,
        )  # fmt: skip
    whole = merged(
        writer.columns, pages(z=page("zlib", "v0.20"), y=page("zstd", "v0.20", [spec(2)]))
    )
    assert [each.path for each in whole.documents] == ["z", "y", "c", "a", "b"]
    assert whole.document_release.tolist() == [1, 1, 0, 1, 1]


def test_what_refused_pages_say_is_left_out() -> None:
    """Of their listings none is there; the fault tells of them."""
    whole = merged(
        pages(a=page("zlib", "develop", [spec(1)])), pages(b=page("zlib", "develop", [spec(2)]))
    )
    assert [row[2] for row in said(whole)] == [spec_hash(1)]
    assert [fault.path for fault in whole.faults] == ["in/b"]
    assert [each.path for each in whole.documents] == ["a"]


def test_specs_without_a_listing_keep_their_documents() -> None:
    """In the order of the documents, so that the first of them is right."""
    found = []
    for path, target in (("b", "zen2"), ("a", "zen3")):
        writer = Writer()
        none: list[int] = []
        number = writer.add(
            Document(path, path, "-", "develop"),
            spec=none, configuration=none, stacks=none, size=none, tarball=none,
        )  # fmt: skip
        at = writer.texts.configurations[configuration(target=target)]
        writer.add_unlisted(number, spec=[writer.texts.hashes["x" * 32]], configuration=[at])
        found.append(writer.columns)
    whole = merged(*found)
    assert [whole.documents[at].path for at in whole.unlisted.document] == ["a", "b"]
    things = whole.texts.configurations.things
    assert [things[at].target for at in whole.unlisted.configuration] == ["zen3", "zen2"]


def test_nothing_merges_to_nothing() -> None:
    """No unit, no document."""
    whole = merged()
    assert (whole.documents, whole.releases, len(whole.listings.spec)) == ([], [], 0)


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
        monkeypatch.setattr(units, "ENTRIES_PER_UNIT", entries_per_unit)
        found.append(check([str(tmp_path)]))
    assert found[0] == found[1] == found[2]
    assert [Path(fault.path).name for fault in found[0][0]] == ["b.md", "c.md", "e.md"]
