"""build.merge: many units, one whole, however the input was divided; nothing is lost in silence."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db import sources
from spack_cache_db.build import build, check
from spack_cache_db.build.merge import Merge, Merged
from spack_cache_db.sources.columns import (
    Columns,
    Document,
    Writer,
)
from tests.configurations import configuration
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, write


def merged(*columns: Columns) -> Merged:
    """Merge what some units say."""
    merge = Merge()
    for each in columns:
        merge.add(each)
    return merge.merged()


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
