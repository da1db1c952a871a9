"""sources.columns: the form in which every source says what it holds."""

from __future__ import annotations

import pickle
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.columns import Columns, Document, Interned, Writer
from tests.configurations import configuration

ZLIB = configuration(version="1.3")


@given(st.lists(st.text(max_size=2)))
def test_each_thing_has_one_number(texts: list[str]) -> None:
    """Counted from 1 in the order in which they came; the number leads back to the thing."""
    interned = Interned[str]()
    numbers = [interned[text] for text in texts]
    assert interned.things == [*dict.fromkeys(texts)]
    assert [interned.things[number - 1] for number in numbers] == texts
    assert {**interned} == {text: at for at, text in enumerate(interned.things, start=1)}


def test_a_writer_appends_documents_with_what_they_say() -> None:
    """Listings and specs without one, each with the number of its document."""
    writer = Writer()
    texts = writer.texts
    one, two = texts.hashes["a" * 32], texts.hashes["b" * 32]
    zlib, stacks = texts.configurations[ZLIB], texts.stack_sets["e4s",]
    for release in ("develop", "v0.20"):
        number = writer.add(Document("in/x", "x", "0", release))
        writer.append(
            "listings", number,
            spec=[one], configuration=[zlib], stacks=[stacks], size=[0], tarball=[0],
        )  # fmt: skip
        writer.append("unlisted", number, spec=[two], configuration=[zlib])
    found = writer.columns
    assert [each.release for each in found.documents] == ["develop", "v0.20"]
    assert found.things["hashes"] == ["a" * 32, "b" * 32]
    assert found.things["configurations"] == [ZLIB]
    columns = [[1, 2], [1, 1], [1, 1], [1, 1], [0, 0], [0, 0]]
    assert [[*column] for column in found.tables["listings"].values()] == columns
    assert [[*column] for column in found.tables["unlisted"].values()] == [[1, 2], [2, 2], [1, 1]]


@pytest.mark.parametrize("columns", [{}, {"size": [0]}])
def test_rows_have_every_column_of_their_table_and_no_other(columns: dict[str, list[int]]) -> None:
    """A reader that leaves one out is wrong at once."""
    with pytest.raises(TypeError, match="the columns of unlisted are"):
        Writer().append("unlisted", 1, spec=[1], **columns)


def test_columns_are_the_same_in_another_process() -> None:
    """A worker sends them to its parent."""
    writer = Writer()
    writer.texts.hashes["a" * 32]
    sent = pickle.loads(pickle.dumps(writer.columns))
    assert isinstance(sent, Columns)
    assert astuple(sent) == astuple(writer.columns)
