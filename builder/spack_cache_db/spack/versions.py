"""Version order and version ranges, as Spack 1.1 defines them.

Owns the sort key of a version string and the meaning of `@1.2`, `@=1.2`, `@1.2:1.4` and their
lists. Knows nothing of packages, pages or databases. The rules are those of Spack 1.1's
`version/version_types.py` and `version/common.py`, implemented independently.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

# A segment is (kind, text or number), and kinds never mix: text < number < infinity word.
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
# A git reference may also hold a slash (branch names do).
_VALID_GIT = re.compile(r"[A-Za-z0-9_.\-/]+(=[A-Za-z0-9_.\-]+)?")

# Python refuses to convert longer digit strings; real versions have a dozen digits at most.
_MAX_DIGITS = 4000

_LOWEST: Standard = ((), (0,))
_HIGHEST: Standard = (((_INFINITY, len(_INFINITY_WORDS)),), (_FINAL,))


def _number(digits: str) -> int:
    """Return the value of `digits`, or a number in the same order where it is absurdly long."""
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
    """Return (segments, prerelease) of a version that is not a git version."""
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
    """Return whether Spack reads `text` as a git version: `git.ref`, a commit, or `ref=version`."""
    return text.startswith("git.") or "=" in text[1:] or _COMMIT.fullmatch(text) is not None


@lru_cache(maxsize=65536)
def version_key(text: str) -> VersionKey:
    """Return the key that sorts version strings in Spack's order.

    Args:
        text: any string; a version as Spack prints it.

    Returns:
        (segments, prerelease, is git, git reference, text). The order is total: the last
        element breaks the ties of versions that Spack calls equal, such as `1.2-3` and `1.2.3`.
        A git version without `=version` sorts as version 0, as in Spack where its repository
        has no tag.
    """
    if not is_git_version(text):
        segments, prerelease = _standard(text)
        return (segments, prerelease, 0, "", text)
    reference, _, version = text.removeprefix("git.").partition("=")
    segments, prerelease = _standard(version or "0")
    return (segments, prerelease, 1, reference, text)


def preference_key(text: str) -> tuple[bool, bool]:
    """Return a key that is lowest for the versions that Spack takes first, whatever their order.

    Releases come before prereleases, and both before branches such as `develop` and `main` (Spack
    1.1 `solver/asp.py`, `concretization_version_order`).
    """
    segments, prerelease = version_key(text)[:2]
    is_branch = any(kind == _INFINITY for kind, _ in segments)
    return is_branch, prerelease != (_FINAL,)


def equality_key(text: str) -> EqualityKey:
    """Return a key that is equal for exactly the versions that Spack calls equal."""
    return version_key(text)[:4]


def preference(text: str) -> tuple[bool, bool, VersionKey]:
    """Return a key that is largest for the version that Spack prefers (see `preference_key`)."""
    is_branch, is_prerelease = preference_key(text)
    return not is_branch, not is_prerelease, version_key(text)


def newest_version(versions: Iterable[str]) -> str | None:
    """Return the version that Spack prefers: the newest number, or else the newest branch."""
    return max(versions, key=preference, default=None)


def count_newer(version: str, others: Iterable[str]) -> int:
    """Return how many versions are newer than one, those not that Spack calls equal to it."""
    key = equality_key(version)
    return sum(equality_key(each) > key for each in others)


def _next_text(text: str) -> str:
    """Return the smallest string of letters of the same length, or one more, above `text`."""
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
        # An infinity word is no text: the range ending at `masteq` goes on up to `mastes`.
        following = _next_text(following)
    return (kind, following)


def _after(version: Standard) -> Standard:
    """Return the first version that a range ending at `version` no longer holds."""
    segments, prerelease = version
    if prerelease[0] != _FINAL:
        number = prerelease[1] + 1 if len(prerelease) > 1 else 0
        return segments, (prerelease[0], number)
    if not segments:
        return ((_TEXT, "A"),), prerelease
    return (*segments[:-1], _next_segment(segments[-1])), prerelease


@dataclass(frozen=True, slots=True)
class Range:
    """The half-open range [low, high) of standard versions; `text` as it is typed."""

    low: Standard
    high: Standard
    text: str = field(compare=False)

    def contains(self, key: VersionKey) -> bool:
        """Return whether the version lies in the range; git versions count by their `=version`."""
        return self.low <= (key[0], key[1]) < self.high


@dataclass(frozen=True, slots=True)
class Exact:
    """One version and those that Spack calls equal to it; `text` as it is typed."""

    key: EqualityKey
    text: str = field(compare=False)

    def contains(self, key: VersionKey) -> bool:
        """Return whether the version is this one; a git version never equals a standard one."""
        return key[:4] == self.key


def _checked(text: str, whole: str) -> str:
    """Return `text` where it can be a version.

    Raises:
        ValueError: it is empty or has characters that no version has.
    """
    pattern = _VALID_GIT if is_git_version(text) else _VALID
    if pattern.fullmatch(text) is None:
        what = f"{text!r} is not a version" if text else "a version is missing"
        raise ValueError(f"{what} in {whole!r}")
    return text


def _parse_part(text: str, whole: str) -> Range | Exact:
    if ":" in text:
        start, _, end = text.partition(":")
        low = _LOWEST if not start else _bound(start, whole)
        high = _after(_HIGHEST if not end else _bound(end, whole))
        if high < low:
            raise ValueError(f"the version range {text!r} is empty: it ends before it begins")
        return Range(low, high, text)
    if text.startswith("="):
        return Exact(equality_key(_checked(text[1:], whole)), text)
    if is_git_version(text):
        return Exact(equality_key(_checked(text, whole)), text)
    version = _bound(text, whole)
    return Range(version, _after(version), text)


def _bound(text: str, whole: str) -> Standard:
    if "=" in text:
        raise ValueError(f"{text!r} cannot bound a range in {whole!r}: only plain versions can")
    return _standard(_checked(text, whole))


@dataclass(frozen=True, slots=True)
class VersionRanges:
    """A union of ranges and exact versions: what stands after `@` in a spec.

    Attributes:
        text: the list as it was typed, without blanks.
        parts: the same, smallest first; none of them overlap or touch.
    """

    text: str
    parts: tuple[Range | Exact, ...]

    @classmethod
    def parse(cls, text: str) -> VersionRanges:
        """Read a version list, with or without the leading `@`.

        Args:
            text: `1.2`, `=1.2`, `1.2:`, `:1.4`, `1.2:1.4`, `git.main=1.4`, or a comma list.

        Returns:
            The ranges; blanks carry no meaning.

        Raises:
            ValueError: a part is no version or range, or a range is empty.
        """
        bare = "".join(text.split()).removeprefix("@")
        parts = [_parse_part(part, bare) for part in bare.split(",")]
        return cls(bare, _disjoint(parts))

    def contains(self, version: str) -> bool:
        """Return whether the version satisfies the ranges, as Spack's `satisfies` does."""
        key = version_key(version)
        return any(part.contains(key) for part in self.parts)

    def lies_in(self, other: VersionRanges) -> bool:
        """Return whether the other ranges hold every version of these."""
        both = self.intersection(other)
        return both is not None and both.parts == self.parts

    def intersection(self, other: VersionRanges) -> VersionRanges | None:
        """Return what lies in both, None where nothing does."""
        ranges, exact = _by_kind(self.parts)
        other_ranges, other_exact = _by_kind(other.parts)
        found: list[Range | Exact] = []
        found += [each for each in exact if _is_among(each, other_ranges, other_exact)]
        found += [each for each in other_exact if _is_among(each, ranges, exact)]
        here = there = 0
        while here < len(ranges) and there < len(other_ranges):
            first, second = ranges[here], other_ranges[there]
            if max(first.low, second.low) < min(first.high, second.high):
                found.append(_overlap(first, second))
            here, there = (here + 1, there) if first.high <= second.high else (here, there + 1)
        parts = _disjoint(found)
        return VersionRanges(",".join(each.text for each in parts), parts) if parts else None


def _by_kind(parts: Sequence[Range | Exact]) -> tuple[list[Range], dict[Exact, Exact]]:
    """Return ranges, smallest first, and exact versions, each once."""
    ranges = [each for each in parts if isinstance(each, Range)]
    ranges.sort(key=lambda each: (each.low, each.high))
    return ranges, {each: each for each in parts if isinstance(each, Exact)}


def _overlap(first: Range, second: Range) -> Range:
    low = first if first.low >= second.low else second
    high = first if first.high <= second.high else second
    if low is high:
        return low
    return Range(low.low, high.high, _between(low.text, high.text))


def _between(low: str, high: str) -> str:
    """Return the text of a range from where one begins to where another ends."""
    return f"{low.partition(':')[0]}:{high.rpartition(':')[2]}"


def _disjoint(parts: Sequence[Range | Exact]) -> tuple[Range | Exact, ...]:
    """Return the same versions as parts that neither overlap nor touch, smallest first."""
    ranges, exact = _by_kind(parts)
    merged: list[Range] = []
    for each in ranges:
        if merged and each.low <= merged[-1].high:
            last = merged[-1]
            if each.high > last.high:
                merged[-1] = Range(last.low, each.high, _between(last.text, each.text))
        else:
            merged.append(each)
    alone = [each for each in exact if not _is_among(each, merged, ())]
    return tuple(sorted([*merged, *alone], key=_first_version))


def _is_among(version: Exact, ranges: list[Range], exact: Container[Exact]) -> bool:
    """Return whether ranges that do not overlap, or exact versions, hold a version."""
    place = bisect_right(ranges, version.key[:2], key=lambda each: each.low)
    return version in exact or (place > 0 and ranges[place - 1].contains((*version.key, "")))


def _first_version(part: Range | Exact) -> tuple[Standard, int, str]:
    if isinstance(part, Range):
        return part.low, 0, part.text
    segments, prerelease, is_git, reference = part.key
    return (segments, prerelease), 1 + is_git, reference
