"""Search text split into terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.site.terms import parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hdf5", ("hdf5",)),
        ("py-torch +cuda", ("py-torch", "+cuda")),
        (
            "hdf5+cuda~mpi@1.14 %gcc@13 target=zen3",
            ("hdf5", "+cuda", "~mpi", "1.14", "%gcc@13", "target=zen3"),
        ),
        ("hdf5@1.14", ("hdf5@1.14",)),
        ("hdf5@=1.14", ("hdf5@1.14",)),
        ("hdf5@1.14+mpi", ("hdf5@1.14", "+mpi")),
        ("zlib -shared", ("zlib", "~shared")),
        ("++mpi ~~cuda", ("+mpi", "~cuda")),
        ("shared=True static=false", ("+shared", "~static")),
        ("libs:=shared,static", ("libs=shared", "libs=static")),
        ("arch=linux-ubuntu24.04-zen3", ("platform=linux", "os=ubuntu24.04", "target=zen3")),
        ("operating_system=rhel8", ("os=rhel8",)),
        ("flags='a b'", ("flags=a b",)),
        ("% gcc", ("%gcc",)),
    ],
)
def test_splits_specs_into_index_words(text: str, words: tuple[str, ...]) -> None:
    """Every part of a spec becomes the word under which the index knows it."""
    assert parse(text).words == words


@pytest.mark.parametrize(
    ("text", "unread"),
    [("hdf5@1.12:1.14", ("@1.12:1.14",)), ("hdf5 ^mpich", ("^mpich",)), ("a !", ("!",))],
)
def test_keeps_what_it_cannot_answer(text: str, unread: tuple[str, ...]) -> None:
    """A part that the index cannot answer is kept, to be said on the page."""
    assert parse(text).unread == unread


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aqp7dic", "aqp7dic"),
        ("/aqp7dic", "aqp7dic"),
        ("hdf5/aqp7dic", "aqp7dic"),
        ("hdf5", None),
        ("aqp7di", None),
    ],
)
def test_knows_hashes(text: str, expected: str | None) -> None:
    """Seven characters or more of a hash are one, with a slash or without."""
    assert parse(text).hash == expected


@given(st.text(max_size=300))
def test_never_fails(text: str) -> None:
    """Any text can be searched, and every word of the full-text query is quoted."""
    terms = parse(text)

    assert terms.match().count('"') % 2 == 0
    assert all(terms.words)
