"""Finds the packages that words name or describe.

`libhdf5-dev` finds `hdf5`, `mpi` finds `openmpi` and other providers, `mesh generator`
finds packages whose descriptions have both words, and `hfd5` finds `hdf5` as a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from spack_cache_db.query.names.spellings import near_names, package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.words.described import described_packages
from spack_cache_db.query.words.vocabulary import package_called, packages_providing

MOST_DESCRIBED = 30
"""Maximum of packages that are found by their descriptions."""
MOST_GUESSED = 3
"""Maximum of words for which similar names are searched, which is slow."""
LANGUAGE_PREFIXES = {"python": "py", "perl": "perl", "r": "r-"}
"""What the names of packages contain in place of the name of a language."""
SHORTEST_PART = 3
"""Shorter words must be a whole part of a name: `r` in `r-dplyr`."""
SHORTEST_INSIDE = 5
"""Shorter words must stand at the beginning or at the end of a part of a name."""


class FoundPackages(NamedTuple):
    """The packages that words mean, the best first, with or without a binary.

    Attributes:
        reasons: why each package matches, such as `provides mpi`; empty if its name or
            description shows it.
        unmatched: the words that match no name.
        is_guess: whether no word is known, and the packages have similar names.
    """

    reasons: Mapping[str, str]
    unmatched: tuple[str, ...] = ()
    is_guess: bool = False


class Occurrence(IntEnum):
    """How a word occurs in the name of a package, the best first.

    The parts of a name are separated by dashes.
    """

    PART = 0  # mpi in py-mpi-tools
    START = 1  # mpi in py-mpi4py
    END = 2  # mpi in openmpi
    INSIDE = 3  # image in openimageio


def find_packages(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str]
) -> FoundPackages:
    """Return the packages that words describe, or that `nouns` name.

    Packages with a matching name come before packages with a matching description,
    except if the name or the description has all of several words.

    Args:
        lookups: the database.
        words: all words of a text, such as `["parallel", "hdf5", "library"]`.
        nouns: those that may name or describe a package (`Reading.nouns`).
    """
    # Each noun may be the name of a package, or a part of one.
    named = {noun: _named(lookups, noun) for noun in nouns}
    parts = {noun: _with_part(lookups, noun.lower()) for noun in nouns}
    by_name = _joined(*named.values(), *parts.values())

    unmatched: list[str] = []
    if len(nouns) == 1:
        # FTS5 finds words of letters and digits only.
        is_word = nouns[0].isalnum()
        described = _described(lookups, nouns) if is_word else {}
        reasons = _joined(by_name, described)
    else:
        # Packages for all words together come before packages for one of them.
        called_so = _named(lookups, "-".join(words))
        with_every_word = _described(lookups, words, every_word=True)
        by_all_words = _joined(called_so, with_every_word)
        reasons = _joined(by_all_words, _most_words_first(by_name, nouns))
        if not reasons:
            reasons = _described(lookups, nouns)
        elif not by_all_words:
            unmatched = [noun for noun in nouns if not (named[noun] or parts[noun])]

    if reasons:
        return FoundPackages(reasons, tuple(unmatched))

    return _guess(lookups, nouns)


def _guess(lookups: Lookups, nouns: Sequence[str]) -> FoundPackages:
    """Return packages with similar names: unknown words may be misspelled.

    Of several words, each must have a similar name: `mesh partitioner` is not a
    misspelling of `mesa`.
    """
    similar: dict[str, str] = {}
    for noun in nouns[:MOST_GUESSED]:
        near = near_names(lookups, noun)
        if not near:
            return FoundPackages({})
        similar |= dict.fromkeys(near, "")
    return FoundPackages(similar, is_guess=bool(similar))


# The functions below return packages, the best first, with the reason why each matches,
# as `FoundPackages.reasons`.


def _named(lookups: Lookups, name: str) -> dict[str, str]:
    """Return the package that any package manager calls by this name, and then the
    providers, if it is the name of a virtual package.
    """
    reasons: dict[str, str] = {}
    package = package_called(lookups, name)
    if package is not None:
        is_own_name = package == name.lower().replace("_", "-")
        renamed = f"“{name}” is called {package} in Spack"
        reasons[package] = "" if is_own_name else renamed
    for provider in packages_providing(lookups, name):
        reasons[provider] = f"provides {name}"
    return reasons


def _with_part(lookups: Lookups, word: str) -> dict[str, str]:
    """Return the packages in whose name a word occurs."""
    counts = package_counts(lookups)
    occurrences: dict[str, Occurrence] = {}
    for name in counts:
        occurrence = _occurrence(word, name)
        if occurrence is not None:
            occurrences[name] = occurrence

    # The better occurrence first, then the package with more binaries, then by name.
    def rank_of(name: str) -> tuple[Occurrence, int, str]:
        return occurrences[name], -counts[name], name

    return dict.fromkeys(sorted(occurrences, key=rank_of), "")


def _occurrence(word: str, name: str) -> Occurrence | None:
    """Return how a word occurs in the name of a package; None if it does not count."""
    # Most names do not contain the word: they need no other comparison.
    if word not in name:
        return None
    if word in name.split("-"):
        return Occurrence.PART
    if len(word) < SHORTEST_PART:
        return None
    # The dashes are those before and behind a part.
    if f"-{word}" in f"-{name}":
        return Occurrence.START
    if f"{word}-" in f"{name}-":
        return Occurrence.END
    return Occurrence.INSIDE if len(word) >= SHORTEST_INSIDE else None


def _described(
    lookups: Lookups, words: Sequence[str], *, every_word: bool = False
) -> dict[str, str]:
    """Return the packages whose description has one of the words, or every word."""
    text = " ".join(words)
    names = described_packages(
        lookups.conn, text, MOST_DESCRIBED, every_word=every_word
    )
    return dict.fromkeys(names, "")


def _joined(*groups: Mapping[str, str]) -> dict[str, str]:
    """Return the packages of all groups; the first reason of a package counts."""
    joined: dict[str, str] = {}
    for group in groups:
        for package, reason in group.items():
            joined.setdefault(package, reason)
    return joined


def _most_words_first(
    reasons: Mapping[str, str], words: Iterable[str]
) -> dict[str, str]:
    """Return packages in the order of how many of the words their names contain.

    For `python mpi`, `py-mpi4py` has both, and `openmpi` has one.
    """
    spelled = [LANGUAGE_PREFIXES.get(word.lower(), word.lower()) for word in words]

    def missing_words(package: str) -> int:
        return sum(word not in package for word in spelled)

    # The sort is stable: packages with as many words keep their order.
    packages = sorted(reasons, key=missing_words)
    return {package: reasons[package] for package in packages}
