"""Finds the packages that words of a search mean, and returns them as cards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.choice.proposed import Proposal
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    condition_value,
)
from spack_cache_db.query.match.candidates import candidates_by_id
from spack_cache_db.query.match.selection import (
    ResultSet,
    counted_part,
    matching,
)
from spack_cache_db.query.names.known import KnownName, known_name
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.configurations import Counted
from spack_cache_db.query.stored.gone import has_gone
from spack_cache_db.query.stored.presence import first_releases
from spack_cache_db.query.words.packages import find_packages
from spack_cache_db.site.pages.names import load_names
from spack_cache_db.spack.versions import newest_version

MOST_CARDS = 8
MOST_RELEASES = 2
MOST_COMPILERS = 2
OPTIONS = ("+cuda", "+rocm", "+mpi", "+openmp", "+python", "+fortran")
"""Variants that a card shows, the best known first."""


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages that words mean, the best first.

    Attributes:
        more: names of packages with binaries that have no card.
        gone: packages whose mirror has lost all binaries.
        unbuilt: names of packages of Spack that have no binary in the database.
        reason: why the first of `unbuilt` matches, if its name does not show it.
        unmatched: the words that no package matches.
        is_guess: whether no word is known, and the packages have similar names.
    """

    words: str
    cards: tuple[dict[str, Any], ...]
    more: tuple[str, ...]
    gone: tuple[KnownName, ...]
    unbuilt: tuple[str, ...]
    reason: str
    unmatched: tuple[str, ...]
    is_guess: bool

    def __bool__(self) -> bool:
        """Return whether there is a package."""
        return bool(self.cards or self.gone or self.unbuilt)


def packages_of(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str], scope: Conditions
) -> Packages:
    """Return the packages that words describe, or that `nouns` name."""
    found = find_packages(lookups, words, nouns)

    # Packages with a binary, those that have lost all, and those that never had one.
    counts = package_counts(lookups)
    built = [name for name in found.reasons if counts[name]]
    without_binary = [name for name in found.reasons if not counts[name]]
    gone = _gone_among(lookups, without_binary)
    names_of_gone = {name.name for name in gone}
    unbuilt = [name for name in without_binary if name not in names_of_gone]

    # Cards without a binary in the scope come last.
    reasons = {name: found.reasons[name] for name in built[:MOST_CARDS]}
    cards = cards_of(lookups, reasons, scope)
    cards.sort(key=lambda card: card["spec_count"] == 0)
    return Packages(
        words=" ".join(words),
        cards=tuple(cards),
        more=tuple(built[MOST_CARDS:]),
        gone=gone,
        unbuilt=tuple(unbuilt),
        reason=found.reasons[unbuilt[0]] if unbuilt else "",
        unmatched=found.unmatched,
        is_guess=found.is_guess,
    )


def _gone_among(lookups: Lookups, names: Sequence[str]) -> tuple[KnownName, ...]:
    """Return the packages whose mirror has lost all binaries."""
    if not has_gone(lookups):
        return ()
    known = [known_name(lookups, name) for name in names]
    return tuple(name for name in known if name.kind == "gone")


def cards_of(
    lookups: Lookups, reasons: Mapping[str, str], scope: Conditions
) -> list[dict[str, Any]]:
    """Return a card for each package, in their order: `total` counts all of its
    binaries.

    The other facts are about binaries in the scope; `commands` are for the proposed
    `build`.

    Args:
        lookups: the database.
        reasons: the names of the packages, and why each one is shown.
        scope: the conditions of the names that narrow the search.
    """
    # The configurations of each package in the scope.
    package = Condition("package", "", OneOf(frozenset(reasons)))
    results = matching(lookups, (package, *scope))
    configurations: dict[str, list[Counted]] = defaultdict(list)
    for row in counted_part(lookups, results, slice(None)):
        configurations[row.configuration.package].append(row)

    # The proposed builds, and the commands for them from the release of the scope.
    proposals = _proposals(lookups, configurations, results)
    release = condition_value(scope, "release")
    chosen_releases = lookups.release_names([release] if release else [])
    specs = [proposal.spec for proposal in proposals.values()]
    commands = commands_of(
        lookups, specs, chosen_releases[0] if chosen_releases else None
    )

    totals = package_counts(lookups)
    summaries = {
        name.name: name.summary
        for name in load_names(lookups)
        if name.kind == "package"
    }
    cards = []
    for name, reason in reasons.items():
        rows = configurations[name]
        proposal = proposals.get(name)
        words = [row.configuration for row in rows]
        variants = {text for row in words for text in row.variants}
        ids = [row.id for row in rows]
        releases = chosen_releases or first_releases(lookups, ids, MOST_RELEASES)
        card = {
            "name": name,
            "reason": reason,
            "summary": summaries.get(name, ""),
            "total": totals[name],
            "version": newest_version({row.version for row in words}) or "",
            "spec_count": sum(row.spec_count for row in rows),
            "compilers": list(_compilers([row.compiler for row in words])),
            "variants": [text for text in OPTIONS if text in variants],
            "releases": releases,
            "commands": commands.get(proposal.spec) if proposal else None,
            "build": proposal.build if proposal else "",
        }
        cards.append(card)
    return cards


def _proposals(
    lookups: Lookups,
    configurations: Mapping[str, Sequence[Counted]],
    results: ResultSet,
) -> dict[str, Proposal]:
    """Return the proposed build of each package that has one."""
    proposals = {}
    for name, rows in configurations.items():
        candidates = candidates_by_id(lookups, [row.id for row in rows])
        proposal = propose(lookups, candidates, results.conditions)
        if proposal is not None:
            proposals[name] = proposal
    return proposals


def _compilers(compilers: Sequence[str]) -> Iterator[str]:
    """Yield the most frequent compilers, with their first and last major versions.

    For example `gcc 11` and `13`, joined by a dash, or `gcc 13` for a single one.
    """
    names = (text.partition("@")[0] for text in compilers if text != NO_COMPILER)
    for name, _ in Counter(names).most_common(MOST_COMPILERS):
        majors = set()
        for text in compilers:
            major = text.partition(".")[0].removeprefix(f"{name}@")
            # Those of other compilers have kept their name.
            if major.isdecimal():
                majors.add(int(major))
        first_and_last = sorted({min(majors), max(majors)}) if majors else []
        versions = "\N{EN DASH}".join(str(major) for major in first_and_last)
        yield f"{name} {versions}".strip()
