"""sources.columns: the form in which every source says what it holds."""

from __future__ import annotations

import pickle
from dataclasses import astuple

from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.columns import Columns, Document, Interned, Writer
from tests.configurations import configuration

ZLIB = configuration(version="1.3")


@given(st.lists(st.text(max_size=2)))
def test_each_thing_has_one_number(texts: list[str]) -> None:
    """Counted from 0 in the order in which they came; the number leads back to the thing."""
    interned = Interned[str]()
    numbers = [interned[text] for text in texts]
    assert interned.things == [*dict.fromkeys(texts)]
    assert [interned.things[number] for number in numbers] == texts
    assert {**interned} == {text: at for at, text in enumerate(interned.things)}


def test_a_writer_appends_documents_with_what_they_say() -> None:
    """Listings and specs without one, each with the number of its document."""
    writer = Writer()
    texts = writer.texts
    one, two = texts.hashes["a" * 32], texts.hashes["b" * 32]
    zlib, stacks = texts.configurations[ZLIB], texts.stack_sets["e4s",]
    for release in ("develop", "v0.20"):
        number = writer.add(
            Document("in/x", "x", "0", release),
            spec=[one], configuration=[zlib], stacks=[stacks], size=[0], tarball=[0],
        )  # fmt: skip
        writer.add_unlisted(number, spec=[two], configuration=[zlib])
    found = writer.columns
    assert [each.release for each in found.documents] == ["develop", "v0.20"]
    assert (found.hashes, found.configurations) == (["a" * 32, "b" * 32], [ZLIB])
    assert [[*column] for column in found.listings] == [
        [0, 1],
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 0],
    ]
    assert [[*column] for column in found.unlisted] == [[0, 1], [1, 1], [0, 0]]


def test_columns_are_the_same_in_another_process() -> None:
    """A worker sends them to its parent."""
    writer = Writer()
    writer.texts.hashes["a" * 32]
    sent = pickle.loads(pickle.dumps(writer.columns))
    assert isinstance(sent, Columns)
    assert astuple(sent) == astuple(writer.columns)
