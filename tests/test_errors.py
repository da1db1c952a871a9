"""The texts that messages are made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.errors import cut, first_of, one_line, series


@pytest.mark.parametrize(
    ("count", "list_text", "sentence_text"),
    [
        (0, "", ""),
        (1, "a", "a"),
        (2, "a, b", "a and b"),
        (3, "a, b and 1 more", "a, b and 1 more"),
        (2002, "a, b and 2,000 more", "a, b and 2,000 more"),
    ],
)
def test_long_lists_name_the_first_and_count_the_others(
    count: int, list_text: str, sentence_text: str
) -> None:
    """A list and the end of a sentence differ only if all texts are shown."""
    texts = ["a", "b", *(["c"] * 2000)][:count]
    assert first_of(texts, 2) == list_text
    assert series(texts, 2) == sentence_text


@given(st.text(), st.integers(3, 20), st.sampled_from(["…", "..."]))
def test_a_cut_text_is_no_longer_than_allowed(
    text: str, longest: int, mark: str
) -> None:
    """A short text stays as it is; a long one keeps its beginning, and is marked."""
    short = cut(text, longest, mark)

    assert len(short) <= longest
    if len(text) <= longest:
        assert short == text
    else:
        assert short.endswith(mark)
        assert text.startswith(short.removesuffix(mark))


@given(st.text())
def test_one_line_keeps_the_words(text: str) -> None:
    """Only the gaps between words change."""
    line = one_line(text)
    assert line.split() == text.split()
    assert line.split(" ") == (text.split() or [""])
