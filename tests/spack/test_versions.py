"""spack.versions: the order of versions and the meaning of version ranges."""

import json
import re
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.spack.versions import (
    VersionRanges,
    equality_key,
    is_git_version,
    is_stable,
    newest_version,
    version_key,
)
from tests.paths import DATA

SPACK: dict[str, Any] = json.loads((DATA / "versions.json").read_text())

WORDS = (
    "1 2 10 01 a b z Z rc alpha beta final p dev main develop stable master 20240101"
)
SEPARATORS = (".", "-", "_", "")
PARTS = st.builds(
    "{}{}".format, st.sampled_from(WORDS.split()), st.sampled_from(SEPARATORS)
)
PLAIN = st.lists(PARTS, min_size=1, max_size=5).map(
    lambda parts: "".join(parts).rstrip("._-")
)
GIT = st.builds("git.{}={}".format, st.sampled_from(("main", "v1", "0a")), PLAIN)
VERSIONS = st.one_of(PLAIN, PLAIN, GIT)


def lies_in(version: str, ranges: str) -> bool:
    """Whether a version satisfies a version list."""
    return VersionRanges.parse(ranges).contains(version)


def test_order_is_spacks() -> None:
    """A list in reverse comes back in Spack's own order."""
    backwards = SPACK["sorted"][::-1]
    assert sorted(backwards, key=version_key) == SPACK["sorted"]


def test_equal_groups_are_spacks() -> None:
    """Exactly the versions that Spack calls equal have the same equality key."""
    groups = [list(group) for _, group in groupby(SPACK["sorted"], key=equality_key)]
    assert [group for group in groups if len(group) > 1] == SPACK["equal_groups"]


def test_satisfies_is_spacks() -> None:
    """Each recorded answer of Spack about a version and a range is given again."""
    wrong = [row for row in SPACK["satisfies"] if lies_in(row[0], row[1]) is not row[2]]
    assert wrong == []


@pytest.mark.parametrize(
    "text", ["", "@", "1.2,", "=", "1 2!", "4:2", "1:2:3", "1:=2", "é", "=a,,b"]
)
def test_bad_ranges(text: str) -> None:
    """A text that is no version list is refused, with the text in the message."""
    with pytest.raises(ValueError, match=r"version|range"):
        VersionRanges.parse(text)


def test_git_versions_are_recognized() -> None:
    """Git versions are known by prefix, by a commit's shape and by an assigned
    version.
    """
    assert all(map(is_git_version, ["git.main", "a" * 40, "main=1.2"]))
    assert not any(map(is_git_version, ["1.2", "=1.2", "A" * 40, "github"]))


@given(st.text())
def test_any_text_has_a_key(text: str) -> None:
    """No text makes the key fail, and the key remembers its text."""
    assert version_key(text)[-1] == text


@given(st.lists(VERSIONS, min_size=1))
def test_stable_versions_are_preferred(versions: list[str]) -> None:
    """The newest version is stable if any is; it never has an infinity word or git."""
    newest = newest_version(versions)

    assert newest is not None
    assert is_stable(newest) == any(map(is_stable, versions))
    words = ("stable", "nightly", "trunk", "head", "master", "main", "develop")
    for version in versions:
        parts = re.findall(r"[a-zA-Z]+", version)
        moves = any(part in words for part in parts) or is_git_version(version)
        # `1.0-main` moves as `main` does; `domain` is a text like others.
        assert is_stable(version) != moves


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000 + "1", "9" * 4000])
def test_very_long_numbers(digits: str) -> None:
    """Numbers too long for Python's own conversion still have their place."""
    assert version_key("1") <= version_key(digits) or equality_key("1") == equality_key(
        digits
    )
    assert version_key(digits) < version_key("develop")


@given(VERSIONS, VERSIONS, VERSIONS)
def test_total_order(a: str, b: str, c: str) -> None:
    """Any two versions compare one way only, and the order is transitive."""
    ka = version_key(a)
    kb = version_key(b)
    kc = version_key(c)
    assert (ka < kb) + (kb < ka) + (a == b) == 1
    assert not (ka < kb and kb < kc) or ka < kc


@given(PLAIN, PLAIN)
def test_ranges_agree_with_the_order(version: str, bound: str) -> None:
    """A version is at or after a bound, or before it; equal versions satisfy the same
    ranges.
    """
    at_or_after = equality_key(version) >= equality_key(bound)

    assert lies_in(version, f"{bound}:") is at_or_after
    assert lies_in(version, f"={bound}") is (
        equality_key(version) == equality_key(bound)
    )
    assert lies_in(bound, bound)
    assert at_or_after or lies_in(version, f":{bound}")
