"""Finds the packages that words name or describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from spack_cache_db.query.names.spellings import near_names, package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.words.described import described_packages
from spack_cache_db.query.words.reading import package_called, packages_providing

MOST_DESCRIBED = 30
MOST_GUESSED = 3
"""Words for which similar names are searched, which is slow."""
LANGUAGES = {"python": "py", "perl": "perl", "r": "r-"}
"""Prefixes of package names by language."""
SHORTEST_PART, LONG = 3, 5
"""Lengths of words that are searched at the ends of a name, and inside a name."""


class FoundPackages(NamedTuple):
    """The packages that words mean, the best first, with or without a binary.

    Attributes:
        reasons: why each package matches; empty if its name or description shows it.
        unmatched: the words that match no name.
        is_guess: whether no word is known, and the packages have similar names.
    """

    reasons: Mapping[str, str]
    unmatched: tuple[str, ...] = ()
    is_guess: bool = False


def find_packages(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str]
) -> FoundPackages:
    """Return the packages that words describe, or that `nouns` name.

    Matching names come before descriptions, except descriptions with all of several
    words.
    """
    named = {noun: _named(lookups, noun) for noun in nouns}
    parts = {noun: _with_part(lookups, noun.lower()) for noun in nouns}
    by_name, unmatched = _joined(*named.values(), *parts.values()), list[str]()
    if len(nouns) == 1:
        described = _described(lookups, nouns) if nouns[0].isalnum() else {}
        reasons = _joined(by_name, described)
    else:
        every_word = _described(lookups, words, every_word=True)
        whole = _joined(_named(lookups, "-".join(words)), every_word)
        by_words = sorted(by_name, key=lambda package: -_words_in(package, nouns))
        reasons = _joined(whole, {package: by_name[package] for package in by_words})
        if reasons and not whole:
            unmatched = [noun for noun in nouns if not (named[noun] or parts[noun])]
        reasons = reasons or _described(lookups, nouns)
    if reasons:
        return FoundPackages(reasons, tuple(unmatched))
    close = (near_names(lookups, noun) for noun in nouns[:MOST_GUESSED])
    return FoundPackages(dict.fromkeys(chain.from_iterable(close), ""), is_guess=True)


def _named(lookups: Lookups, name: str) -> dict[str, str]:
    """Return the package with a name in any package manager, and providers of a virtual
    one.
    """
    package, spelled = package_called(lookups, name), name.lower().replace("_", "-")
    reason = "" if package == spelled else f"“{name}” is called {package} in Spack"
    provided = dict.fromkeys(packages_providing(lookups, name), f"provides {name}")
    return provided if package is None else {package: reason, **provided}


def _with_part(lookups: Lookups, word: str) -> dict[str, str]:
    """Return the packages whose name has a word, starts or ends with it, or contains a
    long one.
    """
    counts = package_counts(lookups)

    def ways(name: str) -> tuple[bool, ...]:
        is_word, is_short = word in name.split("-"), len(word) < SHORTEST_PART
        ends = (f"-{word}" in f"-{name}", f"{word}-" in f"{name}-", len(word) >= LONG)
        return (is_word,) if is_short else (is_word, *ends)

    found = {name: ways(name) for name in counts if word in name}
    names = (name for name in found if any(found[name]))
    best_first = sorted(
        names, key=lambda name: (found[name].index(True), -counts[name], name)
    )
    return dict.fromkeys(best_first, "")


def _described(
    lookups: Lookups, words: Sequence[str], *, every_word: bool = False
) -> dict[str, str]:
    text = " ".join(words)
    names = described_packages(
        lookups.conn, text, MOST_DESCRIBED, every_word=every_word
    )
    return dict.fromkeys(names, "")


def _joined(*groups: dict[str, str]) -> dict[str, str]:
    """Return all packages in order; the first reason of a package counts."""
    joined: dict[str, str] = {}
    for group in groups:
        joined = joined | group | joined
    return joined


def _words_in(package: str, words: Iterable[str]) -> int:
    """Return the number of words in a name: `py-mpi4py` has `python` and `mpi`."""
    return sum(LANGUAGES.get(word, word) in package for word in map(str.lower, words))
