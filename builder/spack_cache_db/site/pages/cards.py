"""Finds the packages that words of a search mean, and returns them as cards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from spack_cache_db.query.conditions import Condition, Conditions, OneOf, asked
from spack_cache_db.query.configurations import Counted, specs_in_scope
from spack_cache_db.query.database import Lookups, json_pieces, select
from spack_cache_db.query.installation import commands_of
from spack_cache_db.query.names import near_names, package_counts
from spack_cache_db.query.packages import described_packages
from spack_cache_db.query.selection import counted_part, matching
from spack_cache_db.query.words import package_called, packages_providing
from spack_cache_db.site.pages.names import load_names
from spack_cache_db.spack.normal_forms import NO_COMPILER
from spack_cache_db.spack.versions import newest_version

MOST_CARDS = 8
MOST_DESCRIBED = 30
MOST_RELEASES = 2
MOST_GUESSED = 3
"""Words for which similar names are searched, which is slow."""
MOST_COMPILERS = 2
OPTIONS = ("+cuda", "+rocm", "+mpi", "+openmp", "+python", "+fortran")
"""Variants that a card shows, the best known first."""
LANGUAGES = {"python": "py", "perl": "perl", "r": "r-"}
"""Prefixes of package names by language."""
SHORTEST_PART, LONG = 3, 5
"""Lengths of words that are searched at the ends of a name, and inside a name."""
NOWHERE = 4

FIRST_RELEASES = """
SELECT name FROM releases WHERE EXISTS (
  SELECT 1 FROM configuration_releases AS listed
  WHERE listed.release = releases.id
    AND listed.configuration IN (SELECT value FROM json_each(:ids)))
ORDER BY position LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Card:
    """A package that has binaries: `total` in all, and `spec_count` in the scope.

    The other facts are about those in the scope; `command` is for the best one.
    """

    name: str
    reason: str
    summary: str
    total: int
    version: str = ""
    spec_count: int = 0
    compilers: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages that words mean, the best first.

    Attributes:
        more: names of packages with binaries that have no card.
        unbuilt: names of packages of Spack that have no binary in the database.
        reason: why the first of `unbuilt` matches, if its name does not show it.
        is_guess: whether no word is known, and the packages have similar names.
    """

    words: str
    cards: tuple[Card, ...]
    more: tuple[str, ...] = ()
    unbuilt: tuple[str, ...] = ()
    reason: str = ""
    unmatched: tuple[str, ...] = ()
    is_guess: bool = False

    def __bool__(self) -> bool:
        """Return whether there is a package."""
        return bool(self.cards or self.unbuilt)


def packages_of(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str], scope: Conditions
) -> Packages:
    """Return the packages that words describe, or that `nouns` name."""
    counts = package_counts(lookups)
    reasons, unmatched = reasons_of(lookups, words, nouns)
    is_guess = not reasons
    if is_guess:
        close = (near_names(lookups, noun) for noun in nouns[:MOST_GUESSED])
        reasons = dict.fromkeys(chain.from_iterable(close), "")
    built = [name for name in reasons if counts[name]]
    unbuilt = [name for name in reasons if not counts[name]]
    cards = cards_of(lookups, {name: reasons[name] for name in built[:MOST_CARDS]}, scope)
    return Packages(
        words=" ".join(words),
        cards=tuple(sorted(cards, key=lambda card: not card.spec_count)),
        more=tuple(built[MOST_CARDS:]),
        unbuilt=tuple(unbuilt),
        reason=reasons[unbuilt[0]] if unbuilt else "",
        unmatched=() if is_guess else unmatched,
        is_guess=is_guess,
    )


def reasons_of(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the reason of each matching package, the best first, and nouns that match no name.

    Matching names come before descriptions, except descriptions with all of several words.
    """

    def named(name: str) -> dict[str, str]:
        package, spelled = package_called(lookups, name), name.lower().replace("_", "-")
        reason = "" if package == spelled else f"“{name}” is called {package} in Spack"
        provided = dict.fromkeys(packages_providing(lookups, name), f"provides {name}")
        return provided if package is None else {package: reason, **provided}

    def described(texts: Sequence[str], *, every_word: bool = False) -> dict[str, str]:
        text = " ".join(texts)
        names = described_packages(lookups.conn, text, MOST_DESCRIBED, every_word=every_word)
        return dict.fromkeys(names, "")

    parts = {name: _with_part(lookups, name.lower()) for name in nouns}
    if len(nouns) == 1:
        (name,) = nouns
        is_word = name.isalnum()
        return _joined(named(name), parts[name], described(nouns) if is_word else {}), ()
    by_name = {name: named(name) for name in nouns}
    first = _joined(named("-".join(words)), described(words, every_word=True))
    partial = _joined(*by_name.values(), *parts.values())
    if not (first or partial):
        return described(nouns), ()
    unmatched = tuple(name for name in nouns if not (first or by_name[name] or parts[name]))
    by_words = sorted(partial, key=lambda package: -_words_in(package, nouns))
    return _joined(first, {package: partial[package] for package in by_words}), unmatched


def _joined(*reasons: Mapping[str, str]) -> dict[str, str]:
    """Return all reasons as one mapping; the first reason of a package counts."""
    joined: dict[str, str] = {}
    for group in reasons:
        for package, reason in group.items():
            joined.setdefault(package, reason)
    return joined


def _words_in(package: str, words: Iterable[str]) -> int:
    """Return the number of words in a name: `py-mpi4py` has `python` and `mpi`."""
    return sum(LANGUAGES.get(word, word) in package for word in map(str.lower, words))


def _with_part(lookups: Lookups, word: str) -> dict[str, str]:
    """Return the packages whose name has a word, starts or ends with it, or contains a long one."""
    counts = package_counts(lookups)

    def place(name: str) -> int:
        parts = name.split("-")
        if len(word) < SHORTEST_PART:
            return 0 if word in parts else NOWHERE
        ways = (word in parts, f"-{word}" in f"-{name}", f"{word}-" in f"{name}-")
        return (*ways, len(word) >= LONG and word in name, True).index(True)

    places = {name: place(name) for name in counts if word in name}
    names = (name for name, where in places.items() if where < NOWHERE)
    return dict.fromkeys(sorted(names, key=lambda name: (places[name], -counts[name], name)), "")


def cards_of(lookups: Lookups, reasons: Mapping[str, str], scope: Conditions) -> list[Card]:
    """Return a card for each package, in their order."""
    counts = package_counts(lookups)
    names = OneOf(frozenset(reasons))
    results = matching(lookups, (Condition("package", "", names), *scope))
    groups: dict[str, list[Counted]] = defaultdict(list)
    for row in counted_part(lookups, results, slice(None)):
        groups[row.configuration.package].append(row)
    # Configurations are in Spack's order of preference.
    first = {group[0].id: name for name, group in groups.items()}
    specs = specs_in_scope(lookups.conn, first, results.conditions)
    hashes = {first[key]: binaries[0].hash for key, binaries in specs.items()}
    summaries = {name: text for name, kind, text in load_names(lookups) if kind == "package"}

    def card(name: str, group: Sequence[Counted]) -> Card:
        plain = Card(name, reasons[name], summaries.get(name, ""), counts[name])
        if not group:
            return plain
        rows, dag_hash = [row.configuration for row in group], hashes.get(name)
        options = {text for row in rows for text in row.variants}
        return replace(
            plain,
            version=newest_version({row.version for row in rows}) or "",
            spec_count=sum(row.spec_count for row in group),
            compilers=_compilers(row.compiler for row in rows),
            variants=tuple(text for text in OPTIONS if text in options),
            releases=_releases(lookups, [row.id for row in group], scope),
            command="" if dag_hash is None else commands_of(lookups.conn, name, dag_hash).text,
        )

    return [card(name, groups.get(name, ())) for name in reasons]


def _releases(lookups: Lookups, ids: Sequence[int], scope: Conditions) -> tuple[str, ...]:
    """Return the first releases that list a configuration, or only the chosen release."""
    chosen = asked(scope, "release")
    if chosen is not None:
        return (lookups.releases[chosen].name,)
    names: dict[str, None] = {}
    for piece in json_pieces(ids):
        rows = select(lookups.conn, FIRST_RELEASES, ids=piece, limit=MOST_RELEASES)
        names |= {name: None for (name,) in rows}
    return tuple(names)[:MOST_RELEASES]


def _compilers(compilers: Iterable[str]) -> tuple[str, ...]:
    """Return the most frequent compilers, with their first and last major versions."""
    majors: dict[str, set[int]] = defaultdict(set)
    uses: Counter[str] = Counter()
    for text in compilers:
        name, _, version = text.partition("@")
        major = version.partition(".")[0]
        uses[name] += 1
        majors[name] |= {int(major)} if major.isdecimal() else set()
    del uses[NO_COMPILER]
    return tuple(
        name + (f" {_range(majors[name])}" if majors[name] else "")
        for name, _ in uses.most_common(MOST_COMPILERS)
    )


def _range(numbers: set[int]) -> str:
    return "\N{EN DASH}".join(str(number) for number in sorted({min(numbers), max(numbers)}))
