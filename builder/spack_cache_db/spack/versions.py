"""Sort keys of versions, and the ranges `@1.2`, `@=1.2`, `@1.2:1.4` and their lists.

The rules are those of Spack 1.1's `version/version_types.py` and `version/common.py`,
implemented independently.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

# A segment is (kind, text or number), and kinds never mix: text < number < infinity
# word.
Segment = tuple[int, str | int]
Standard = tuple[tuple[Segment, ...], tuple[int, ...]]
EqualityKey = tuple[tuple[Segment, ...], tuple[int, ...], int, str]
VersionKey = tuple[tuple[Segment, ...], tuple[int, ...], int, str, str]

_TEXT, _NUMBER, _INFINITY = 0, 1, 2
_INFINITY_WORDS = {
    word: index
    for index, word in enumerate(
        ("stable", "nightly", "trunk", "head", "master", "main", "develop")
    )
}
_PRERELEASE_WORDS = {"alpha": 0, "beta": 1, "rc": 2, "final": 3}
_FINAL = 3

_SEGMENT = re.compile(r"[0-9]+|[a-zA-Z]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_VALID = re.compile(r"[A-Za-z0-9_.\-][A-Za-z0-9_.\-]*")
# A git reference may also contain a slash, as in names of branches.
_VALID_GIT = re.compile(r"[A-Za-z0-9_.\-/]+(=[A-Za-z0-9_.\-]+)?")

# Python refuses to convert longer digit strings; real versions have a dozen digits at
# most.
_MAX_DIGITS = 4000

_LOWEST: Standard = ((), (0,))
_HIGHEST: Standard = (((_INFINITY, len(_INFINITY_WORDS)),), (_FINAL,))


def _number(digits: str) -> int:
    """Return the value of `digits`; a number of the same order if they are too many for
    `int`.
    """
    significant = digits.lstrip("0")
    if len(significant) <= _MAX_DIGITS:
        return int(significant or "0")
    return int.from_bytes(significant.encode("ascii"), "big")


def _segment(text: str) -> Segment:
    if text.isdigit():
        return (_NUMBER, _number(text))
    if text in _INFINITY_WORDS:
        return (_INFINITY, _INFINITY_WORDS[text])
    return (_TEXT, text)


def _standard(text: str) -> Standard:
    """Return the segments and the prerelease of a version that is not a git version."""
    words: list[str] = _SEGMENT.findall(text)
    if len(words) >= 3 and words[-2] in _PRERELEASE_WORDS and words[-1].isdigit():
        prerelease: tuple[int, ...] = (_PRERELEASE_WORDS[words[-2]], _number(words[-1]))
        words = words[:-2]
    elif len(words) >= 2 and words[-1] in _PRERELEASE_WORDS:
        prerelease = (_PRERELEASE_WORDS[words[-1]],)
        words = words[:-1]
    else:
        prerelease = (_FINAL,)
    return tuple(_segment(word) for word in words), prerelease


def is_git_version(text: str) -> bool:
    """Return whether Spack reads `text` as a git version: `git.ref`, a commit, or
    `ref=version`.
    """
    return (
        text.startswith("git.")
        or "=" in text[1:]
        or _COMMIT.fullmatch(text) is not None
    )


@lru_cache(maxsize=65536)
def version_key(text: str) -> VersionKey:
    """Return the key that sorts version strings in Spack's order.

    The key is (segments, prerelease, is git, git reference, text). The text breaks the
    ties of versions that are equal in Spack, such as `1.2-3` and `1.2.3`. A git version
    without `=version` sorts as version 0, as in Spack for a repository without tags.
    """
    if not is_git_version(text):
        segments, prerelease = _standard(text)
        return (segments, prerelease, 0, "", text)
    reference, _, version = text.removeprefix("git.").partition("=")
    segments, prerelease = _standard(version or "0")
    return (segments, prerelease, 1, reference, text)


def preference_key(text: str) -> tuple[bool, bool]:
    """Return a key that is lowest for the versions that Spack prefers, whatever their
    order.

    Releases come before prereleases, and both before branches such as `develop` and
    `main` (Spack 1.1 `solver/asp.py`, `concretization_version_order`).
    """
    segments, prerelease = version_key(text)[:2]
    is_branch = any(kind == _INFINITY for kind, _ in segments)
    return is_branch, prerelease != (_FINAL,)


def is_stable(text: str) -> bool:
    """Return whether a version always means the same source code.

    Branches such as `develop`, `main` and all other versions with an infinity word, of
    which `stable` is one, move; versions of git are commits between releases.

    >>> [text for text in ("1.2", "develop", "git.v1=1.2", "stable") if is_stable(text)]
    ['1.2']
    """
    is_branch, _ = preference_key(text)
    return not is_branch and not is_git_version(text)


def equality_key(text: str) -> EqualityKey:
    """Return a key that is equal for versions that are equal in Spack."""
    return version_key(text)[:4]


def preference(text: str) -> tuple[bool, bool, VersionKey]:
    """Return a key that is largest for the version that Spack prefers (see
    `preference_key`).
    """
    _, is_prerelease = preference_key(text)
    return is_stable(text), not is_prerelease, version_key(text)


def newest_version(versions: Iterable[str]) -> str | None:
    """Return the version that Spack prefers: the newest number, or else the newest
    branch or version of git.
    """
    return max(versions, key=preference, default=None)


def count_newer(version: str, versions: Iterable[str]) -> int:
    """Return how many versions are newer, without those that are equal in Spack."""
    key = equality_key(version)
    return sum(equality_key(other) > key for other in versions)


def _next_text(text: str) -> str:
    """Return the smallest string of letters of the same length, or one more, above
    `text`.
    """
    if text.endswith("z"):
        return text + "A"
    if text.endswith("Z"):
        return text[:-1] + "a"
    return text[:-1] + chr(ord(text[-1]) + 1)


def _next_segment(segment: Segment) -> Segment:
    kind, value = segment
    if isinstance(value, int):
        return (kind, value + 1)
    following = _next_text(value)
    while following in _INFINITY_WORDS:
        # An infinity word is not a text: the range ending at `masteq` extends to
        # `mastes`.
        following = _next_text(following)
    return (kind, following)


def _after(version: Standard) -> Standard:
    """Return the first version behind a range that ends at `version`."""
    segments, prerelease = version
    if prerelease[0] != _FINAL:
        number = prerelease[1] + 1 if len(prerelease) > 1 else 0
        return segments, (prerelease[0], number)
    if not segments:
        return ((_TEXT, "A"),), prerelease
    return (*segments[:-1], _next_segment(segments[-1])), prerelease


@dataclass(frozen=True, slots=True)
class Range:
    """The half-open range [low, high) of standard versions, with its text."""

    low: Standard
    high: Standard
    text: str = field(compare=False)

    def contains(self, key: VersionKey) -> bool:
        """Return whether the version lies in the range; git versions count by their
        `=version`.
        """
        return self.low <= (key[0], key[1]) < self.high


@dataclass(frozen=True, slots=True)
class Exact:
    """A version and those that are equal in Spack, with its text."""

    key: EqualityKey
    text: str = field(compare=False)

    def contains(self, key: VersionKey) -> bool:
        """Return whether the version is equal; a git version never equals a standard
        one.
        """
        return key[:4] == self.key


def _checked(text: str, version_list: str) -> str:
    """Return `text`; `ValueError` if it is empty or has characters that no version
    has.
    """
    pattern = _VALID_GIT if is_git_version(text) else _VALID
    if pattern.fullmatch(text) is None:
        problem = f"{text!r} is not a version" if text else "a version is missing"
        raise ValueError(f"{problem} in {version_list!r}")
    return text


def _parse_part(text: str, version_list: str) -> Range | Exact:
    if ":" in text:
        start, _, stop = text.partition(":")
        low = _LOWEST if not start else _bound(start, version_list)
        high = _after(_HIGHEST if not stop else _bound(stop, version_list))
        if high < low:
            raise ValueError(
                f"the version range {text!r} is empty: it ends before it begins"
            )
        return Range(low, high, text)
    if text.startswith("="):
        return Exact(equality_key(_checked(text[1:], version_list)), text)
    if is_git_version(text):
        return Exact(equality_key(_checked(text, version_list)), text)
    version = _bound(text, version_list)
    return Range(version, _after(version), text)


def _bound(text: str, version_list: str) -> Standard:
    if "=" in text:
        raise ValueError(
            f"{text!r} cannot bound a range in {version_list!r}: only plain versions can"
        )
    return _standard(_checked(text, version_list))


@dataclass(frozen=True, slots=True)
class VersionRanges:
    """The list after `@` in a spec: parts that neither overlap nor touch, smallest
    first.
    """

    text: str
    parts: tuple[Range | Exact, ...]

    @classmethod
    def parse(cls, text: str) -> VersionRanges:
        """Read a comma list of `1.2`, `=1.2`, `1.2:`, `:1.4`, `1.2:1.4` and
        `git.main=1.4`.

        Raises:
            ValueError: a part is not a version or range, or a range is empty.
        """
        bare = "".join(text.split()).removeprefix("@")
        parts = [_parse_part(part, bare) for part in bare.split(",")]
        return cls(bare, _disjoint(parts))

    def contains(self, version: str) -> bool:
        """Return whether the version satisfies the ranges, as Spack's `satisfies`
        does.
        """
        key = version_key(version)
        return any(part.contains(key) for part in self.parts)

    def lies_in(self, other: VersionRanges) -> bool:
        """Return whether the other ranges contain every version of these."""
        both = self.intersection(other)
        return both is not None and both.parts == self.parts

    def intersection(self, other: VersionRanges) -> VersionRanges | None:
        """Return the versions in both, None if there are none."""
        ranges, exact = _by_kind(self.parts)
        other_ranges, other_exact = _by_kind(other.parts)
        both: list[Range | Exact] = []
        both += [part for part in exact if _is_among(part, other_ranges, other_exact)]
        both += [part for part in other_exact if _is_among(part, ranges, exact)]
        while ranges and other_ranges:
            first = ranges[0]
            second = other_ranges[0]
            if max(first.low, second.low) < min(first.high, second.high):
                both.append(_overlap(first, second))
            (ranges if first.high <= second.high else other_ranges).pop(0)
        parts = _disjoint(both)
        return (
            VersionRanges(",".join(part.text for part in parts), parts)
            if parts
            else None
        )


def _by_kind(parts: Sequence[Range | Exact]) -> tuple[list[Range], dict[Exact, Exact]]:
    """Return ranges, smallest first, and exact versions, each once."""
    ranges = [part for part in parts if isinstance(part, Range)]
    ranges.sort(key=lambda part: (part.low, part.high))
    return ranges, {part: part for part in parts if isinstance(part, Exact)}


def _overlap(first: Range, second: Range) -> Range:
    low = first if first.low >= second.low else second
    high = first if first.high <= second.high else second
    return (
        low if low is high else Range(low.low, high.high, _between(low.text, high.text))
    )


def _between(low: str, high: str) -> str:
    """Return the text of a range from the start of one to the end of another."""
    return f"{low.partition(':')[0]}:{high.rpartition(':')[2]}"


def _disjoint(parts: Sequence[Range | Exact]) -> tuple[Range | Exact, ...]:
    """Return the same versions as parts that neither overlap nor touch, smallest
    first.
    """
    ranges, exact = _by_kind(parts)
    merged: list[Range] = []
    for part in ranges:
        if merged and part.low <= merged[-1].high:
            last = merged[-1]
            if part.high > last.high:
                merged[-1] = Range(last.low, part.high, _between(last.text, part.text))
        else:
            merged.append(part)
    alone = [part for part in exact if not _is_among(part, merged, ())]
    return tuple(sorted([*merged, *alone], key=_first_version))


def _is_among(version: Exact, ranges: list[Range], exact: Container[Exact]) -> bool:
    """Return whether ranges that do not overlap, or exact versions, contain a
    version.
    """
    index = bisect_right(ranges, version.key[:2], key=lambda part: part.low)
    return version in exact or (
        index > 0 and ranges[index - 1].contains((*version.key, ""))
    )


def _first_version(part: Range | Exact) -> tuple[Standard, int, str]:
    if isinstance(part, Range):
        return part.low, 0, part.text
    segments, prerelease, is_git, reference = part.key
    return (segments, prerelease), 1 + is_git, reference
