"""The invented corpus: always the same, consistent with itself, and shaped like the real site."""

from __future__ import annotations

import itertools
import json
import tarfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import zstandard

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


@pytest.mark.slow
def test_same_scale_gives_same_bytes(pages: list[corpus.Page]) -> None:
    """Nothing depends on the time, the machine or what was generated before."""
    again = list(corpus.pages(history.history(SCALE)))

    assert again == pages


def test_paths_name_what_the_pages_name(pages: list[corpus.Page]) -> None:
    """Every page lies where the site keeps it, once."""
    paths = [f"_cache/{page['release']}/{page['title']}/specs.md" for page in map(_keys, pages)]

    assert [page.path for page in pages] == paths
    assert len(set(paths)) == len(paths)


def test_meta_counts_the_specs(pages: list[corpus.Page]) -> None:
    """What a page declares is what it lists, so that a build of the corpus has no problems."""
    for page in map(_keys, pages):
        meta, specs = page["meta"], page["specs"]
        by_stack = Counter(stack for spec in specs for stack in spec["stacks"])

        assert meta["num_specs"] == len(specs)
        assert meta["num_specs_by_stack"] == by_stack
        assert meta["stacks"] == sorted(by_stack)
        assert meta["versions"] == sorted({spec["versions"][0] for spec in specs})
        for plural, key in (("compilers", "compiler"), ("oss", "os"), ("targets", "target")):
            assert meta[plural] == sorted({spec[key] for spec in specs})


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


def test_eras_have_their_layouts(pages: list[corpus.Page]) -> None:
    """Each era orders its keys, names its compilers and lists its stacks in its own way."""
    by_release = {page["release"]: page for page in map(_keys, pages)}
    new, middle = by_release["develop"]["specs"], by_release["develop-2025-02-16"]["specs"]
    old, named = by_release["develop-2024-06-02"]["specs"], by_release["v0.22"]["specs"]

    assert all(list(spec) == sorted(spec) and "tarball" not in spec for spec in new + middle)
    assert [spec["hash"] for spec in new] == sorted(spec["hash"] for spec in new)
    assert not any("@=" in spec["compiler"] for spec in new)
    assert all("@=" in spec["compiler"] for spec in middle + old + named)
    assert all(next(iter(spec)) == "hash" and list(spec)[-1] == "tarball" for spec in old + named)
    assert all("root" in spec["stacks"] for spec in old)
    assert not any("root" in spec["stacks"] for spec in named)


def test_a_quarter_of_the_hashes_is_new_each_week(pages: list[corpus.Page]) -> None:
    """Hashes persist from snapshot to snapshot, and one configuration has many of them."""
    hashes: dict[str, set[str]] = defaultdict(set)
    configurations = set()
    for page in map(_keys, pages):
        hashes[page["release"]] |= {spec["hash"] for spec in page["specs"]}
        if page["release"] == "develop":
            configurations |= {_configuration(page, spec) for spec in page["specs"]}
    weeks = [hashes[name] for name in sorted(hashes) if name.startswith("develop-")]
    new = [len(after - before) / len(after) for before, after in itertools.pairwise(weeks)]

    assert len(weeks) == history.SNAPSHOTS
    assert 0.2 < sum(new) / len(new) < 0.3
    assert set.union(*weeks[-10:]) <= hashes["develop"]
    assert 8 < len(hashes["develop"]) / len(configurations) < 20


@pytest.mark.slow
def test_archive_holds_what_the_folder_holds(tmp_path: Path, pages: list[corpus.Page]) -> None:
    """`--tar` changes the container, not the pages."""
    corpus.write(tmp_path / "folder", SCALE)
    corpus.write(tmp_path / "pages.tar.zst", SCALE, tar=True)

    with (
        (tmp_path / "pages.tar.zst").open("rb") as raw,
        zstandard.ZstdDecompressor().stream_reader(raw) as plain,
        tarfile.open(fileobj=plain, mode="r|") as archive,
    ):
        for page, entry in zip(pages, archive, strict=True):
            file = archive.extractfile(entry)
            assert file is not None
            assert entry.name == page.path
            assert file.read() == page.data == (tmp_path / "folder" / page.path).read_bytes()
